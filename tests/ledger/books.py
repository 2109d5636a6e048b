"""The ledger as tests use it, each change in a transaction of its own, and its books checked a second way."""

from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import Any

import sqlalchemy as sa

from rookery.db.database import Database
from rookery.db.tx import Tx
from rookery.ledger.store import Account, Ledger

LEGS = sa.text(
    "SELECT t.wallet_address, t.number, t.balance_after, t.id, l.bucket, l.amount FROM credit_transactions t "
    "LEFT JOIN credit_legs l ON l.transaction_id = t.id WHERE t.tenant = :tenant ORDER BY t.wallet_address, t.number"
)
ACCOUNTS = sa.text("SELECT * FROM credit_accounts WHERE tenant = :tenant")
KEYS = sa.text("SELECT key FROM credit_transactions WHERE tenant = :tenant AND key IS NOT NULL")
Balances = dict[str, dict[str, int]]


class Books:
    """The ledger of one tenant."""

    def __init__(self, database: Database, tenant: str = "default") -> None:
        self.database = database
        self.tenant = tenant

    def do(self, work: Callable[[Ledger], Any]) -> Any:
        """What `work` gives, committed."""
        return self.database.direct(lambda tx: work(Ledger(tx, self.tenant)), write=True)

    def account(self, wallet: str = "w") -> Account:
        return self.database.direct(lambda tx: Ledger(tx, self.tenant).account(wallet))

    def numbers(self, wallet: str = "w") -> tuple[int, int, int, int]:
        """Available, reserved, purchased, consumed."""
        found = self.account(wallet)
        return found.available, found.reserved, found.total_purchased, found.total_consumed

    def types(self, wallet: str = "w") -> list[str]:
        """What has happened to the wallet, oldest first."""
        rows = self.database.direct(lambda tx: Ledger(tx, self.tenant).history(wallet, 1000))
        return [row.type for row in reversed(rows)]

    def keys(self) -> set[str]:
        return {row.key for row in self.database.direct(lambda tx: tx.all(KEYS, {"tenant": self.tenant}))}

    def check(self) -> Balances:
        """Fail unless the history explains every balance, at every step; the balances that it gives.

        Everything is read at one moment, so others may go on meanwhile.
        """
        return self.database.direct(self._check)

    def _check(self, tx: Tx) -> Balances:
        of = {"tenant": self.tenant}
        given = walk(tx.all(LEGS, of))
        stored = {
            row.wallet_address: {
                "available": row.available,
                "reserved": row.reserved,
                "issued": -row.total_purchased,
                "consumed": row.total_consumed,
                "transactions": row.transactions,
            }
            for row in tx.all(ACCOUNTS, of)
        }
        nothing = dict.fromkeys(("available", "reserved", "issued", "consumed", "transactions"), 0)
        assert stored == {wallet: nothing | dict(given.get(wallet, {})) for wallet in stored}
        assert given.keys() <= stored.keys()
        assert Ledger(tx, self.tenant).verify() == []
        return stored


def walk(rows: Sequence[sa.Row[Any]]) -> Balances:
    """What the legs add up to, in their order, with each step looked at."""
    sums: Balances = defaultdict(lambda: defaultdict(int))
    steps: dict[tuple[str, int], list[Any]] = defaultdict(list)
    for row in rows:
        steps[row.wallet_address, row.number].append(row)
    for (wallet, number), legs in steps.items():
        assert sum(leg.amount for leg in legs) == 0
        at = sums[wallet]
        at["transactions"] += 1
        assert at["transactions"] == number
        for leg in legs:
            at[leg.bucket] += leg.amount
        assert at["available"] >= 0 <= at["reserved"], (wallet, number)
        assert at["available"] + at["reserved"] == legs[0].balance_after
    return sums

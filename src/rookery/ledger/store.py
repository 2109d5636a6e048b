"""Moves credits. Every change is a transaction whose legs add up to zero, and no balance ever goes below zero."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql, sqlite

from rookery.core.admission import storable
from rookery.core.errors import Conflict, NotFound, ValidationFailed
from rookery.core.ids import new_id
from rookery.db.clock import DbNow, now_ms
from rookery.db.tx import Tx
from rookery.identity.tables import EPOCH
from rookery.ledger.rates import is_enforced, rates_of, set_rate
from rookery.ledger.tables import credit_accounts, credit_legs, credit_transactions
from rookery.ledger.verify import faults
from rookery.repute.events import EventType, ReputationEvent, add_events

Row = sa.Row[Any]
Type = Literal["deduction", "agent_message", "reserve", "release", "grant", "refund"]
Spending = Literal["deduction", "agent_message"]
AGENT = "agent:"
MAX_AMOUNT = 1_000_000_000
MAX_BALANCE = 2**53 - 1
"""What every reader of JSON can still tell apart."""
MAX_WALLET, MAX_REFERENCE = 200, 500
SAME_GRANT_MS, SAME_GRANT_LOOK = 600_000, 1_000
"""The same grant again within this time, and within so many transactions of the wallet, is the first one."""
_TOLD_AS: Mapping[str, EventType] = {
    "deduction": "credit_spent",
    "agent_message": "credit_spent",
    "grant": "credit_earned",
    "refund": "credit_earned",
}

_a, _t = credit_accounts.c, credit_transactions.c
_MINE = (_a.tenant == sa.bindparam("of_tenant"), _a.wallet_address == sa.bindparam("of_wallet"))
_ACCOUNT = sa.select(credit_accounts).where(*_MINE)
_BY_KEY = sa.select(credit_transactions).where(
    _t.tenant == sa.bindparam("of_tenant"),
    _t.wallet_address == sa.bindparam("of_wallet"),
    _t.key == sa.bindparam("of_key"),
)
_SAME_GRANT = (
    sa.select(credit_transactions)
    .where(
        _t.tenant == sa.bindparam("of_tenant"),
        _t.wallet_address == sa.bindparam("of_wallet"),
        _t.number > sa.select(_a.transactions - SAME_GRANT_LOOK).where(*_MINE).scalar_subquery(),
        _t.type == "grant",
        _t.amount == sa.bindparam("of_amount"),
        _t.reference == sa.bindparam("of_reference"),
        _t.subject == sa.bindparam("of_subject"),
        _t.created_ms > sa.bindparam("since_ms"),
    )
    .limit(1)
)


def _by(name: str) -> sa.BindParameter[int]:
    return sa.bindparam(name, type_=sa.BigInteger)


_AFTER = {
    "available": _a.available + _by("available_by"),
    "reserved": _a.reserved + _by("reserved_by"),
    "total_purchased": _a.total_purchased - _by("issued_by"),
    "total_consumed": _a.total_consumed + _by("consumed_by"),
}
# The guard is in the statement: of changes at the same moment no more pass than there are credits for.
_MOVE = (
    sa.update(credit_accounts)
    .where(*_MINE, *(sa.between(after, 0, MAX_BALANCE) for after in _AFTER.values()))
    .values(**_AFTER, transactions=_a.transactions + 1, updated_ms=DbNow())
    .returning(credit_accounts)
)


def _opening(dialect: str) -> sa.Executable:
    """Makes the account if there is none, and locks it until the commit."""
    insert = (sqlite if dialect == "sqlite" else postgresql).insert(credit_accounts)
    zero = dict.fromkeys(("available", "reserved", "total_purchased", "total_consumed", "transactions"), 0)
    return insert.values(
        tenant=sa.bindparam("of_tenant"),
        wallet_address=sa.bindparam("of_wallet"),
        created_ms=DbNow(),
        updated_ms=DbNow(),
        **zero,
    ).on_conflict_do_update(index_elements=[_a.tenant, _a.wallet_address], set_={"updated_ms": _a.updated_ms})


_OPEN = {dialect: _opening(dialect) for dialect in ("sqlite", "postgresql")}
_ADD = sa.insert(credit_transactions).returning(credit_transactions)
_ADD_LEGS = sa.insert(credit_legs)


class InsufficientCredits(Conflict):
    """There are not as many credits available as something costs. Nothing was changed."""

    code = "INSUFFICIENT_CREDITS"


@dataclass(frozen=True, slots=True, kw_only=True)
class Account:
    """What a wallet has. `available` can be spent, `reserved` is held back; the totals only tell of the past."""

    wallet_address: str
    available: int = 0
    reserved: int = 0
    total_purchased: int = 0
    total_consumed: int = 0

    @property
    def balance(self) -> int:
        return self.available + self.reserved


def wallet_of(agent_id: str) -> str:
    """The wallet that an agent has from the start, by its id."""
    return f"{AGENT}{agent_id}"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Post:
    """One transaction that is wanted."""

    wallet: str
    type: Type
    amount: int
    legs: Mapping[str, int]
    reference: str
    key: str | None
    subject: str | None


class Ledger:
    """The accounts of one tenant. A wallet that nobody has used yet has an account of zero.

    Amounts are whole credits from 1 to 1,000,000,000. With a `key` the same change is made once for the wallet, however
    often it is asked for: later calls return the first transaction, and a Conflict if they ask for another change.
    """

    def __init__(self, tx: Tx, tenant: str, subject: str | None = None) -> None:
        self.tx = tx
        self.tenant = tenant
        self.subject = subject

    def account(self, wallet: str) -> Account:
        """What the wallet has now."""
        row = self.tx.one(_ACCOUNT, self._of(wallet)) if storable(wallet) else None
        if row is None:
            return Account(wallet_address=wallet)
        return Account(
            wallet_address=wallet,
            available=row.available,
            reserved=row.reserved,
            total_purchased=row.total_purchased,
            total_consumed=row.total_consumed,
        )

    def of_agent(self, agent_id: str) -> Account:
        """What the agent's own wallet has now."""
        return self.account(wallet_of(agent_id))

    def grant(self, wallet: str, amount: int, reference: str, key: str | None = None) -> Row:
        """Give credits to a wallet."""
        return self._post(wallet, "grant", amount, {"issued": -amount, "available": amount}, reference, key)

    def granted_before(self, wallet: str, amount: int, reference: str) -> Row | None:
        """The same grant by the same subject if it was made within the last ten minutes.

        Until the commit nobody else changes the wallet, so of two who look and then grant the second finds the first.
        """
        _check(wallet, amount, reference)
        self._lock(wallet)
        since_ms = now_ms(self.tx) - SAME_GRANT_MS
        same = {"of_amount": amount, "of_reference": reference, "of_subject": self.subject}
        return self.tx.one(_SAME_GRANT, {**self._of(wallet), **same, "since_ms": since_ms})

    def deduct(self, wallet: str, kind: Spending, amount: int, reference: str, key: str | None = None) -> Row:
        """Spend available credits, or InsufficientCredits."""
        return self._post(wallet, kind, amount, {"available": -amount, "consumed": amount}, reference, key)

    def deduct_up_to(self, wallet: str, amount: int, reference: str) -> Row | None:
        """Spend so many credits, or as many as are available; None if that is none."""
        within = self._within(wallet, amount)
        return self.deduct(wallet, "deduction", within, reference) if within else None

    def reserve_up_to(self, wallet: str, amount: int, reference: str) -> Row | None:
        """Hold so many credits back, or as many as are available; None if that is none."""
        within = self._within(wallet, amount)
        return self.reserve(wallet, within, reference) if within else None

    def refund(self, wallet: str, amount: int, reference: str, key: str | None = None) -> Row:
        """Give back what was spent; more than that is a Conflict."""
        return self._post(wallet, "refund", amount, {"consumed": -amount, "available": amount}, reference, key)

    def reserve(self, wallet: str, amount: int, reference: str, key: str | None = None) -> Row:
        """Hold available credits back, or InsufficientCredits. The `id` of the result is that of the reservation."""
        return self._post(wallet, "reserve", amount, {"available": -amount, "reserved": amount}, reference, key)

    def release(self, reservation_id: str) -> Row:
        """Make reserved credits available again. A reservation ends once: if it was settled, this is a Conflict."""
        return self.settle(reservation_id, 0)

    def settle(self, reservation_id: str, spent: int, kind: Spending = "deduction") -> Row:
        """Spend so much of a reservation and make the rest available again. It ends by this, once."""
        held = self.transaction(reservation_id)
        if held is None or held.type != "reserve":
            raise NotFound(f"there is no reservation {reservation_id}", hint="use the id that reserve returned")
        if type(spent) is not int or not 0 <= spent <= held.amount:
            raise ValidationFailed(f"of {held.amount} reserved credits {spent} cannot be spent", hint="reserve more")
        legs = {"reserved": -held.amount, "consumed": spent, "available": held.amount - spent}
        given = {bucket: amount for bucket, amount in legs.items() if amount}
        ending: Type = kind if spent else "release"
        key = f"end:{reservation_id}"
        return self._post(held.wallet_address, ending, spent or held.amount, given, held.reference, key)

    def transaction(self, transaction_id: str) -> Row | None:
        """The transaction of this id, or None."""
        mine = (_t.tenant == self.tenant, _t.id == transaction_id)
        return self.tx.one(sa.select(credit_transactions).where(*mine)) if storable(transaction_id) else None

    def history(self, wallet: str, limit: int = 50, before: int | None = None) -> Sequence[Row]:
        """The transactions of a wallet, newest first; those with a `number` below `before`."""
        mine = [_t.tenant == self.tenant, _t.wallet_address == wallet]
        if before is not None:
            mine.append(_t.number < before)
        return self.tx.all(sa.select(credit_transactions).where(*mine).order_by(_t.number.desc()).limit(limit))

    def config(self) -> dict[str, int]:
        """The six rates that are in force."""
        return rates_of(self.tx, self.tenant)

    def set_config(self, key: str, value: int) -> None:
        """Change one rate of this tenant."""
        set_rate(self.tx, self.tenant, key, value, self.subject or "")

    def verify(self) -> list[str]:
        """What is wrong with the books, a sentence each; empty if history and balances agree to the credit."""
        return faults(self.tx, self.tenant)

    def _of(self, wallet: str) -> dict[str, Any]:
        return {"of_tenant": self.tenant, "of_wallet": wallet}

    def _lock(self, wallet: str) -> None:
        """From here to the commit nobody else changes the wallet."""
        self.tx.run(_OPEN[self.tx.dialect], [self._of(wallet)])

    def _within(self, wallet: str, amount: int) -> int:
        """As much of the amount as is available, which nobody else can spend from here on."""
        if amount < 1 or self.account(wallet).available < 1:
            return 0
        self._lock(wallet)
        return min(amount, MAX_AMOUNT, self.account(wallet).available)

    def _post(
        self, wallet: str, kind: Type, amount: int, legs: Mapping[str, int], reference: str, key: str | None
    ) -> Row:
        """Check what is wanted and make the transaction, unless its key says that it was made already."""
        _check(wallet, amount, reference)
        wanted = _Post(
            wallet=wallet, type=kind, amount=amount, legs=legs, reference=reference, key=key, subject=self.subject
        )
        return self._first(wanted) or self._make(wanted)

    def _first(self, wanted: _Post) -> Row | None:
        """The transaction that the key stands for, if there is one. Otherwise nobody else makes it from here on."""
        if wanted.key is None:
            return None
        same = {**self._of(wanted.wallet), "of_key": wanted.key}
        first = self.tx.one(_BY_KEY, same)
        if first is None:
            # Whoever has the account's row decides; a transaction that was under way is visible after the wait.
            self._lock(wanted.wallet)
            first = self.tx.one(_BY_KEY, same)
        if first is not None and (first.type, first.amount) != (wanted.type, wanted.amount):
            raise Conflict(
                f"the key {wanted.key} stands for another transaction: {first.type} of {first.amount}",
                hint="use a new key for another change",
            )
        return first

    def _make(self, wanted: _Post) -> Row:
        account = self._moved(wanted)
        made = self.tx.one(
            _ADD,
            {
                "id": new_id("ctx"),
                "tenant": self.tenant,
                "wallet_address": wanted.wallet,
                "number": account.transactions,
                "type": wanted.type,
                "amount": wanted.amount,
                "balance_after": account.available + account.reserved,
                "reference": wanted.reference,
                "key": wanted.key,
                "subject": wanted.subject,
                "created_ms": now_ms(self.tx),
            },
        )
        assert made is not None
        common = {"transaction_id": made.id, "tenant": self.tenant, "wallet_address": wanted.wallet}
        self.tx.run(_ADD_LEGS, [{**common, "bucket": name, "amount": amount} for name, amount in wanted.legs.items()])
        after = account.available + account.reserved
        before = after - wanted.legs.get("available", 0) - wanted.legs.get("reserved", 0)
        if (before > 0) != (after > 0) and wanted.wallet.startswith(AGENT) and is_enforced(self.tx):
            # Open sessions of the agent may have lost or won tools by this.
            self.tx.bump(EPOCH)
        self._tell(wanted)
        return made

    def _tell(self, wanted: _Post) -> None:
        """What an agent spends and gets counts for its reputation."""
        told = _TOLD_AS.get(wanted.type)
        if told is None or not wanted.wallet.startswith(AGENT):
            return
        impact = -wanted.amount if told == "credit_spent" else wanted.amount
        agent_id = wanted.wallet.removeprefix(AGENT)
        add_events(
            self.tx, [ReputationEvent(tenant=self.tenant, agent_id=agent_id, type=told, impact=impact)]
        )  # fmt: skip

    def _moved(self, wanted: _Post) -> Row:
        """The account after the change, or why there is none."""
        of = self._of(wanted.wallet)
        change = {f"{name}_by": wanted.legs.get(name, 0) for name in ("available", "reserved", "issued", "consumed")}
        account = self.tx.one(_MOVE, {**of, **change})
        if account is None:
            self._lock(wanted.wallet)
            account = self.tx.one(_MOVE, {**of, **change})
        if account is not None:
            return account
        there = self.account(wanted.wallet)
        if there.available + wanted.legs.get("available", 0) < 0:
            raise InsufficientCredits(
                f"{wanted.wallet} has {there.available} credits available and {wanted.amount} are needed",
                hint="the owner can give more: grant_credits",
            )
        if wanted.type == "refund" and there.total_consumed < wanted.amount:
            raise Conflict(f"{wanted.wallet} has spent only {there.total_consumed} credits", hint="refund no more")
        raise Conflict(f"{wanted.wallet} cannot hold {wanted.amount} more credits", hint="use another wallet")


def _check(wallet: str, amount: int, reference: str) -> None:
    if not 1 <= len(wallet) <= MAX_WALLET or not wallet.isprintable() or wallet != wallet.strip():
        raise ValidationFailed("a wallet address has 1 to 200 characters", hint="nothing was changed")
    if type(amount) is not int or not 1 <= amount <= MAX_AMOUNT:
        raise ValidationFailed(
            f"an amount is a whole number of credits from 1 to {MAX_AMOUNT}", hint="nothing was changed"
        )
    if len(reference) > MAX_REFERENCE or not storable(reference):
        raise ValidationFailed(f"a reference has at most {MAX_REFERENCE} characters", hint="nothing was changed")

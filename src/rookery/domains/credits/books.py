"""The books of wallets, for the people who look into them: balances, transactions, and what each day has cost.

Not in a module where tools are looked for: nobody but people has them, and no session pays for their listing.
"""

from typing import Any

import sqlalchemy as sa
from pydantic import Field

from rookery.core.context import Context
from rookery.core.moments import iso
from rookery.core.tool import NoInput, ToolInput, ToolOutput, tool
from rookery.db.clock import now_ms
from rookery.domains.credits.costs import MICROS
from rookery.domains.credits.inputs import Wallet
from rookery.identity.store import IdentityStore
from rookery.ledger.store import Ledger
from rookery.ledger.tables import credit_accounts
from rookery.lifecycle.run_tables import agent_runs

DAY_MS = 86_400_000
_r = agent_runs.c
_PEOPLE: dict[str, Any] = {
    "effect": "read", "action": "credits:read", "tier": "observe", "group": "Read", "profiles": "", "default": False,
    "principals": "people",
}  # fmt: skip


class ListTransactions(ToolInput):
    wallet_address: Wallet = Field(description="Whose; agent:ID for an agent.")
    before: int | None = Field(None, ge=1, description="Only those with a number below this.")
    limit: int = Field(25, ge=1, le=200, description="At most.")


class GetDailyCosts(ToolInput):
    agent: str | None = Field(None, min_length=1, max_length=100, description="Only of this agent, by name or id.")
    days: int = Field(30, ge=1, le=366, description="So many, today included.")


class Transaction(ToolOutput):
    id: str
    number: int
    type: str
    amount: int
    balance_after: int
    reference: str
    created_at: str | None


class Transactions(ToolOutput):
    transactions: list[Transaction]
    next_before: int | None


class Balance(ToolOutput):
    wallet_address: str
    available: int
    reserved: int


class Balances(ToolOutput):
    balances: list[Balance]


class DayCost(ToolOutput):
    day_ms: int
    cost_usd: float
    runs: int


class DailyCosts(ToolOutput):
    days: list[DayCost]


@tool(title="List transactions", **_PEOPLE)
def list_transactions(ctx: Context, args: ListTransactions) -> Transactions:
    """List the transactions of a wallet, newest first."""
    rows = Ledger(ctx.tx, ctx.actor.tenant).history(args.wallet_address, args.limit + 1, args.before)
    shown = [
        Transaction(
            id=row.id,
            number=row.number,
            type=row.type,
            amount=row.amount,
            balance_after=row.balance_after,
            reference=row.reference,
            created_at=iso(row.created_ms),
        )
        for row in rows[: args.limit]
    ]
    return Transactions(transactions=shown, next_before=shown[-1].number if len(rows) > args.limit else None)


@tool(title="List balances", **_PEOPLE)
def list_balances(ctx: Context, args: NoInput) -> Balances:
    """List what every wallet has that was ever used."""
    mine = credit_accounts.c.tenant == ctx.actor.tenant
    rows = ctx.tx.all(sa.select(credit_accounts).where(mine).order_by(credit_accounts.c.wallet_address))
    return Balances(
        balances=[
            Balance(wallet_address=row.wallet_address, available=row.available, reserved=row.reserved) for row in rows
        ]
    )


@tool(title="Get daily costs", **_PEOPLE)
def get_daily_costs(ctx: Context, args: GetDailyCosts) -> DailyCosts:
    """Sum what runs have cost by the day (UTC) on which they began, oldest first; a day without runs cost nothing."""
    today = now_ms(ctx.tx) // DAY_MS
    first = today - args.days + 1
    seen = [_r.tenant == ctx.actor.tenant, _r.created_ms >= first * DAY_MS]
    if args.agent is not None:
        seen.append(_r.agent == IdentityStore(ctx.tx, ctx.actor.tenant).agent(args.agent).id)
    day = (_r.created_ms // DAY_MS).label("day")
    total = sa.cast(sa.func.coalesce(sa.func.sum(_r.cost_micros), 0), sa.BigInteger).label("micros")
    rows = ctx.tx.all(sa.select(day, total, sa.func.count().label("runs")).where(*seen).group_by(day))
    spent = {int(row.day): (row.micros / MICROS, row.runs) for row in rows}
    days = [(each, *spent.get(each, (0.0, 0))) for each in range(first, today + 1)]
    return DailyCosts(days=[DayCost(day_ms=each * DAY_MS, cost_usd=usd, runs=runs) for each, usd, runs in days])

"""Tools that show credits and costs, and those with which the owner gives credits and sets the rates."""

from typing import Any

from pydantic import ConfigDict

from rookery.core.actor import Actor
from rookery.core.context import Context
from rookery.core.errors import InvalidParams
from rookery.core.tool import ToolOutput, tool
from rookery.domains.credits.costs import costs
from rookery.domains.credits.inputs import CheckCredits, CreditConfig, GetCosts, GrantCredits
from rookery.ledger.rates import KEYS
from rookery.ledger.store import Ledger, wallet_of

DEFAULT_REFERENCE = "agent_grant"


def _without_fields(schema: dict[str, Any]) -> None:
    schema.pop("properties", None)


class Told(ToolOutput):
    """Its fields are listed for no agent: whoever calls sees them."""

    model_config = ConfigDict(extra="allow", json_schema_extra=_without_fields)


class Rates(ToolOutput):
    model_config = ConfigDict(json_schema_extra=_without_fields)

    config: dict[str, int]


def own_wallet(actor: Actor) -> str:
    """The wallet of whoever calls: an agent's own, or one by the name of a person or outsider."""
    return wallet_of(actor.agent) if actor.agent is not None else actor.subject


def _balance(ledger: Ledger, wallet: str) -> dict[str, Any]:
    account, rates = ledger.account(wallet), ledger.config()
    return {
        "wallet_address": account.wallet_address,
        "available": account.available,
        "reserved": account.reserved,
        "total": account.balance,
        "total_purchased": account.total_purchased,
        "total_consumed": account.total_consumed,
        "is_low": account.available <= rates["low_credit_threshold"],
        "is_exhausted": account.available <= 0,
        "rates": rates,
    }


@tool(
    title="Check credits", effect="read", action="credits:read", tier="observe", group="Read", profiles="",
    default=True,
)  # fmt: skip
def check_credits(ctx: Context, args: CheckCredits) -> Told:
    """Use it to see a balance. Returns credits and rates. Reads only."""
    ledger = Ledger(ctx.tx, ctx.actor.tenant)
    return Told(**_balance(ledger, args.wallet_address or own_wallet(ctx.actor)))


@tool(
    title="Grant credits", effect="write", action="credits:grant", tier="privileged", group="Write", profiles="",
    default=False, scheduler_blocked=True,
)  # fmt: skip
def grant_credits(ctx: Context, args: GrantCredits) -> Told:
    """Use it to give credits. Returns the balance. No undo."""
    ledger = Ledger(ctx.tx, ctx.actor.tenant, ctx.actor.subject)
    wanted = (args.wallet_address, args.amount, args.reference or DEFAULT_REFERENCE)
    made = before = ledger.granted_before(*wanted)
    if made is None:
        made = ledger.grant(*wanted)
        ctx.publish("CreditsGranted", subject=args.wallet_address, amount=args.amount)
    told = {"transaction_id": made.id, "repeated": before is not None}
    return Told(**{**told, **_balance(ledger, args.wallet_address)})


@tool(
    title="Credit config", effect="write", action="credits:config", tier="privileged", group="Write", profiles="",
    default=False, scheduler_blocked=True,
)  # fmt: skip
def credit_config(ctx: Context, args: CreditConfig) -> Rates:
    """Use it to see or set rates. Returns them. Update needs key and value."""
    ledger = Ledger(ctx.tx, ctx.actor.tenant, ctx.actor.subject)
    action = args.action or ("get" if args.value is None else "update")
    if action == "get" and args.value is not None:
        raise InvalidParams("value: is only for action update", hint="give action update, or leave value out")
    if action == "update":
        if args.key is None or args.value is None:
            missing = "key" if args.key is None else "value"
            raise InvalidParams(f"{missing}: is needed to update", hint=f"keys: {', '.join(KEYS)}")
        ledger.set_config(args.key, args.value)
        ctx.publish("CreditRateChanged", subject=args.key, value=args.value)
    rates = ledger.config()
    return Rates(config=rates if args.key is None else {args.key: rates[args.key]})


@tool(
    title="Get costs", effect="read", action="credits:read", tier="observe", group="Read", profiles="",
    default=True,
)  # fmt: skip
def get_costs(ctx: Context, args: GetCosts) -> Told:
    """Use it to see what runs cost. Returns only yours."""
    return Told(**costs(ctx.tx, ctx.actor, args.by, args.id))

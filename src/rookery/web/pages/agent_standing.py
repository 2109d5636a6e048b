"""One agent's reputation with what it is made of and what was attested, and its credits with their books."""

from typing import Any

from starlette.responses import Response

from rookery.core.errors import InvalidParams
from rookery.domains.credits.books import get_daily_costs, list_transactions
from rookery.domains.reputation.standing import list_attestations, show_reputation
from rookery.ledger.store import wallet_of
from rookery.web.agent_view import agent_named
from rookery.web.chart_view import chart
from rookery.web.routing import action, page
from rookery.web.run_names import origins_of
from rookery.web.showing import moment
from rookery.web.visit import Visit

Row = dict[str, Any]


@page("/agents/{name}/reputation")
async def reputation(visit: Visit) -> Response:
    """The score, its parts with their weights, the attestations and what was noted last."""
    agent = await agent_named(visit)
    asked = {"agent": agent["id"], "before": _number(visit)}
    attested = await visit.call(list_attestations, asked)
    return await visit.render(
        "agent_reputation.html",
        agent=agent,
        tab="reputation",
        standing=await visit.call(show_reputation, {"agent": agent["id"]}),
        attested=attested,
        history=_history(attested["attestations"]),
        may=await visit.may("publish_attestation"),
    )


@action("/agents/{name}/attest")
async def attest(visit: Visit) -> Response:
    """Sign the score and add it to the public log."""
    agent = await agent_named(visit)
    told = await visit.call("publish_attestation", {"agent_id": agent["id"]})
    said = f"Attestation {told['number']} says the same already." if told["repeated"] else "The score is published."
    return await visit.done(said, to=visit.url(f"/agents/{agent['name']}/reputation"))


@page("/agents/{name}/credits")
async def books(visit: Visit) -> Response:
    """What the agent has to spend, what moved, and what its runs have cost by day."""
    agent = await agent_named(visit)
    wallet = wallet_of(agent["id"])
    days = (await visit.call(get_daily_costs, {"agent": agent["id"]}))["days"]
    ledger = await visit.call(list_transactions, {"wallet_address": wallet, "before": _number(visit)})
    costs = await visit.call("get_costs", {"by": "agent", "id": agent["id"]})
    return await visit.render(
        "agent_credits.html",
        agent=agent,
        tab="credits",
        wallet=wallet,
        balance=await visit.call("check_credits", {"wallet_address": wallet}),
        ledger=ledger,
        origins=await origins_of(visit, {each["number"]: each["reference"] for each in ledger["transactions"]}),
        is_first=_number(visit) is None,
        total=costs["total"],
        days=chart("What its runs have cost by day", {"Cost": _points(days)}, unit="usd", kind="bars"),
        has_costs=any(each["runs"] for each in days),
        may=await visit.may("grant_credits"),
    )


@action("/agents/{name}/credits")
async def give_credits(visit: Visit) -> Response:
    """Give the agent credits."""
    agent = await agent_named(visit)
    amount = visit.word("amount")
    if not (amount.isascii() and amount.isdecimal() and len(amount) <= 9):
        raise InvalidParams("an amount is a whole number of credits", hint="from 1 to 1000000")
    wanted = {"wallet_address": wallet_of(agent["id"]), "amount": int(amount), "reference": visit.word("reference")}
    told = await visit.call("grant_credits", {**wanted, "reference": wanted["reference"] or None})
    said = (
        "The same was given a moment ago." if told["repeated"] else f"{agent['name']} has {told['available']} credits."
    )
    return await visit.done(said, to=visit.url(f"/agents/{agent['name']}/credits"))


def _number(visit: Visit) -> int | None:
    given = visit.query.get("before", "")
    return int(given) if given.isascii() and given.isdecimal() and 0 < len(given) <= 15 and int(given) else None


def _points(days: list[Row]) -> list[tuple[int, float]]:
    return [(each["day_ms"], each["cost_usd"]) for each in days]


def _history(attestations: list[Row]) -> Row | None:
    """The attested scores as a chart, if there are enough for a line."""
    points = [
        (round(at.timestamp() * 1000), float(each["overall_score"]))
        for each in reversed(attestations)
        if each["overall_score"] is not None and (at := moment(each["created_at"])) is not None
    ]
    return chart("Attested scores", {"Score": points}) if len(points) > 1 else None

"""Settings, credits: what things cost, who has how many, and what runs have cost in money."""

from typing import Any

from starlette.responses import Response

from rookery.core.errors import RookeryError
from rookery.domains.credits.books import list_balances
from rookery.ledger.store import wallet_of
from rookery.web.refused_form import RefusedForm, refused_form
from rookery.web.routing import action, page
from rookery.web.visit import Visit

HERE = "/settings/credits"
RATES = {
    "credits_per_turn": "A turn of a session",
    "credits_per_agent_message": "A message to an agent",
    "reserve_per_group_message": "Held back for a message to a group",
    "free_credits_on_first_message": "Given to whoever writes for the first time",
    "credits_per_algo": "Bought for one Algo",
    "low_credit_threshold": "From here a balance is low",
}


@page(HERE)
async def balances_and_rates(visit: Visit) -> Response:
    """Rates, balances and costs."""
    return await _shown(visit)


@action(HERE + "/rates")
async def set_rates(visit: Visit) -> Response:
    """Set those rates that were changed."""
    now = (await visit.call("check_credits"))["rates"]
    changed = {key: visit.word(key) for key in RATES if visit.word(key) != str(now[key])}
    try:
        for key, value in changed.items():
            await visit.call("credit_config", {"action": "update", "key": key, "value": value})
    except RookeryError as error:
        return await _shown(visit, refused_form(visit, "rates", error))
    return await visit.done("The rates are saved." if changed else "Nothing was changed.", to=visit.url(HERE))


@action(HERE + "/grant")
async def grant(visit: Visit) -> Response:
    """Give credits to a wallet."""
    given = {"wallet_address": visit.word("wallet"), "amount": visit.word("amount")}
    if visit.word("reason"):
        given["reference"] = visit.word("reason")
    try:
        balance = await visit.call("grant_credits", given)
    except RookeryError as error:
        return await _shown(visit, refused_form(visit, "grant", error))
    again = " The same was given a moment ago, so it was not given twice." if balance["repeated"] else ""
    return await visit.done(f"The wallet has {balance['available']:,} credits now.{again}", to=visit.url(HERE))


async def _shown(visit: Visit, refused: RefusedForm | None = None) -> Response:
    refused = refused or RefusedForm()
    agents = (await visit.call("list_agent_settings"))["agents"]
    wallets = {wallet_of(each["id"]): each["name"] for each in agents}
    values: dict[str, Any] = {
        "tab": "credits",
        "rates": (await visit.call("check_credits"))["rates"],
        "rate_words": RATES,
        "wallets": wallets,
        "balances": (await visit.call(list_balances))["balances"],
        "costs": await visit.call("get_costs", {"by": "agent"}),
        "hard_stop": visit.platform.settings.credits_hard_stop,
        "may": await visit.may("grant_credits"),
        "refused": refused,
    }
    return await visit.render("settings_credits.html", status=refused.status, **values)

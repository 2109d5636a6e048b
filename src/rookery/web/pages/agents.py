"""The fleet: agents, profiles, bundles, grants and tokens, each in a tab."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from starlette.responses import RedirectResponse, Response

from rookery.domains.credits.books import list_balances
from rookery.domains.reputation.standing import list_scores
from rookery.engine.agent_activity import get_agent_activity
from rookery.identity.bundle_holders import list_bundle_holders
from rookery.identity.live_sessions import count_live_sessions
from rookery.identity.scope_view import list_scopes, look_at_scope
from rookery.ledger.store import wallet_of
from rookery.lifecycle.pausing import list_pauses
from rookery.web.grants_view import agent_names, grants_shown, tokens_shown
from rookery.web.routing import Nav, action, page
from rookery.web.visit import Visit

Row = dict[str, Any]
TABS = {"agents": "Agents", "profiles": "Profiles", "bundles": "Bundles", "grants": "Grants", "tokens": "Tokens"}
SHOWN = 200
SAME = "same:"


@page("/agents", nav=Nav("Agents", "Fleet", 60, "agents"))
async def agents(visit: Visit) -> Response:
    """One tab of the fleet."""
    tab = visit.query.get("tab", "agents")
    return await shown_tab(visit, tab if tab in TABS else "agents")


async def shown_tab(visit: Visit, tab: str, **more: Any) -> Response:
    """The page with this tab open, and what an action has to say besides."""
    values = await _CONTENTS[tab](visit)
    return await visit.render(f"agents_{tab}.html", tab=tab, tabs=TABS, **{**values, **more})


@action("/agents")
async def create(visit: Visit) -> Response:
    """A new agent, with the default set, without tools, or with the list of another."""
    name, start = visit.word("name"), visit.word("start")
    await visit.call("create_agent", {"name": name, "permissions": await _first_list(visit, start)})
    return await visit.done(f"The agent {name} is there.", to=visit.url(f"/agents/{name}"))


async def _first_list(visit: Visit, start: str) -> list[str] | None:
    if not start.startswith(SAME):
        return [] if start == "nothing" else None
    known = (await visit.call("list_agent_settings"))["agents"]
    return next((each["permissions"] for each in known if each["id"] == start.removeprefix(SAME)), None)


@page("/tokens")
async def tokens(visit: Visit) -> Response:
    """Where a browser comes to that loads the page with a new token again: the token is not shown twice."""
    return RedirectResponse(visit.url("/agents", tab="tokens"), 303)


async def _agents(visit: Visit) -> Row:
    settings, costs, live, scores, balances, seen, pauses = await asyncio.gather(
        visit.call("list_agent_settings"),
        visit.call(list_scopes),
        visit.call(count_live_sessions),
        visit.call(list_scores),
        visit.call(list_balances),
        visit.call(get_agent_activity),
        visit.call(list_pauses),
    )
    wanted = visit.query.get("q", "").strip().lower()[:100]
    fitting = [each for each in settings["agents"] if wanted in each["name"].lower()]
    tools = {each["agent_id"]: each for each in costs["agents"]}
    score = {each["agent_id"]: each for each in scores["scores"]}
    held = {each["wallet_address"]: each["available"] for each in balances["balances"]}
    when = {each["agent_id"]: each["seen_at"] for each in seen["agents"]}
    rows = [
        {
            **each,
            "tools": tools.get(each["id"], {"tools": 0, "tokens": 0}),
            "live": live["agents"].get(each["id"], 0),
            "score": score.get(each["id"]),
            "balance": held.get(wallet_of(each["id"]), 0),
            "seen_at": when.get(each["id"]),
            "pause": _pause(pauses["pauses"], each["id"]),
        }
        for each in fitting[:SHOWN]
    ]
    every = [(each["id"], each["name"]) for each in settings["agents"] if each["permissions"] is not None]
    return {
        "agents": rows,
        "wanted": wanted,
        "left_out": max(0, len(fitting) - SHOWN),
        "with_lists": every[:SHOWN],
        "same": SAME,
        "may": await visit.may("create_agent"),
    }


def _pause(pauses: list[Row], agent_id: str) -> Row | None:
    return next((each for each in pauses if each["scope"] == "all" or each["id"] == agent_id), None)


async def _profiles(visit: Visit) -> Row:
    found = (await visit.call("list_profiles"))["profiles"]
    views = [await visit.call(look_at_scope, {"agent_type": each["profile"]}) for each in found]
    return {"profiles": [{**each, "cost": view["now"]} for each, view in zip(found, views, strict=True)]}


async def _bundles(visit: Visit) -> Row:
    found = (await visit.call("list_bundles"))["bundles"]
    holders = (await visit.call(list_bundle_holders))["holders"]
    prices = {each["name"]: each["tokens"] for each in (await visit.call(look_at_scope))["tools"]}
    rows = [
        {
            **each,
            "tokens": sum(prices.get(name, 0) for name in each["tools"]),
            "holders": [one for one in holders if one["bundle"] == each["id"]],
        }
        for each in found
    ]
    return {"bundles": rows, "may": await visit.may("save_bundle")}


async def _grants(visit: Visit) -> Row:
    return await grants_shown(visit, await agent_names(visit))


async def _tokens(visit: Visit) -> Row:
    return {**await tokens_shown(visit, await agent_names(visit)), "fresh": None}


_CONTENTS: Mapping[str, Callable[[Visit], Awaitable[Row]]] = {
    "agents": _agents,
    "profiles": _profiles,
    "bundles": _bundles,
    "grants": _grants,
    "tokens": _tokens,
}

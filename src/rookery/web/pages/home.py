"""Home: what waits for the person, what runs now, what it has cost today, and the switch that stops everything."""

import asyncio
from typing import Any

from starlette.responses import Response

from rookery.domains.credits.books import get_daily_costs
from rookery.domains.owner.ask_details import look_at_asks
from rookery.engine.first_run import setup_state
from rookery.engine.running_now import what_runs
from rookery.engine.waiting_items import what_waits
from rookery.lifecycle.pausing import pause_agents
from rookery.web.home_view import spend, stuck_thing
from rookery.web.routing import Nav, menu, page
from rookery.web.run_names import origins_of, run_name
from rookery.web.visit import Visit
from rookery.web.waiting import waiting_for

SHOWN_ASKS = 8
SHOWN = 8
SHOWN_OUTCOMES = 10
CHART_DAYS = 14


@page("/", nav=Nav("Home", "", 10, "home"))
async def home(visit: Visit) -> Response:
    """What waits, what runs, what it costs. A live part fetches only what it shows."""
    parts = {"waits": _waits, "running": _running, "spend": _spend}
    wanted = [parts[visit.wants_part]] if visit.wants_part in parts else [*parts.values(), _around]
    values: dict[str, Any] = {}
    for found in await asyncio.gather(*(part(visit) for part in wanted)):
        values |= found
    return await visit.render("home.html", **values)


@page("/waiting")
async def waiting(visit: Visit) -> Response:
    """The figures around every page, for one that is open."""
    counted = {each.nav.count for each in menu() if each.nav}
    return await visit.render("waiting_now.html", waiting=await waiting_for(visit), counted=counted)


async def _waits(visit: Visit) -> dict[str, Any]:
    asks = (await visit.call(look_at_asks, {"limit": SHOWN_ASKS}))["asks"]
    found = await visit.call(what_waits, {"limit": SHOWN})
    return {
        "asks": asks,
        "figures": found["figures"],
        "reviews": found["reviews"][:SHOWN],
        "stuck": [stuck_thing(each, visit.url) for each in found["stuck"][:SHOWN]],
    }


async def _running(visit: Visit) -> dict[str, Any]:
    found = await visit.call(what_runs, {"limit": 30})
    going_on = [*found["running"], *found["queued"]]
    origins = await origins_of(visit, {each["run_id"]: each["key"] for each in found["running"]})
    names = [
        run_name(
            {**each, "issue_title": each["title"], "agent_name": each["agent"], "profile": each["role"]},
            origins.get(each["run_id"]),
        ).title
        for each in going_on
    ]
    return {
        "running": found["running"],
        "going_on": list(zip(going_on, names, strict=True)),
        "outcomes": found["outcomes"][:SHOWN_OUTCOMES],
    }


async def _spend(visit: Visit) -> dict[str, Any]:
    days = (await visit.call(get_daily_costs, {"days": CHART_DAYS}))["days"]
    return {"spend": spend(days, visit.platform.settings.daily_budget_usd)}


async def _around(visit: Visit) -> dict[str, Any]:
    """What does not change while the page is open: how far the setup is, and what can be paused."""
    state = await visit.call(setup_state)
    may_pause = await visit.may(pause_agents)
    agents = [each["name"] for each in (await visit.call("list_agents"))["agents"]] if may_pause else list[str]()
    return {"setup": state, "may_pause": may_pause, "agents": agents}

"""Runs: what agents have done and do now, found by what they are and by what happened in them."""

from typing import get_args

from starlette.responses import Response

from rookery.core.errors import InvalidParams, NotFound, RookeryError, ValidationFailed
from rookery.domains.runs.run_search import MOST_EVENTS, search_runs
from rookery.lifecycle.run_store import RunStatus
from rookery.web.routing import Nav, page
from rookery.web.run_names import names_of
from rookery.web.visit import Values, Visit

STATUSES: tuple[str, ...] = get_args(RunStatus)
KINDS = ("session", "orchestrator", "schedule", "workflow", "work", "message", "a2a")
FILTERS = ("status", "kind", "agent", "issue", "q")
PAGE = 50


@page("/runs", nav=Nav("Runs", "", 40, "runs", count="stuck"))
async def runs(visit: Visit) -> Response:
    """The runs that the filters in the address leave, newest first."""
    chosen = {name: visit.query.get(name, "").strip() for name in FILTERS}
    problem: RookeryError | None = None
    found: Values = {"runs": [], "next_cursor": None, "searched": 0}
    try:
        found = await visit.call(search_runs, _arguments(visit, chosen))
    except (NotFound, InvalidParams, ValidationFailed) as error:
        problem = error
    after = found["next_cursor"]
    return await visit.render(
        "runs.html",
        chosen=chosen,
        filtered=any(chosen.values()),
        statuses=STATUSES,
        kinds=KINDS,
        agents=await _agents(visit),
        problem=problem,
        found=found,
        names=await names_of(visit, found["runs"]),
        most=MOST_EVENTS,
        cursor=visit.query.get("cursor", ""),
        older=visit.url("/runs", **chosen, cursor=after) if after else None,
    )


def _arguments(visit: Visit, chosen: dict[str, str]) -> dict[str, str | int]:
    wanted = {
        "text": chosen["q"],
        "status": chosen["status"],
        "kind": chosen["kind"],
        "agent": chosen["agent"],
        "issue_id": chosen["issue"],
        "project": visit.project,
        "cursor": visit.query.get("cursor"),
    }
    return {"limit": PAGE, **{name: value for name, value in wanted.items() if value}}


async def _agents(visit: Visit) -> list[str]:
    if not await visit.may("list_agents"):
        return []
    return sorted(each["name"] for each in (await visit.call("list_agents"))["agents"])

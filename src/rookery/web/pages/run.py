"""One run: its trace as a waterfall, live while it goes on, and each step with exactly what went in and came out."""

import json
import time
from typing import Any

from starlette.responses import Response

from rookery.core.errors import Conflict, NotFound
from rookery.domains.runs.person_runs import read_run_trace, show_run
from rookery.web.routing import action, page
from rookery.web.run_names import RunName, names_of
from rookery.web.run_view import duration_ms, extension, step_detail, usage
from rookery.web.status_lines import StatusLine
from rookery.web.visit import Values, Visit
from rookery.web.waterfall import waterfall

LIVE = ("queued", "running")
STOP = "interrupt_session"
PAGE = 100
MOST_OF_STEP = 200


@page("/runs/{id}")
async def run(visit: Visit) -> Response:
    """The run and a page of its steps. A part that has not changed since `seen` is not sent again."""
    view = await visit.call(show_run, {"run_id": visit.path["id"]})
    one = view["run"]
    live = one["status"] in LIVE
    seen = f"{one['status']}-{one['event_count']}"
    if visit.wants_part and visit.query.get("seen") == seen:
        return Response(status_code=204)
    order = visit.query.get("order") or ("newest" if live else "oldest")
    offset = _number(visit.query.get("offset", ""))
    trace = await _trace(visit, one["id"], "newest" if order == "newest" else "oldest", offset)
    now = time.time_ns() // 1_000_000
    return await visit.render(
        "run.html",
        view=view,
        run=one,
        name=await _name(visit, one),
        live=live,
        seen=seen,
        order=order,
        trace=trace,
        drawn=waterfall(trace["steps"], trace["first_ms"], now if live else trace["last_ms"]),
        working=[_line(each) for each in trace["working"]] if live else [],
        took_ms=duration_ms(one, now),
        extension=extension(one),
        usage=usage(view),
        page_size=PAGE,
        here=f"/runs/{one['id']}",
        may_stop=_goes_on(view) and await visit.may(STOP),
    )


@action("/runs/{id}/stop")
async def stop(visit: Visit) -> Response:
    """End the turn of its session that the run is."""
    view = await visit.call(show_run, {"run_id": visit.path["id"]})
    if not _goes_on(view):
        raise Conflict("the run does not go on any more", hint="its page says how it ended")
    await visit.call(STOP, {"session_id": view["session"]["id"]})
    return await visit.done("It is told to stop.", to=visit.url(f"/runs/{view['run']['id']}"), refresh="runs")


@page("/runs/{id}/steps/{number}")
async def step(visit: Visit) -> Response:
    """What went into a step and what came out, exactly as it was recorded."""
    run_id, number = visit.path["id"], _number(visit.path["number"])
    if number < 1:
        raise NotFound(f"there is no step {visit.path['number'][:20]}", hint="the steps of a run are on its page")
    last = _number(visit.query.get("last", "")) or number
    events = await _events(visit, run_id, number, last)
    if not events:
        raise NotFound(f"the run {run_id} has no event {number}", hint="the steps of a run are on its page")
    detail = step_detail(events)
    if visit.wants_part:
        return await visit.render("run_step.html", run_id=run_id, detail=detail)
    name = await _name(visit, (await visit.call(show_run, {"run_id": run_id}))["run"])
    return await visit.render("run_step.html", run_id=run_id, name=name, number=number, detail=detail)


@page("/runs/{id}/events/{number}")
async def event(visit: Visit) -> Response:
    """One event as JSON, whole, to be kept as a file."""
    run_id, number = visit.path["id"], _number(visit.path["number"])
    found = await visit.call("query_run_events", {"run_id": run_id, "offset": max(0, number - 1), "limit": 1})
    if number < 1 or not found["events"]:
        raise NotFound(f"the run {run_id} has no event {number}", hint="the events of a run are on its page")
    headers = {"Content-Disposition": f'attachment; filename="{run_id}-{number}.json"'}
    # All in ASCII, so that whoever prints the file sees what is in it.
    body = json.dumps(found["events"][0], indent=2).replace("\x7f", "\\u007f")
    return Response(body, 200, headers, "application/json")


async def _name(visit: Visit, run: Values) -> RunName:
    return (await names_of(visit, [run]))[run["id"]]


def _goes_on(view: Values) -> bool:
    """Whether the run is what its session does now: whoever stops a session must not end another turn."""
    session = view["session"]
    return view["run"]["status"] in LIVE and session is not None and session["run_id"] == view["run"]["id"]


async def _trace(visit: Visit, run_id: str, order: str, offset: int) -> Values:
    return await visit.call(read_run_trace, {"run_id": run_id, "order": order, "offset": offset, "limit": PAGE})


async def _events(visit: Visit, run_id: str, first: int, last: int) -> list[Values]:
    """The events of a step, and in any case its last one; numbers have no gaps, so that they are places as well."""
    few = min(max(1, last - first + 1), MOST_OF_STEP)
    found = await visit.call("query_run_events", {"run_id": run_id, "offset": first - 1, "limit": few})
    events: list[Values] = found["events"]
    if events and events[-1]["number"] < last:
        rest = await visit.call("query_run_events", {"run_id": run_id, "offset": last - 1, "limit": 1})
        events += rest["events"]
    return events


def _line(step: Values) -> StatusLine:
    return StatusLine(step["call_id"], step["tool"], step["at_ms"], step["status"])


def _number(text: Any) -> int:
    return int(text) if isinstance(text, str) and text.isdecimal() and len(text) < 10 else 0

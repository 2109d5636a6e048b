"""Two runs side by side: how they ended, what they used, and where they first went different ways."""

import time

from starlette.responses import Response

from rookery.domains.runs.person_runs import read_run_trace, show_run
from rookery.web.routing import page
from rookery.web.run_compare import MOST_STEPS, aligned, tool_pairs
from rookery.web.run_names import names_of
from rookery.web.run_view import duration_ms
from rookery.web.visit import Values, Visit


@page("/runs/compare")
async def compare(visit: Visit) -> Response:
    """The runs `a` and `b`, or the two of a list; without two of them it says how to choose."""
    listed = visit.request.query_params.getlist("run")
    a, b = (visit.query.get(name, "") or (listed[at] if len(listed) > at else "") for at, name in enumerate("ab"))
    a, b = a.strip(), b.strip()
    if not a or not b:
        return await visit.render("run_compare.html", a=a, b=b, sides=None, too_many=len(listed) > 2)
    sides = [await _side(visit, run_id) for run_id in (a, b)]
    pairs = aligned(sides[0]["trace"]["steps"], sides[1]["trace"]["steps"])
    return await visit.render(
        "run_compare.html",
        a=a,
        b=b,
        too_many=False,
        sides=sides,
        pairs=pairs,
        parted=next((at for at, pair in enumerate(pairs, 1) if pair.first), None),
        tools=tool_pairs(sides[0]["trace"]["tools"], sides[1]["trace"]["tools"]),
        most=MOST_STEPS,
    )


async def _side(visit: Visit, run_id: str) -> Values:
    view = await visit.call(show_run, {"run_id": run_id})
    trace = await visit.call(read_run_trace, {"run_id": run_id, "limit": 1000})
    return {
        "run": view["run"],
        "name": (await names_of(visit, [view["run"]]))[view["run"]["id"]],
        "trace": trace,
        "took_ms": duration_ms(view["run"], time.time_ns() // 1_000_000),
        "calls": sum(each["calls"] for each in trace["tools"]),
        "failed": sum(each["failed"] for each in trace["tools"]),
    }

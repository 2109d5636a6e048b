"""Workflows: the list, one of them with its graph, and a run of it as it goes on."""

import json
from typing import Any, cast

from starlette.responses import Response

from rookery.core.errors import InvalidParams, NotFound
from rookery.domains.workflows.graph import Graph
from rookery.domains.workflows.overview import show_workflow, show_workflow_run, workflows_overview
from rookery.web.routing import action, page
from rookery.web.steering import steered
from rookery.web.visit import Visit
from rookery.web.workflow_picture import STATES, draw, read_graph

TOOL = "manage_workflow"
HOME = "/automation/workflows"
OPEN = ("running", "paused")


@page(HOME)
async def workflows(visit: Visit) -> Response:
    """Every workflow with how its last runs ended."""
    found = await visit.call(workflows_overview)
    return await visit.render("workflows.html", workflows=found["workflows"], may_change=await visit.may(TOOL))


@page(HOME + "/{id}")
async def workflow(visit: Visit) -> Response:
    """One workflow: its graph, its runs, and what starts one."""
    found = await visit.call(show_workflow, {"workflow_id": visit.path["id"]})
    shown = found["workflow"]
    graph, _ = read_graph(shown["nodes"], shown["edges"])
    return await visit.render(
        "workflow.html",
        workflow=shown,
        runs=found["runs"],
        graph=draw(graph) if graph is not None else None,
        may_change=await visit.may(TOOL),
    )


@page(HOME + "/{id}/runs/{run_id}")
async def workflow_run(visit: Visit) -> Response:
    """A run with what has become of each node; it changes while it is looked at."""
    found = await visit.call(show_workflow_run, {"run_id": visit.path["run_id"]})
    run, may_change = found["run"], await visit.may(TOOL)
    if run["workflow_id"] != visit.path["id"]:
        raise NotFound(f"there is no run {visit.path['run_id']} of this workflow", hint="its page lists its runs")
    waits = may_change and run["status"] in OPEN and any(node["status"] == "waiting" for node in run["nodes"])
    picture = draw(Graph.model_validate(found["graph"]), {node["id"]: node["status"] for node in run["nodes"]})
    return await visit.render(
        "workflow_run.html",
        run=run,
        graph=picture,
        states=STATES,
        hooks=await _hooks(visit) if waits else [],
        may_change=may_change,
    )


async def _hooks(visit: Visit) -> list[dict[str, Any]]:
    """How to deliver to the nodes that wait: only for those who may steer the run."""
    found = await visit.call(TOOL, {"action": "run_status", "run_id": visit.path["run_id"]})
    return found["runs"][0]["waiting"]


@action(HOME + "/{id}/run")
async def start(visit: Visit) -> Response:
    """Start a run with the input of the form, and watch it."""
    given = {"action": "run", "workflow_id": visit.path["id"], "input": _object(visit.word("input"))}
    run = (await visit.call(TOOL, given))["runs"][0]
    return await visit.done("Started.", to=visit.url(f"{HOME}/{visit.path['id']}/runs/{run['id']}"))


def _object(text: str) -> dict[str, Any]:
    try:
        found: Any = json.loads(text or "{}")
    except (ValueError, RecursionError) as error:
        raise InvalidParams(f"input: is not JSON: {error}", hint='such as {"repo": "shop"}') from None
    if not isinstance(found, dict):
        raise InvalidParams("input: is not a JSON object", hint='such as {"repo": "shop"}')
    return cast("dict[str, Any]", found)


@action(HOME + "/{id}/activate")
async def activate(visit: Visit) -> Response:
    """Let it be run."""
    return await _turned(visit, "activate", "Active: it can be run.")


@action(HOME + "/{id}/pause")
async def pause(visit: Visit) -> Response:
    """Let nobody run it; what has begun goes on."""
    return await _turned(visit, "pause", "Paused: nobody can run it.")


async def _turned(visit: Visit, verb: str, words: str) -> Response:
    which = visit.path["id"]
    return await steered(visit, TOOL, verb, words, to=f"{HOME}/{which}", workflow_id=which)


@action(HOME + "/{id}/delete")
async def delete(visit: Visit) -> Response:
    """Remove it with its runs."""
    return await steered(visit, TOOL, "delete", "Deleted.", to=HOME, workflow_id=visit.path["id"])


@action(HOME + "/{id}/runs/{run_id}/pause")
async def pause_run(visit: Visit) -> Response:
    """Let nothing new begin in the run."""
    return await _run_turned(visit, "pause_run", "Paused.")


@action(HOME + "/{id}/runs/{run_id}/resume")
async def resume_run(visit: Visit) -> Response:
    """Let the run go on."""
    return await _run_turned(visit, "resume_run", "It goes on.")


@action(HOME + "/{id}/runs/{run_id}/cancel")
async def cancel_run(visit: Visit) -> Response:
    """End the run."""
    return await _run_turned(visit, "cancel", "Cancelled.")


async def _run_turned(visit: Visit, verb: str, words: str) -> Response:
    which = visit.path["run_id"]
    to = f"{HOME}/{visit.path['id']}/runs/{which}"
    return await steered(visit, TOOL, verb, words, to=to, refresh="automation", run_id=which)

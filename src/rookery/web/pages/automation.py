"""Automation: schedules with their next due times and last results, one of them with its history, and its switches."""

from starlette.responses import RedirectResponse, Response

from rookery.core.errors import NotFound
from rookery.domains.schedules.overview import run_schedule_now, schedules_overview, show_execution, show_schedule
from rookery.web.routing import Nav, action, page
from rookery.web.schedule_form import action_word
from rookery.web.steering import steered
from rookery.web.visit import Visit

TOOL = "manage_schedule"
HOME = "/automation"
ONE = HOME + "/schedules/{id}"
TABS = {"workflows": "/automation/workflows", "jobs": "/automation/jobs"}


@page(HOME, nav=Nav("Automation", "Fleet", 70, "automation"))
async def schedules(visit: Visit) -> Response:
    """Every schedule, and above them what waits for the owner."""
    if (tab := visit.query.get("tab", "")) in TABS:
        return RedirectResponse(visit.url(TABS[tab]), 303)
    found = await visit.call(schedules_overview)
    return await visit.render("schedules.html", **found, **await _rights(visit))


@page(ONE)
async def schedule(visit: Visit) -> Response:
    """One schedule: when, what, and what became of it."""
    found = await visit.call(show_schedule, {"schedule_id": visit.path["id"]})
    return await visit.render("schedule.html", word=action_word, **found, **await _rights(visit))


@page(ONE + "/executions/{execution_id}")
async def execution(visit: Visit) -> Response:
    """One execution, step by step."""
    found = (await visit.call(show_execution, {"execution_id": visit.path["execution_id"]}))["execution"]
    if found["schedule_id"] != visit.path["id"]:
        raise NotFound(f"there is no execution {visit.path['execution_id']} of this schedule", hint="its page has them")
    return await visit.render("execution.html", word=action_word, execution=found, **await _rights(visit))


async def _rights(visit: Visit) -> dict[str, bool]:
    """What is offered: only the owner decides, whoever may manage schedules does the rest."""
    return {"may_change": await visit.may(TOOL), "may_decide": (await visit.actor()).role == "owner"}


@action(ONE + "/pause")
async def pause(visit: Visit) -> Response:
    """Make it due no more."""
    return await _turned(visit, "pause", "Paused.")


@action(ONE + "/resume")
async def resume(visit: Visit) -> Response:
    """Make it due again."""
    return await _turned(visit, "resume", "It is on again.")


async def _turned(visit: Visit, verb: str, words: str) -> Response:
    which = visit.path["id"]
    return await steered(visit, TOOL, verb, words, to=_here(visit), refresh="automation", schedule_id=which)


@action(ONE + "/delete")
async def delete(visit: Visit) -> Response:
    """Remove it with its history."""
    return await steered(visit, TOOL, "delete", "Deleted.", to=HOME, schedule_id=visit.path["id"])


@action(ONE + "/run")
async def run_now(visit: Visit) -> Response:
    """Execute it now, besides its due times."""
    found = (await visit.call(run_schedule_now, {"schedule_id": visit.path["id"]}))["execution"]
    words = "It waits for approval." if found["status"] == "awaiting_approval" else "It runs."
    return await visit.done(words, to=visit.url(_here(visit)), refresh="automation waiting")


@action(ONE + "/executions/{execution_id}/approve")
async def approve(visit: Visit) -> Response:
    """Agree to an execution that waits."""
    return await _decided(visit, "approve", "Approved.")


@action(ONE + "/executions/{execution_id}/deny")
async def deny(visit: Visit) -> Response:
    """Refuse an execution that waits."""
    return await _decided(visit, "deny", "Denied.")


async def _decided(visit: Visit, verb: str, words: str) -> Response:
    which, topics = visit.path["execution_id"], "automation waiting asks"
    return await steered(visit, TOOL, verb, words, to=_here(visit), refresh=topics, execution_id=which)


def _here(visit: Visit) -> str:
    return f"{HOME}/schedules/{visit.path['id']}"

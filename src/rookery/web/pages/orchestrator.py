"""The orchestrator: who leads, what goes on, what begins next, why each issue waits, and what is set for a project."""

from typing import Any

from starlette.responses import Response

from rookery.core.errors import NotFound
from rookery.engine.owner_commands import configure_orchestrator, list_dispatches, orchestrator_status
from rookery.web.orchestrator_view import HOOKS, PROMPT, role_rows, settings_from, shown_waits
from rookery.web.routing import Nav, action, page
from rookery.web.visit import Visit

RECENT = 20
LIVE = "orchestrator runs waiting"


@page("/orchestrator", nav=Nav("Orchestrator", "Platform", 100, "orchestrator"))
async def orchestrator(visit: Visit) -> Response:
    """How it stands; below it what is set for the project."""
    values = await _standing(visit)
    if not visit.wants_part:
        values |= await _asked(visit) | await _settings(visit)
    return await visit.render("orchestrator.html", **values)


@action("/orchestrator/settings")
async def set_orchestrator(visit: Visit) -> Response:
    """Set how the project is worked on."""
    told = await visit.call(configure_orchestrator, settings_from(visit.word))
    return await visit.done(_said(told, "Kept."), to=visit.url("/orchestrator", project=told["project"]))


@action("/orchestrator/enabled")
async def switch_orchestrator(visit: Visit) -> Response:
    """Let agents work on the project's issues by themselves, or no more."""
    enabled = visit.word("enabled") == "yes"
    told = await visit.call(configure_orchestrator, {"enabled": enabled})
    said = f"Agents work on {told['project']}." if enabled else f"Nothing new begins in {told['project']}."
    return await visit.done(_said(told, said), to=visit.url("/orchestrator", project=told["project"]))


def _said(told: dict[str, Any], words: str) -> str:
    return f"{words} Nothing begins yet: {told['warnings'][0]}." if told["warnings"] else words


async def _standing(visit: Visit) -> dict[str, Any]:
    status = await visit.call(orchestrator_status)
    recent = (await visit.call(list_dispatches, {"state": "ended", "limit": RECENT}))["dispatches"]
    return {"standing": status, "recent": recent, **shown_waits(status, visit.query.get("code", ""))}


async def _asked(visit: Visit) -> dict[str, Any]:
    """Why one issue waits, if that is asked, and how the attempts at it went."""
    issue = visit.query.get("issue", "").strip()
    if not issue:
        return {"issue": "", "why": None, "attempts": []}
    try:
        why = await visit.call("why_waiting", {"issue_id": issue}, issue=issue)
        tried = await visit.call(list_dispatches, {"issue_id": issue, "limit": RECENT})
    except NotFound:
        return {"issue": issue, "why": None, "attempts": []}
    return {"issue": issue, "why": why, "attempts": tried["dispatches"]}


async def _settings(visit: Visit) -> dict[str, Any]:
    """What is set for the project of the page. Whoever may not set it does not see it here."""
    if not await visit.may(configure_orchestrator):
        return {"configured": None}
    told = await visit.call(configure_orchestrator)
    agents = [each["name"] for each in (await visit.call("list_agents"))["agents"]]
    shapes = {"roles": role_rows(told["settings"]), "hooks": HOOKS, "prompt_parts": PROMPT}
    return {"configured": told, "settings": told["settings"], "agents": agents, **shapes}

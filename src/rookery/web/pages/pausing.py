"""The pause switch: everything, a project or one agent, from any page."""

from starlette.responses import Response

from rookery.core.errors import ValidationFailed
from rookery.lifecycle.pausing import pause_agents, resume_agents
from rookery.web.routing import action
from rookery.web.visit import Visit

LIVE = "waiting runs"


@action("/pause")
async def pause(visit: Visit) -> Response:
    """Keep agents from doing anything but looking on."""
    part = _part(visit.word("what"))
    found = await visit.call(pause_agents, {**part, "reason": visit.word("reason")})
    said = f"{_named(part)} is paused." if found["changed"] else f"{_named(part)} was paused already."
    return await visit.done(said, to=visit.url("/"), refresh=LIVE)


@action("/resume")
async def resume(visit: Visit) -> Response:
    """Take one pause back."""
    part = _part(visit.word("what"))
    left = (await visit.call(resume_agents, part))["pauses"]
    said = (
        "Agents work again." if not left else f"Resumed. {len(left)} other pause{'s' if len(left) > 1 else ''} stand."
    )
    return await visit.done(said, to=visit.url("/"), refresh=LIVE)


def _part(what: str) -> dict[str, str]:
    """What a form says is paused: `all`, `project:NAME` or `agent:NAME`."""
    scope, _, target = what.partition(":")
    if scope == "all" and not target:
        return {}
    if scope not in ("project", "agent") or not target:
        raise ValidationFailed("it is not said what to pause", hint="choose everything, a project or an agent")
    return {scope: target}


def _named(part: dict[str, str]) -> str:
    return next((f"The {scope} {name}" for scope, name in part.items()), "Everything")

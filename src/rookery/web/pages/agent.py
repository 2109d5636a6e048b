"""One agent: its tools and where it has them from, and the editor of its list."""

from typing import Any

from starlette.responses import Response

from rookery.core.errors import Conflict
from rookery.core.tool import PROFILES
from rookery.identity.live_sessions import list_live_sessions
from rookery.identity.scope_view import look_at_scope
from rookery.web.agent_view import agent_named, explanation
from rookery.web.routing import action, page
from rookery.web.scope_editor import effect, fingerprint, for_agents, grouped, grouping, risks
from rookery.web.visit import Visit

CHANGED = "somebody has changed the list of this agent meanwhile"


@page("/agents/{name}")
async def agent_tools(visit: Visit) -> Response:
    """The tools of an agent with their boxes, and why it has one or not."""
    return await _editor(visit, {})


@action("/agents/{name}/look")
async def look(visit: Visit) -> Response:
    """What the list of the form would come to. Saves nothing."""
    return await _editor(visit, {"permissions": _wanted(visit)})


@action("/agents/{name}")
async def save_tools(visit: Visit) -> Response:
    """Save the list of the form, and say which live sessions have lost or gained tools by it."""
    agent = await agent_named(visit)
    wanted, seen = _wanted(visit), visit.word("seen")
    own = None if wanted == "default" else wanted
    if seen not in (fingerprint(agent["permissions"]), "") and fingerprint(agent["permissions"]) != fingerprint(own):
        raise Conflict(CHANGED, hint="load the page again and look at it")
    before = await visit.call(list_live_sessions, {"agent": agent["id"]})
    await visit.call("update_agent", {"agent": agent["id"], "permissions": wanted})
    after = await visit.call(list_live_sessions, {"agent": agent["id"]})
    return await _editor(visit, {}, saved=effect(before, after))


def _wanted(visit: Visit) -> list[str] | str:
    return "default" if visit.word("list") == "default" else sorted(set(visit.words("tool")))


async def _editor(visit: Visit, wish: dict[str, Any], saved: dict[str, Any] | None = None) -> Response:
    agent = await agent_named(visit)
    seen_as, scheduled = visit.query.get("as", ""), visit.query.get("scheduled") == "1"
    asked = {"agent": agent["id"], "agent_type": seen_as or None, "project": visit.project, "scheduler": scheduled}
    view = await visit.call(look_at_scope, {**asked, **wish})
    by = grouping(visit)
    own = wish.get("permissions", "default" if agent["permissions"] is None else agent["permissions"])
    chosen = [each["name"] for each in view["tools"] if each["named"]] if own == "default" else own
    here = {"as": seen_as, "scheduled": "1" if scheduled else ""}
    return await visit.render(
        "agent_tools.html",
        agent=agent,
        tab="tools",
        view=view,
        groups=grouped(for_agents(view["tools"], chosen), by),
        by=by,
        own_list=own != "default",
        risky=risks(view),
        may=await visit.may("update_agent"),
        seen=fingerprint(agent["permissions"]),
        here_query=here,
        as_type=seen_as,
        scheduled=scheduled,
        profiles=list(PROFILES.values()),
        project_slugs=[each["slug"] for each in (await visit.call("list_projects"))["projects"]],
        explained=await explanation(visit, agent["id"], seen_as, scheduled=scheduled),
        saved=saved,
    )

"""One profile: which tools its sessions keep, for whatever agent."""

from typing import Any

from starlette.responses import Response

from rookery.core.errors import Conflict, NotFound
from rookery.core.tool import PROFILES
from rookery.identity.live_sessions import list_live_sessions
from rookery.identity.scope_view import look_at_scope
from rookery.web.agent_view import explanation
from rookery.web.routing import action, page
from rookery.web.scope_editor import effect, fingerprint, grouped, grouping, risks
from rookery.web.visit import Visit

Row = dict[str, Any]
CHANGED = "somebody has changed the lists of this profile meanwhile"


@page("/profiles/{type}")
async def profile(visit: Visit) -> Response:
    """The tools of a profile with their boxes."""
    return await _editor(visit, {})


@action("/profiles/{type}/look")
async def look(visit: Visit) -> Response:
    """What the boxes of the form would come to. Saves nothing."""
    return await _editor(visit, await _wanted(visit))


@action("/profiles/{type}")
async def save(visit: Visit) -> Response:
    """Save the boxes of the form, and say which live sessions have lost or gained tools by it."""
    found, wanted = await _profile(visit), await _wanted(visit)
    if visit.word("seen") not in (_seen(found), ""):
        raise Conflict(CHANGED, hint="load the page again and look at it")
    kind = found["profile"]
    before = await visit.call(list_live_sessions, {"agent_type": kind})
    await visit.call("set_profile_tools", {"profile": kind, **wanted})
    after = await visit.call(list_live_sessions, {"agent_type": kind})
    return await _editor(visit, {}, saved=effect(before, after))


async def _profile(visit: Visit) -> Row:
    kind = visit.path["type"]
    if kind not in PROFILES.values():
        raise NotFound(f"there is no profile {kind[:50]}", hint=f"there are {', '.join(PROFILES.values())}")
    found = (await visit.call("list_profiles"))["profiles"]
    return next(each for each in found if each["profile"] == kind)


def _seen(found: Row) -> str:
    return f"{fingerprint(found['allowed'])}-{fingerprint(found['disallowed'])}"


async def _wanted(visit: Visit) -> Row:
    """Either the tools that are kept and no others, or those that are taken away."""
    ticked = set(visit.words("tool"))
    if visit.word("list") == "only":
        return {"allowed": sorted(ticked), "disallowed": []}
    tools = (await visit.call(look_at_scope))["tools"]
    offered = {each["name"] for each in tools if not each["for_people"]}
    return {"allowed": "default", "disallowed": sorted(offered - ticked)}


async def _editor(visit: Visit, wish: Row, saved: Row | None = None) -> Response:
    found = await _profile(visit)
    kind, by = found["profile"], grouping(visit)
    view = await visit.call(look_at_scope, {"agent_type": kind, "project": visit.project, **wish})
    rows = [
        {**each, "ticked": each["allowed"], "aside": kind not in each["profiles"]}
        for each in view["tools"]
        if not each["for_people"]
    ]
    allowed = wish.get("allowed", found["allowed"])
    scheduled = visit.query.get("scheduled") == "1"
    return await visit.render(
        "profile.html",
        profile=found,
        profiles=list(PROFILES.values()),
        project_slugs=[each["slug"] for each in (await visit.call("list_projects"))["projects"]],
        view=view,
        groups=grouped(rows, by),
        by=by,
        only=isinstance(allowed, list),
        risky=risks(view),
        may=await visit.may("set_profile_tools"),
        seen=_seen(found),
        here_query={},
        scheduled=scheduled,
        explained=await explanation(visit, None, kind, scheduled=scheduled),
        saved=saved,
    )

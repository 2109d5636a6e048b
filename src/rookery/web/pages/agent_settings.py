"""One agent's settings: mode, trust, pauses, bundles, grants and tokens, and its sessions that are connected now."""

import asyncio
from typing import Any

from starlette.responses import Response

from rookery.identity.bundle_holders import list_bundle_holders
from rookery.identity.live_sessions import list_live_sessions
from rookery.lifecycle.pausing import pause_agents, resume_agents
from rookery.web.agent_view import agent_named
from rookery.web.grants_view import agent_names, grants_shown, tokens_shown
from rookery.web.routing import action, page
from rookery.web.visit import Visit


@page("/agents/{name}/settings")
async def settings(visit: Visit) -> Response:
    """Everything about an agent but its own list of tools."""
    agent = await agent_named(visit)
    live = await visit.call(list_live_sessions, {"agent": agent["id"]})
    if visit.wants_part == "sessions":
        return await visit.render("agent_settings.html", agent=agent, live=live)
    every = await agent_names(visit)
    shown, tokens, bundles, holders = await asyncio.gather(
        grants_shown(visit, every, agent["id"]),
        tokens_shown(visit, every, agent["id"]),
        visit.call("list_bundles"),
        visit.call(list_bundle_holders),
    )
    names = {each["id"]: each["name"] for each in bundles["bundles"]}
    mine = [each["bundle"] for each in holders["holders"] if each["id"] == agent["id"]]
    values: dict[str, Any] = {**tokens, **shown}
    return await visit.render(
        "agent_settings.html",
        agent=agent,
        tab="settings",
        live=live,
        held=[(each, names.get(each, each)) for each in mine],
        offered=[(each["id"], each["name"]) for each in bundles["bundles"] if each["id"] not in mine],
        may=await visit.may("update_agent"),
        may_pause=await visit.may(pause_agents),
        paused=any(each["id"] == agent["id"] for each in agent["pauses"]),
        **values,
    )


@action("/agents/{name}/settings")
async def save_settings(visit: Visit) -> Response:
    """Save mode, trust and whether sessions that agents start may reach agents."""
    agent = await agent_named(visit)
    trust = visit.word("trust")
    wanted: dict[str, Any] = {"mode": visit.word("mode") or None, "trust": int(trust) if trust.isdecimal() else None}
    wanted["restrict_networking"] = visit.word("restrict_networking") == "1"
    await visit.call("update_agent", {"agent": agent["id"], **wanted})
    return await visit.done("The settings are saved.", to=visit.url(f"/agents/{agent['name']}/settings"))


@action("/agents/{name}/bundles")
async def assign(visit: Visit) -> Response:
    """Give the agent a bundle, or take one away."""
    agent, remove = await agent_named(visit), visit.word("remove") == "1"
    await visit.call("assign_bundle", {"bundle": visit.word("bundle"), "agent": agent["id"], "remove": remove})
    done = "The bundle is taken away." if remove else f"{agent['name']} has the bundle."
    return await visit.done(done, to=visit.url(f"/agents/{agent['name']}/settings"))


@action("/agents/{name}/pause")
async def pause(visit: Visit) -> Response:
    """Let the agent only look on, or go on."""
    agent = await agent_named(visit)
    to = visit.url(f"/agents/{agent['name']}/settings")
    if visit.word("resume") == "1":
        await visit.call(resume_agents, {"agent": agent["id"]})
        return await visit.done(f"{agent['name']} goes on.", to=to)
    await visit.call(pause_agents, {"agent": agent["id"], "reason": visit.word("reason")})
    return await visit.done(f"{agent['name']} is paused.", to=to)

"""Giving single tools for a time, and tokens for clients that connect over HTTP."""

import re

from starlette.responses import Response

from rookery.web.grants_view import lasting
from rookery.web.pages.agents import shown_tab
from rookery.web.routing import action
from rookery.web.visit import Visit

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


def _back(visit: Visit, tab: str) -> str:
    """The page that the form was on: that of one agent, or the tab of all."""
    agent = visit.word("back")
    return visit.url(f"/agents/{agent}/settings") if _NAME.fullmatch(agent) else visit.url("/agents", tab=tab)


@action("/grants")
async def give(visit: Visit) -> Response:
    """Give one agent one tool."""
    agent, tool = visit.word("agent"), visit.word("tool")
    wanted = {
        "agent": agent,
        "tool": tool,
        "reason": visit.word("reason"),
        "expires_at": lasting(visit),
        "without_approval": visit.word("without_approval") == "1",
    }
    await visit.call("grant_tool", wanted)
    return await visit.done(f"{agent} has {tool} now.", to=_back(visit, "grants"))


@action("/grants/revoke")
async def revoke(visit: Visit) -> Response:
    """End a grant."""
    await visit.call("revoke_grant", {"id": visit.word("id")})
    return await visit.done("The grant has ended; live sessions were told.", to=_back(visit, "grants"))


@action("/tokens")
async def create_token(visit: Visit) -> Response:
    """Make a token and show it, this once: it is in the answer and nowhere else."""
    wanted = {
        "name": visit.word("name"),
        "agent": visit.word("agent") or None,
        "scopes": visit.word("scopes").split() or ["*"],
        "agent_type": visit.word("agent_type") or None,
        "project": visit.word("in_project") or None,
        "expires_at": lasting(visit),
    }
    made = await visit.call("create_token", wanted)
    return await shown_tab(visit, "tokens", fresh=made)


@action("/tokens/revoke")
async def revoke_token(visit: Visit) -> Response:
    """End a token."""
    await visit.call("revoke_token", {"id": visit.word("id")})
    return await visit.done("The token has ended.", to=_back(visit, "tokens"))

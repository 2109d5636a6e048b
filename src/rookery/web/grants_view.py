"""Grants and tokens as pages show them, and the times for which they are given."""

from datetime import UTC, datetime, timedelta
from typing import Any

from rookery.core.errors import InvalidParams
from rookery.core.tool import PROFILES
from rookery.identity.scope_view import look_at_scope
from rookery.web.visit import Visit

Row = dict[str, Any]
SPANS = {
    "1h": ("1 hour", timedelta(hours=1)),
    "8h": ("8 hours", timedelta(hours=8)),
    "1d": ("1 day", timedelta(days=1)),
    "7d": ("7 days", timedelta(days=7)),
    "30d": ("30 days", timedelta(days=30)),
    "90d": ("90 days", timedelta(days=90)),
}
FOR_EVER = "revoked"
MOST = 200


def lasting(visit: Visit) -> str | None:
    """When what the form gives is over, as ISO 8601; None if it lasts until it is revoked."""
    chosen = visit.word("lasts")
    if chosen == FOR_EVER:
        return None
    if chosen not in SPANS:
        raise InvalidParams("choose how long it lasts", hint="or until it is revoked")
    return (datetime.now(UTC) + SPANS[chosen][1]).isoformat()


async def agent_names(visit: Visit) -> dict[str, str]:
    """What the agents are called, by their ids."""
    return {each["id"]: each["name"] for each in (await visit.call("list_agent_settings"))["agents"]}


async def grants_shown(visit: Visit, names: dict[str, str], agent: str | None = None) -> Row:
    """The grants, newest first, of all agents or of one; ended ones only if the page is asked for them."""
    every = [each for each in (await visit.call("list_grants"))["grants"] if agent in (None, each["agent"])]
    rows = [{**each, "agent_name": names.get(each["agent"], each["agent"]), "state": _state(each)} for each in every]
    ended = visit.query.get("ended") == "1"
    wanted = [each for each in reversed(rows) if ended or each["state"] == "live"]
    tools = (await visit.call(look_at_scope))["tools"]
    return {
        "grants": wanted[:MOST],
        "grants_left_out": max(0, len(wanted) - MOST),
        "ended": ended,
        "ended_count": sum(1 for each in rows if each["state"] != "live"),
        "agent_names": sorted(names.values(), key=str.lower),
        "grantable": [each for each in tools if not each["for_people"]],
        "spans": [(key, words) for key, (words, _) in SPANS.items()],
        "may_grant": await visit.may("grant_tool"),
    }


async def tokens_shown(visit: Visit, names: dict[str, str], agent: str | None = None) -> Row:
    """The tokens, newest first, of everybody or of one agent, and what the form for a new one offers."""
    projects = {each["id"]: each["slug"] for each in (await visit.call("list_projects"))["projects"]}
    every = [each for each in (await visit.call("list_tokens"))["tokens"] if agent in (None, each["holder"])]
    rows = [
        {
            **each,
            "state": _state(each),
            "holder_name": names.get(each["holder"], "a person" if each["holder_kind"] == "person" else each["holder"]),
            "project_slug": projects.get(each["project"] or "", ""),
        }
        for each in reversed(every)
    ]
    ended = visit.query.get("ended") == "1"
    wanted = [each for each in rows if ended or each["state"] == "live"]
    return {
        "tokens": wanted[:MOST],
        "tokens_left_out": max(0, len(wanted) - MOST),
        "ended": ended,
        "ended_count": sum(1 for each in rows if each["state"] != "live"),
        "may_token": await visit.may("create_token"),
        "agent_names": sorted(names.values(), key=str.lower),
        "profiles": list(PROFILES.values()),
        "project_slugs": list(projects.values()),
        "spans": [(key, words) for key, (words, _) in SPANS.items()],
    }


def _state(row: Row) -> str:
    if row["revoked"]:
        return "revoked"
    expires = row["expires_at"]
    return "over" if expires is not None and datetime.fromisoformat(expires) <= datetime.now(UTC) else "live"

"""What a person sees who watches a session, and what they can choose who start one.

Not in a module where tools are looked for: only people have these, and no session pays for their listing.
"""

from typing import Any

import sqlalchemy as sa
from pydantic import Field

from rookery.core.context import Context
from rookery.core.tool import PROFILES, NoInput, ToolInput, ToolOutput, tool
from rookery.domains.sessions.shown import event_shown, message_shown, names_of, open_asks, session_shown, sight_of
from rookery.domains.sessions.tools import Reference
from rookery.identity.store import IdentityStore
from rookery.identity.tables import people
from rookery.lifecycle.issue_tables import issues
from rookery.sessions.manager import AgentSessions
from rookery.sessions.store import Row
from rookery.sessions.tables import QUEUED
from rookery.sessions.writing import AT_ONCE, kept_before

LAST = 1 << 53
MOST_PEOPLE = 1000
MODES = ("ask", "act", "autonomy")
READS: dict[str, Any] = {
    "effect": "read", "action": "sessions:read", "tier": "observe", "group": "System", "profiles": "",
    "default": False, "principals": "people",
}  # fmt: skip


class WatchSession(ToolInput):
    session_id: Reference = Field(description="Id.")


class PageSessionEvents(WatchSession):
    before: int = Field(LAST, ge=1, le=LAST, description="Only those before this number.")
    limit: int = Field(AT_ONCE, ge=1, le=AT_ONCE, description="At most.")


class WatchedSession(ToolOutput):
    session: dict[str, Any]
    queue: list[dict[str, Any]]
    asks: list[str]
    people: dict[str, str]
    """What those are called who may have sent messages, by their id."""


class SessionEvents(ToolOutput):
    events: list[dict[str, Any]]
    """Oldest first."""


class SessionChoices(ToolOutput):
    agents: list[dict[str, str]]
    projects: list[dict[str, str]]
    profiles: list[str]
    modes: list[str]
    runtimes: list[dict[str, str | None]]
    default_runtime: str | None


@tool(title="Watch session", **READS)
def watch_session(ctx: Context, args: WatchSession) -> WatchedSession:
    """Show how a session stands: its settings and figures, what waits in its queue, and what its agent asks."""
    sight = sight_of(ctx)
    row = sight.of(args.session_id)
    waiting = [message_shown(each) for each in sight.rows.messages(row.id) if each.state == QUEUED]
    names = _people(ctx, row.tenant)
    return WatchedSession(
        session={**session_shown(row, names_of(ctx, [row])), **_named(ctx, row, names)},
        queue=waiting,
        asks=[each["ask_id"] for each in open_asks(ctx, row)],
        people=names,
    )


@tool(title="Page session events", **READS)
def page_session_events(ctx: Context, args: PageSessionEvents) -> SessionEvents:
    """Show the last events of a session before a number, or as many of them as fit into 1 MB."""
    row = sight_of(ctx).of(args.session_id)
    found = kept_before(ctx.tx, row.tenant, row.id, args.before, args.limit)
    return SessionEvents(events=[event_shown(event) for event in found])


@tool(title="Show session choices", **READS)
def show_session_choices(ctx: Context, args: NoInput) -> SessionChoices:
    """Show what a session can be started with here: agents, projects, profiles, modes, and runtimes with what each of
    them lacks."""
    store = IdentityStore(ctx.tx, ctx.actor.tenant)
    sessions: AgentSessions = ctx.platform.facts["sessions"]
    return SessionChoices(
        agents=[{"name": agent.name, "mode": agent.mode} for agent in store.agents()],
        projects=[
            {"slug": each.slug, "name": each.name} for each in store.projects() if each.id not in ctx.actor.closed
        ],
        profiles=sorted(PROFILES.values()),
        modes=list(MODES),
        runtimes=[{"name": name, "missing": each.missing} for name, each in sorted(sessions.runtimes.items())],
        default_runtime=sessions.default,
    )


def _people(ctx: Context, tenant: str) -> dict[str, str]:
    rows = ctx.tx.all(sa.select(people.c.id, people.c.name).where(people.c.tenant == tenant).limit(MOST_PEOPLE))
    return {row.id: row.name for row in rows}


def _named(ctx: Context, row: Row, names: dict[str, str]) -> dict[str, str | None]:
    """What the ids of a session are called."""
    store = IdentityStore(ctx.tx, row.tenant)
    issue = None if row.issue_id is None else ctx.tx.one(sa.select(issues).where(issues.c.id == row.issue_id))
    slugs = {each.id: each.slug for each in store.projects()}
    return {
        "project": slugs.get(row.project_id),
        "issue": None if issue is None else issue.identifier,
        "opener": names.get(row.opened_by, row.opened_by),
    }

"""Who is connected just now, and with which tools: for the people who change what agents have.

Not in a module where tools are looked for: nobody but people has it, and no session pays for its listing.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import sqlalchemy as sa
from pydantic import Field

from rookery.core.actor import Actor
from rookery.core.context import Context
from rookery.core.errors import RookeryError
from rookery.core.moments import iso
from rookery.core.tool import NoInput, ToolInput, ToolOutput, tool
from rookery.db.tx import Tx
from rookery.identity.binding import Binding
from rookery.identity.client_sessions import client_sessions
from rookery.identity.resolve import Resolver
from rookery.identity.store import IdentityStore

FACT = "live_sessions"
MOST = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveSession:
    """One session that a server of this process serves. Its binding may hold a secret: it is shown to nobody."""

    id: str
    tenant: str
    agent: str | None
    profile: str | None
    binding: Binding
    since_ms: int
    program: str = ""


Door = Callable[[], Iterable[LiveSession]]


class LiveSessions:
    """The sessions of this process, as its servers tell them when they are asked."""

    def __init__(self) -> None:
        self._doors: list[Door] = []

    def add(self, door: Door) -> Callable[[], None]:
        """Ask this one as well, until the function that comes back is called."""
        self._doors.append(door)
        return lambda: self._doors.remove(door)

    def of(self, tenant: str) -> list[LiveSession]:
        """Those of one tenant, the oldest first."""
        found = [each for door in tuple(self._doors) for each in door() if each.tenant == tenant]
        return sorted(found, key=lambda each: (each.since_ms, each.id))


class ListLiveSessions(ToolInput):
    agent: str | None = Field(None, min_length=1, max_length=100, description="Only of this agent, by name or id.")
    agent_type: str | None = Field(None, max_length=20, description="Only with this profile.")


class ConnectedSession(ToolOutput):
    id: str
    kind: str
    agent: str | None
    agent_name: str | None
    agent_type: str | None
    project: str | None
    issue: str | None
    source: str
    program: str
    since_at: str | None
    tools: list[str]


class ConnectedSessions(ToolOutput):
    sessions: list[ConnectedSession]
    elsewhere: dict[str, int]
    """How many sessions other servers on the same database have, by the id of their agent."""
    left_out: int


class SessionCounts(ToolOutput):
    agents: dict[str, int]


@tool(
    title="List live sessions", effect="read", action="identity:read", tier="observe", group="System", profiles="",
    default=False, principals="people",
)  # fmt: skip
def list_live_sessions(ctx: Context, args: ListLiveSessions) -> ConnectedSessions:
    """List the sessions that are connected to this server just now, with the tools that each has."""
    store = IdentityStore(ctx.tx, ctx.actor.tenant)
    wanted = None if args.agent is None else store.agent(args.agent).id
    live = connected(ctx, agent=wanted, profile=args.agent_type)
    return ConnectedSessions(
        sessions=[_shown(ctx, each, actor) for each, actor in live[:MOST]],
        elsewhere=_elsewhere(ctx.tx, ctx.actor.tenant, {each.id for each in _known(ctx)}, wanted),
        left_out=max(0, len(live) - MOST),
    )


@tool(
    title="Count live sessions", effect="read", action="identity:read", tier="observe", group="System", profiles="",
    default=False, principals="people",
)  # fmt: skip
def count_live_sessions(ctx: Context, args: NoInput) -> SessionCounts:
    """Count the sessions that are connected just now, here and at other servers, by the id of their agent."""
    here = _known(ctx)
    counted = _elsewhere(ctx.tx, ctx.actor.tenant, {each.id for each in here}, None)
    for each in here:
        if each.agent is not None:
            counted[each.agent] = counted.get(each.agent, 0) + 1
    return SessionCounts(agents=counted)


def _known(ctx: Context) -> list[LiveSession]:
    known: LiveSessions | None = ctx.platform.facts.get(FACT)
    return [] if known is None else known.of(ctx.actor.tenant)


def connected(ctx: Context, *, agent: str | None = None, profile: str | None = None) -> list[tuple[LiveSession, Actor]]:
    """The sessions of the caller's tenant that this process serves, each with who acts in it as of now: all, or those
    of one agent or profile."""
    resolver: Resolver = ctx.platform.facts["resolver"]
    found: list[tuple[LiveSession, Actor]] = []
    for each in _known(ctx):
        if agent not in (None, each.agent) or profile not in (None, each.profile):
            continue
        try:
            found.append((each, resolver.resolve(ctx.tx, each.binding).actor))
        except RookeryError:
            # It has lost its identity or its project; the server ends it or refuses its next call.
            continue
    return found


def _shown(ctx: Context, live: LiveSession, actor: Actor) -> ConnectedSession:
    return ConnectedSession(
        id=live.id,
        kind=actor.kind,
        agent=actor.agent,
        agent_name=actor.agent_name,
        agent_type=actor.profile,
        project=actor.project_slug,
        issue=actor.issue_identifier,
        source=actor.source,
        program=live.program,
        since_at=iso(live.since_ms),
        tools=[each.name for each in ctx.platform.registry.listed(actor)],
    )


def _elsewhere(tx: Tx, tenant: str, here: set[str], agent: str | None) -> dict[str, int]:
    open_ones = [client_sessions.c.tenant == tenant, client_sessions.c.ended_ms.is_(None)]
    if agent is not None:
        open_ones.append(client_sessions.c.agent == agent)
    rows = tx.all(sa.select(client_sessions.c.id, client_sessions.c.agent).where(*open_ones).limit(5000))
    counted: dict[str, int] = {}
    for row in rows:
        if row.agent is not None and row.id not in here:
            counted[row.agent] = counted.get(row.agent, 0) + 1
    return counted

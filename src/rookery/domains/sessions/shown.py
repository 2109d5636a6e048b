"""What a caller gets to see of sessions, and in which form."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from rookery.asks.tables import OPEN, asks
from rookery.core.context import Context
from rookery.core.errors import NotFound, PermissionDenied
from rookery.db.clock import DbNow
from rookery.identity.binding import stricter
from rookery.identity.store import IdentityStore
from rookery.sessions.store import Row, SessionRows
from rookery.sessions.writing import Kept

FIELDS = (
    "id",
    "agent",
    "project_id",
    "issue_id",
    "title",
    "origin",
    "opened_by",
    "runtime",
    "native_id",
    "model",
    "cwd",
    "state",
    "error",
    "run_id",
    "event_count",
    "turns",
    "cost_micros",
    "input_tokens",
    "output_tokens",
    "context_tokens",
    "context_max",
    "created_ms",
    "active_ms",
    "ended_ms",
)
"""Nothing of what a session is held to, of the servers that it was given, which may name secrets, or of its key."""
MOST_ASKS = 200
MOST_TEXT = 4000
_a = asks.c
NOBODY = ""
"""The agent of callers who have none: no session is theirs."""


@dataclass(frozen=True, slots=True)
class Sight:
    """The sessions that the caller sees: people those of all agents, an agent its own. None of a closed project."""

    rows: SessionRows
    agent: str | None

    def of(self, session_id: str) -> Row:
        """The session; NotFound if the caller knows of none, whoever else does."""
        row = self.rows.find(session_id)
        if row is None or (self.agent is not None and row.agent != self.agent):
            raise NotFound(f"there is no session {session_id[:100]}", hint="list_sessions names them")
        return row


def sight_of(ctx: Context, agent: str | None = None) -> Sight:
    """What the caller sees, or as much of it as is of `agent`, an id or a name."""
    actor = ctx.actor
    rows = SessionRows(ctx.tx, actor.tenant, actor.closed)
    if actor.kind == "human":
        return Sight(rows, IdentityStore(ctx.tx, actor.tenant).agent(agent).id if agent is not None else None)
    if agent is not None and agent not in (actor.agent, actor.agent_name):
        raise PermissionDenied("an agent sees only its own sessions", hint="leave agent_id out", layer="principal")
    return Sight(rows, actor.agent or NOBODY)


def names_of(ctx: Context, rows: Sequence[Row]) -> Mapping[str | None, str]:
    """What the agents of these sessions are called."""
    wanted = {row.agent for row in rows if row.agent is not None}
    if not wanted:
        return {}
    return {agent.id: agent.name for agent in IdentityStore(ctx.tx, ctx.actor.tenant).agents() if agent.id in wanted}


def session_shown(row: Row, names: Mapping[str | None, str]) -> dict[str, Any]:
    """A session as its readers see it. Its mode is the one that counts: the wanted one, or a stricter."""
    mode = stricter(row.mode, row.binding["held"].get("mode"))
    return {**{name: getattr(row, name) for name in FIELDS}, "agent_name": names.get(row.agent), "mode": mode}


def message_shown(row: Row) -> dict[str, Any]:
    """A message that was sent to a session, and what became of it; of a long one the beginning."""
    shown = {name: getattr(row, name) for name in ("id", "sent_by", "state", "run_id", "created_ms")}
    return {**shown, "text": row.text if len(row.text) <= MOST_TEXT else f"{row.text[:MOST_TEXT]}…"}


def event_shown(event: Kept) -> dict[str, Any]:
    """An event as everybody reads it, here and over HTTP."""
    return {
        "number": event.number,
        "event": event.name,
        "data": event.data,
        "at_ms": event.at_ms,
        "run_id": event.run_id,
    }


def open_asks(ctx: Context, row: Row) -> list[dict[str, Any]]:
    """What its agent asks and nobody has answered yet, oldest first: decisions with exactly what they are about."""
    wanted = (_a.tenant == row.tenant, _a.session == row.id, _a.status == OPEN, _a.expires_ms > DbNow())
    rows = ctx.tx.all(sa.select(asks).where(*wanted).order_by(_a.created_ms, _a.id).limit(MOST_ASKS))
    shown = ("kind", "question", "options", "context", "subject", "created_ms", "expires_ms")
    return [{"ask_id": each.id, **{name: getattr(each, name) for name in shown}} for each in rows]

"""Adds reputation events, in the transaction of what they tell of: both are there afterwards, or neither."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import sqlalchemy as sa

from rookery.db.clock import NOW
from rookery.db.tx import Tx
from rookery.identity.tables import agents

EventType = Literal[
    "task_completed",
    "task_failed",
    "review_received",
    "credit_spent",
    "credit_earned",
    "security_violation",
    "session_completed",
    "attestation_published",
    "improvement_loop_completed",
    "improvement_loop_failed",
]
DAY_MS = 86_400_000
_MARKS = (("sqlite", "?"), ("postgresql", "%s"))
_COLUMNS = "tenant, agent_id, type, impact, about, key, created_ms"
# By the driver's own call: an event comes with many calls, and SQLAlchemy would cost five times as much.
_INSERT = {
    dialect: f"INSERT INTO reputation_events ({_COLUMNS}) VALUES ({', '.join([mark] * 6)}, {NOW[dialect]}) "
    "ON CONFLICT (tenant, agent_id, key) DO NOTHING"
    for dialect, mark in _MARKS
}
_THERE = {
    dialect: f"SELECT seq FROM reputation_events WHERE tenant = {mark} AND agent_id = {mark} AND key = {mark}"
    for dialect, mark in _MARKS
}


_AGENT = (
    sa.select(agents.c.id)
    .where(
        agents.c.tenant == sa.bindparam("of_tenant"),
        sa.or_(agents.c.id == sa.bindparam("called"), agents.c.name == sa.bindparam("called")),
    )
    .order_by(agents.c.id != sa.bindparam("called"))
    .limit(1)
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReputationEvent:
    """Something that an agent did. The same `key` of one agent is the same event, however often it is added."""

    tenant: str
    agent_id: str
    type: EventType
    impact: int
    about: Mapping[str, Any] = field(default_factory=dict[str, Any])
    key: str | None = None


def add_events(tx: Tx, events: Sequence[ReputationEvent]) -> None:
    """Add the events that are not there yet."""
    if not events:
        return
    # In one order, so that of two who add the same ones neither waits for the other's second.
    ordered = sorted(events, key=lambda each: (each.tenant, each.agent_id, each.key or ""))
    rows = [
        (each.tenant, each.agent_id, each.type, each.impact, json.dumps(dict(each.about)), each.key) for each in ordered
    ]
    driver: Any = tx.connection.connection.driver_connection
    driver.cursor().executemany(_INSERT[tx.dialect], rows)


def is_there(tx: Tx, event: ReputationEvent) -> bool:
    """Whether the event, which has a key, was added before."""
    driver: Any = tx.connection.connection.driver_connection
    return bool(driver.cursor().execute(_THERE[tx.dialect], (event.tenant, event.agent_id, event.key)).fetchall())


def agent_called(tx: Tx, tenant: str, called: str | None) -> str | None:
    """The id of the agent that somebody called so, by its id or its name; None if that is nobody of the tenant."""
    return None if called is None else tx.scalar(_AGENT, {"of_tenant": tenant, "called": called})


def session_key(session: str, at_ms: int) -> str:
    """The key of a session's event: one that goes on for days counts once on each (UTC)."""
    return f"session:{at_ms // DAY_MS}:{session}"

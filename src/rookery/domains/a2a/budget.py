"""What one session may ask of agents elsewhere: how often, how many of them, and with which pause between.

Counted in the database by its clock, so all servers agree. A refusal does not say which of the limits it was.
"""

from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql, sqlite

from rookery.core.actor import Actor
from rookery.core.errors import RateLimited
from rookery.db.clock import now_ms
from rookery.db.tx import Tx
from rookery.domains.a2a.tables import sessions
from rookery.settings import Settings

HOUR_MS = 3_600_000
KEPT_MS = 30 * 24 * HOUR_MS
Open = dict[str, str]
"""The task and the context in which an agent elsewhere waits for an answer; empty if it waits for none."""

_THIS = (sessions.c.tenant == sa.bindparam("of_tenant"), sessions.c.session == sa.bindparam("of_session"))
_NOW = sa.bindparam("at_ms", type_=sa.BigInteger)
_HOLD = {
    name: dialect.insert(sessions)
    .values(
        tenant=sa.bindparam("of_tenant"),
        session=sa.bindparam("of_session"),
        calls=0,
        agents=sa.bindparam("none", type_=sa.JSON),
        since_ms=_NOW,
        last_ms=0,
    )
    # A change that changes nothing: whoever made it has the row until the commit.
    .on_conflict_do_update(index_elements=["tenant", "session"], set_={"calls": sessions.c.calls})
    .returning(*sessions.c)
    for name, dialect in (("sqlite", sqlite), ("postgresql", postgresql))
}
_SET = (
    sa.update(sessions)
    .where(*_THIS)
    .values(
        calls=sa.bindparam("new_calls"),
        agents=sa.bindparam("new_agents", type_=sa.JSON),
        since_ms=sa.bindparam("new_since"),
        last_ms=sa.bindparam("new_last"),
    )
    .returning(sessions.c.session)
)
_FORGET = (
    sa.delete(sessions)
    .where(sessions.c.tenant == sa.bindparam("of_tenant"), sessions.c.last_ms < sa.bindparam("until_ms"))
    .returning(sessions.c.session)
)


@dataclass(frozen=True, slots=True)
class Budget:
    """The limits of a session; 0 is no limit."""

    calls: int
    agents: int
    pause_ms: int


def budget_of(settings: Settings) -> Budget:
    """What the settings say."""
    return Budget(settings.a2a_max_invocations, settings.a2a_max_agents, settings.a2a_invocation_cooldown_ms)


def hold(tx: Tx, tenant: str, key: str) -> sa.Row[Any]:
    """The row of a session or sender. From here to the commit nobody else has it, so what is counted stays true."""
    values: dict[str, Any] = {"of_tenant": tenant, "of_session": key, "none": {}, "at_ms": now_ms(tx)}
    row = tx.one(_HOLD[tx.dialect], values)
    assert row is not None
    return row


def reserve(tx: Tx, actor: Actor, base: str, budget: Budget) -> Open:
    """Count one invocation of the agent at `base`, or RateLimited. Comes back with the task that waits for an answer.

    Who has no session of its own has an hour's budget instead, and no task: the next message may be another client's.
    """
    key, lasting = _key(actor)
    row = hold(tx, actor.tenant, key)
    # Only now: whoever waited for the row comes after the one that had it.
    at = now_ms(tx)
    over = not lasting and at - row.since_ms >= HOUR_MS
    calls, agents, since = (0, {}, at) if over else (row.calls, dict(row.agents), row.since_ms)
    if (
        (budget.calls and calls >= budget.calls)
        or (budget.agents and base not in agents and len(agents) >= budget.agents)
        or at - row.last_ms < budget.pause_ms
    ):
        raise RateLimited(
            "this session may not ask a remote agent now", hint="go on without one, or try once more later"
        )
    open_task: Open = agents.get(base, {}) if lasting else {}
    _set(tx, actor.tenant, key, calls + 1, {**agents, base: {}}, since, at)
    if row.calls == 0:
        tx.all(_FORGET, {"of_tenant": actor.tenant, "until_ms": at - KEPT_MS})
    return open_task


def note_waiting(tx: Tx, actor: Actor, base: str, open_task: Open) -> None:
    """Keep that the agent at `base` waits for an answer, which the session's next message to it will be.

    Not for a session that several clients share: the next message may be another's.
    """
    key, lasting = _key(actor)
    if not lasting:
        return
    row = hold(tx, actor.tenant, key)
    _set(tx, actor.tenant, key, row.calls, {**row.agents, base: open_task}, row.since_ms, row.last_ms)


def _set(tx: Tx, tenant: str, key: str, calls: int, agents: Any, since: int, last: int) -> None:
    new = {"new_calls": calls, "new_agents": agents, "new_since": since, "new_last": last}
    tx.one(_SET, {"of_tenant": tenant, "of_session": key, **new})


def is_own_session(actor: Actor) -> bool:
    """Whether nobody else acts in the session."""
    return _key(actor)[1]


def _key(actor: Actor) -> tuple[str, bool]:
    """Whose budget it is, and whether it lasts for the whole session."""
    if actor.session is None or actor.shared_session:
        return f"subject:{actor.subject}", False
    return f"session:{actor.session}", True

"""Keeps sessions and their messages. A change is one guarded statement, and whoever hosts the agent is woken by it."""

import hashlib
import secrets
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import sqlalchemy as sa

from rookery.core.actor import Actor, Mode
from rookery.core.admission import storable
from rookery.core.errors import Conflict, NotFound, ValidationFailed
from rookery.core.ids import new_id
from rookery.db.clock import now_ms
from rookery.db.tx import Tx
from rookery.identity.binding import Binding, binding_again, bound_by, inherited, stricter
from rookery.jobs.store import Jobs
from rookery.lifecycle.sessions import Outcome
from rookery.sessions.tables import (
    DROPPED,
    ENDED,
    IDLE,
    QUEUED,
    RUNNING,
    STATES,
    TAKEN,
    WAITING,
    agent_sessions,
    session_messages,
)

Row = sa.Row[Any]
Origin = Literal["user", "message", "orchestrator", "schedule", "work", "workflow", "a2a"]
MessageState = Literal["done", "lost", "dropped"]
TURN = "sessions.turn"
MAX_TEXT = 1_000_000
MAX_TITLE = 200
MAX_QUEUED = 100
_PLACE = ("agent", "project", "issue", "worktree", "cwd", "project_slug", "symphony_dir")
_s, _m = agent_sessions.c, session_messages.c
# Built once: every call of an agent asks it, and to build it costs more than to run it.
_ONE = sa.select(agent_sessions).where(_s.tenant == sa.bindparam("of_tenant"), _s.id == sa.bindparam("wanted"))
_MESSAGE = sa.select(session_messages).where(_m.tenant == sa.bindparam("of_tenant"), _m.id == sa.bindparam("wanted"))
_IN_STATE = (
    *(_m.tenant == sa.bindparam("of_tenant"), _m.session_id == sa.bindparam("of_session")),
    _m.state == sa.bindparam("in_state"),
)
_FIRST = sa.select(session_messages).where(*_IN_STATE).order_by(_m.job_id).limit(1)
_HOW_MANY = sa.select(sa.func.count()).where(*_IN_STATE)


@dataclass(frozen=True, slots=True, kw_only=True)
class NewSession:
    """A session to be kept. Its `actor` is the agent as it is bound: no change of mode leads beyond the actor's."""

    actor: Actor
    runtime: str
    mode: Mode
    opened_by: str
    origin: Origin = "user"
    title: str = ""
    model: str | None = None
    cwd: str | None = None
    servers: Mapping[str, Any] = field(default_factory=dict[str, Any])
    id: str | None = None


@dataclass(frozen=True, slots=True)
class Queued:
    """A message, and how many are before it: 0 if it is its turn."""

    message: Row
    position: int


@dataclass(frozen=True, slots=True)
class Stats:
    """How many sessions there are in each state, and what all of them have used."""

    states: Mapping[str, int]
    turns: int
    cost_micros: int
    input_tokens: int
    output_tokens: int


def control_name(session_id: str) -> str:
    """What the host of the session's agent is woken by."""
    return f"session:{session_id}"


def hash_of(key: str) -> str:
    return hashlib.sha256(key.encode(errors="surrogatepass")).hexdigest()


def binding_of(row: Row) -> Binding:
    """With what the rights of the session's agent are looked up, now and for each of its calls."""
    kept: dict[str, Any] = row.binding
    place = {name: kept.get(name) for name in _PLACE}
    held = bound_by(kept["held"])
    held["mode"] = stricter(row.mode, held["mode"])
    return Binding(tenant=row.tenant, session=row.id, **place, **held)


def is_unattended(row: Row) -> bool:
    """Whether nobody sits before the session, so that nobody is asked for long."""
    return bool(row.binding.get("unattended"))


class SessionRows:
    """The sessions of one tenant. Those in `closed` projects do not exist for the caller."""

    def __init__(self, tx: Tx, tenant: str, closed: frozenset[str] = frozenset()) -> None:
        self.tx = tx
        self.tenant = tenant
        self._closed = closed

    def create(self, new: NewSession) -> Row:
        """Keep a session. One of the same id that is there already is returned, and goes on if a job had ended it."""
        at = now_ms(self.tx)
        session_id = new.id or new_id("ses")
        actor = new.actor
        bound = binding_again(actor)
        kept = {name: getattr(bound, name) for name in _PLACE}
        values = {
            "id": session_id,
            "tenant": self.tenant,
            "agent": actor.agent,
            "project_id": actor.project,
            "issue_id": actor.issue,
            "title": new.title.strip()[:MAX_TITLE],
            "origin": new.origin,
            "opened_by": new.opened_by,
            "runtime": new.runtime,
            "model": new.model,
            "mode": new.mode,
            "cwd": new.cwd,
            "state": IDLE,
            "binding": {**kept, "cwd": new.cwd, "held": inherited(actor), "unattended": actor.unattended},
            "servers": dict(new.servers),
            "created_ms": at,
            "active_ms": at,
            **dict.fromkeys(("interrupts", "event_count", "turns", "cost_micros", "input_tokens", "output_tokens"), 0),
        }
        there = self.find(session_id) if new.id is not None else None
        if there is not None:
            again = {"state": IDLE, "ended_ms": None}
            return self._change(there.id, again, _s.state == ENDED, _s.origin != "user") or there
        made = self.tx.one(sa.insert(agent_sessions).values(**values).returning(*agent_sessions.c))
        assert made is not None
        return made

    def find(self, session_id: str) -> Row | None:
        """The session of this id, ours or the runtime's; None if the caller knows of none."""
        # What no database can store is in none, and asking would be an error.
        if not storable(session_id):
            return None
        found = self.tx.one(_ONE, {"of_tenant": self.tenant, "wanted": session_id})
        if found is not None and found.project_id not in self._closed:
            return found
        mine = sa.select(agent_sessions).where(*self._seen, _s.native_id == session_id)
        return self.tx.one(mine.order_by(_s.active_ms.desc()).limit(1))

    def of(self, session_id: str) -> Row:
        """The same; NotFound if there is none."""
        row = self.find(session_id)
        if row is None:
            raise NotFound(f"there is no session {session_id[:100]}", hint="list_sessions names them")
        return row

    def page(
        self,
        limit: int,
        *,
        before: tuple[int, str] | None = None,
        state: str | None = None,
        agent: str | None = None,
        cwd: str | None = None,
    ) -> Sequence[Row]:
        """Sessions, those that were active last first; those after `before`, the `active_ms` and `id` of one."""
        wanted = sa.select(agent_sessions).where(*self._which(state, agent, cwd)).limit(limit)
        if before is not None:
            place = sa.tuple_(sa.literal(before[0], sa.BigInteger), sa.literal(before[1]))
            wanted = wanted.where(sa.tuple_(_s.active_ms, _s.id) < place)
        return self.tx.all(wanted.order_by(_s.active_ms.desc(), _s.id.desc()))

    def stats(self, agent: str | None = None, cwd: str | None = None) -> Stats:
        """What there is and what was used, by all sessions or those of one agent."""
        sums = ("turns", "cost_micros", "input_tokens", "output_tokens")
        # A sum of whole numbers is a decimal on one of the databases.
        columns = [sa.cast(sa.func.coalesce(sa.func.sum(_s[name]), 0), sa.BigInteger).label(name) for name in sums]
        wanted = sa.select(_s.state, sa.func.count().label("how_many"), *columns).where(*self._which(None, agent, cwd))
        rows = self.tx.all(wanted.group_by(_s.state))
        states = {**dict.fromkeys(STATES, 0), **{row.state: row.how_many for row in rows}}
        used: dict[str, int] = {name: sum(getattr(row, name) for row in rows) for name in sums}
        return Stats(states, **used)

    def counts(self, agent: str | None = None) -> Mapping[str, int]:
        """How many there are in each state."""
        return self.stats(agent).states

    def _which(self, state: str | None, agent: str | None, cwd: str | None) -> list[sa.ColumnElement[bool]]:
        given = ((_s.state, state), (_s.agent, agent), (_s.cwd, cwd))
        return [*self._seen, *(column == value for column, value in given if value is not None)]

    @property
    def _seen(self) -> tuple[sa.ColumnElement[bool], ...]:
        mine = _s.tenant == self.tenant
        if not self._closed:
            return (mine,)
        return mine, sa.or_(_s.project_id.is_(None), _s.project_id.not_in(sorted(self._closed)))

    # Messages

    def queue(self, session_id: str, text: str, sent_by: str, message_id: str | None = None) -> Queued:
        """Let the agent be told this when its turn has come. The same id again adds nothing."""
        if not text.strip() or len(text) > MAX_TEXT or not storable(text):
            raise ValidationFailed(f"a message has 1 to {MAX_TEXT} characters", hint="put long texts into a file")
        session = self.of(session_id)
        message_id = message_id or new_id("msg")
        there = self.message(session.id, message_id)
        if there is not None:
            return Queued(there, self._before(there))
        # The row is locked by this, so that the session cannot end meanwhile, nor the same message come twice.
        if self._change(session.id, {"active_ms": now_ms(self.tx)}, _s.state != ENDED) is None:
            raise Conflict(f"the session {session.id} has ended", hint="start another one")
        there = self.message(session.id, message_id)
        if there is not None:
            return Queued(there, self._before(there))
        if self._waiting(session.id) >= MAX_QUEUED:
            raise Conflict(f"{MAX_QUEUED} messages wait already", hint="wait until some are done, or drop some")
        job = Jobs(self.tx, self.tenant).defer(
            TURN, {"session_id": session.id, "message_id": message_id}, lock=control_name(session.id), attempts=3
        )
        values = {"id": message_id, "tenant": self.tenant, "session_id": session.id, "text": text, "state": QUEUED}
        more = {"sent_by": sent_by, "job_id": job, "created_ms": now_ms(self.tx)}
        made = self.tx.one(sa.insert(session_messages).values(**values, **more).returning(*session_messages.c))
        assert made is not None
        return Queued(made, self._before(made))

    def message(self, session_id: str, message_id: str) -> Row | None:
        row = self.tx.one(_MESSAGE, {"of_tenant": self.tenant, "wanted": message_id})
        if row is not None and row.session_id != session_id:
            raise Conflict("this message was sent to another session", hint="give it an id of its own")
        return row

    def messages(self, session_id: str, limit: int = 200) -> Sequence[Row]:
        """The newest messages, in the order in which they came."""
        wanted = sa.select(session_messages).where(*self._of(session_id))
        rows = self.tx.all(wanted.order_by(_m.created_ms.desc(), _m.job_id.desc()).limit(limit))
        return list(reversed(rows))

    def first(self, session_id: str, state: str) -> Row | None:
        """The first of its messages that is in this state."""
        return self.tx.one(_FIRST, {"of_tenant": self.tenant, "of_session": session_id, "in_state": state})

    def take(self, session_id: str) -> Row | None:
        """Begin with the message that has waited longest; None if none waits.

        Of a session's messages one job each is done, one at a time; which of them does which message is all the same.
        """
        first = self.first(session_id, QUEUED)
        if first is None:
            return None
        mine = (_m.tenant == self.tenant, _m.id == first.id, _m.state == QUEUED)
        taken = {"state": TAKEN, "taken_ms": now_ms(self.tx)}
        return self.tx.one(sa.update(session_messages).where(*mine).values(**taken).returning(*session_messages.c))

    def end_message(self, message_id: str, state: MessageState, run_id: str | None = None) -> None:
        """Note what became of it. What was said first stays."""
        mine = (_m.tenant == self.tenant, _m.id == message_id, _m.state.in_((QUEUED, TAKEN)))
        ended = {"state": state, "ended_ms": now_ms(self.tx), "run_id": run_id}
        self.tx.run(sa.update(session_messages).where(*mine).values(**ended))

    def drop(self, session_id: str, message_id: str) -> Row:
        """Take back a message that waits."""
        session = self.of(session_id)
        row = self.message(session.id, message_id)
        if row is None:
            raise NotFound(f"the session has no message {message_id[:100]}", hint="give the id as it was returned")
        mine = (_m.tenant == self.tenant, _m.id == message_id, _m.state == QUEUED)
        dropped = {"state": DROPPED, "ended_ms": now_ms(self.tx)}
        gone = self.tx.one(sa.update(session_messages).where(*mine).values(**dropped).returning(*session_messages.c))
        if gone is None:
            raise Conflict(f"the message is {row.state} already", hint="interrupt_session ends a turn")
        Jobs(self.tx, self.tenant).cancel(gone.job_id, "taken back")
        return gone

    def _of(self, session_id: str) -> tuple[sa.ColumnElement[bool], ...]:
        return _m.tenant == self.tenant, _m.session_id == session_id

    def _waiting(self, session_id: str) -> int:
        return self.tx.scalar(_HOW_MANY, {"of_tenant": self.tenant, "of_session": session_id, "in_state": QUEUED})

    def _before(self, row: Row) -> int:
        if row.state != QUEUED:
            return 0
        earlier = (_m.state.in_((QUEUED, TAKEN)), _m.job_id < row.job_id)
        return self.tx.scalar(sa.select(sa.func.count()).where(*self._of(row.session_id), *earlier))

    # What people want of a session

    def change(
        self, session_id: str, *, mode: Mode | None = None, model: str | None = None, title: str | None = None
    ) -> Row:
        """Change what is given. A turn that is under way goes on with it."""
        given = {"mode": mode, "model": model, "title": None if title is None else title.strip()[:MAX_TITLE]}
        return self._living(session_id, {name: value for name, value in given.items() if value is not None})

    def interrupt(self, session_id: str) -> Row:
        """Let the turn end that is under way; what waits comes after it."""
        return self._living(session_id, {"interrupts": _s.interrupts + 1})

    def end(self, session_id: str, error: str | None = None) -> Row:
        """End the session for good. What waits is dropped, and the turn that is under way is stopped."""
        row = self._living(session_id, {"state": ENDED, "ended_ms": now_ms(self.tx), "error": error, "pass_hash": None})
        for message in self.tx.all(sa.select(session_messages).where(*self._of(row.id), _m.state == QUEUED)):
            self.drop(row.id, message.id)
        return row

    def _living(self, session_id: str, values: dict[str, Any]) -> Row:
        session = self.of(session_id)
        changed = self._change(session.id, {**values, "active_ms": now_ms(self.tx)}, _s.state != ENDED)
        if changed is None:
            raise Conflict(f"the session {session.id} has ended", hint="start another one")
        self.tx.wake(control_name(session.id))
        return changed

    # What its host notes

    def began(self, seen: Row, run_id: str) -> Row | None:
        """A turn of the session has begun, as it was seen; None if it has ended or is at another turn meanwhile."""
        same = _s.run_id.is_(None) if seen.run_id is None else _s.run_id == seen.run_id
        values = {"state": RUNNING, "run_id": run_id, "active_ms": now_ms(self.tx)}
        return self._change(seen.id, values, _s.state != ENDED, same)

    def waits(self, session_id: str, *, for_person: bool) -> None:
        """Whether its turn waits for somebody."""
        now, then = (WAITING, RUNNING) if for_person else (RUNNING, WAITING)
        self._change(session_id, {"state": now}, _s.state == then)

    def note(
        self, session_id: str, *, run_id: str | None = None, models: Collection[str | None] = (), **values: Any
    ) -> None:
        """Keep what the runtime said of itself: native_id, model, context_tokens, context_max.

        With a `run_id` it counts as long as that is the run of the newest turn. A `model` is kept if the one that is
        wanted is among `models`, so that nobody's choice is undone by an agent that was started before it.
        """
        if "model" in values:
            named = [model for model in models if model is not None]
            same = sa.or_(_s.model.in_(named), sa.and_(_s.model.is_(None), sa.literal(None in models)))
            values["model"] = sa.case((same, values["model"]), else_=_s.model)
        self._change(session_id, values, *([] if run_id is None else [_s.run_id == run_id]))

    def turn_over(self, session_id: str, run_id: str, outcome: Outcome, error: str | None = None) -> Row | None:
        """The turn of that run is over, and this is what it has used. A session that is at another turn stays so."""
        turns, taken, given = outcome.counts
        used = {"cost_micros": outcome.cost_micros, "turns": turns, "input_tokens": taken, "output_tokens": given}
        at = now_ms(self.tx)
        values: dict[str, Any] = {name: _s[name] + number for name, number in used.items()}
        other = sa.or_(_s.run_id.is_(None), _s.run_id != run_id, _s.state.not_in((RUNNING, WAITING)))
        # What a job wanted is done; unless a person has joined in, nobody has anything more to say there.
        over = sa.and_(_s.origin != "user", sa.literal(self._waiting(session_id) == 0))
        values["state"] = sa.case((other, _s.state), (over, ENDED), else_=IDLE)
        values["ended_ms"] = sa.case((other, _s.ended_ms), (over, at), else_=None)
        values["error"] = sa.case((other, _s.error), else_=error)
        return self._change(session_id, {**values, "active_ms": at})

    def new_pass(self, session_id: str) -> str:
        """A new key with which programs bind themselves to the session; the one before counts no more."""
        key = secrets.token_urlsafe(32)
        self._change(session_id, {"pass_hash": hash_of(key)}, _s.state != ENDED)
        return key

    def _change(self, session_id: str, values: dict[str, Any], *guards: sa.ColumnElement[bool]) -> Row | None:
        mine = (_s.tenant == self.tenant, _s.id == session_id, *guards)
        return self.tx.one(sa.update(agent_sessions).where(*mine).values(**values).returning(*agent_sessions.c))


def of_pass(tx: Tx, key: str) -> Row | None:
    """The session of whatever tenant that this key belongs to, as long as it is at a turn."""
    at_work = _s.state.in_((RUNNING, WAITING))
    return tx.one(sa.select(agent_sessions).where(_s.pass_hash == hash_of(key), at_work))

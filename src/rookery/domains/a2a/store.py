"""Keeps the tasks that came in. A task moves on by guarded statements only, and once it is over it stays so."""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import sqlalchemy as sa

from rookery.core.ids import new_id
from rookery.db.clock import DbNow, now_ms
from rookery.db.tx import Tx
from rookery.domains.a2a.tables import tasks

WAKE = "a2a"
OPEN = ("submitted", "working")
MAX_ANSWER = 100_000
MINUTE_MS = 60_000
DAY_MS = 86_400_000
BEFORE = 10
TOO_LATE = "not done within its time"
Row = sa.Row[Any]
State = Literal["completed", "failed", "canceled"]

_t = tasks.c
_MINE = _t.tenant == sa.bindparam("of_tenant")
_ONE = (_MINE, _t.id == sa.bindparam("the_id"))
_SENT = (_MINE, _t.sender == sa.bindparam("of_sender"))
_OF = sa.select(tasks).where(*_ONE)
_TWIN = sa.select(tasks).where(*_SENT, _t.message_id == sa.bindparam("the_message"))
_RECENT = sa.select(sa.func.count().label("sent"), sa.func.min(_t.created_ms).label("first_ms")).where(
    *_SENT, _t.created_ms > sa.bindparam("since_ms")
)
_BEFORE = (
    sa.select(tasks)
    .where(
        *_SENT,
        _t.context_id == sa.bindparam("the_context"),
        _t.id != sa.bindparam("the_id"),
        _t.created_ms <= sa.bindparam("until_ms"),
    )
    .order_by(_t.created_ms.desc(), _t.id.desc())
    .limit(BEFORE)
)
_OTHERS = sa.select(_t.id).where(
    _MINE, _t.context_id == sa.bindparam("the_context"), _t.sender != sa.bindparam("of_sender")
)
_STILL_OPEN = _t.state.in_(OPEN)
_NOW: dict[str, Any] = {"updated_ms": DbNow()}
_BEGIN = sa.update(tasks).where(*_ONE, _STILL_OPEN).values(state="working", **_NOW).returning(tasks)
_NOTE = (
    sa.update(tasks)
    .where(*_ONE, _STILL_OPEN)
    .values(session_id=sa.bindparam("the_session"), **_NOW)
    .returning(tasks.c.id)
)
_END = (
    sa.update(tasks)
    .where(*_ONE, _STILL_OPEN)
    .values(
        state=sa.bindparam("new_state"),
        answer=sa.bindparam("the_answer"),
        error=sa.bindparam("the_error"),
        ended_ms=DbNow(),
        **_NOW,
    )
    .returning(tasks)
)
_DUE_MS = _t.created_ms + _t.limit_ms
_EXPIRE = (
    sa.update(tasks)
    .where(_MINE, _STILL_OPEN, DbNow() >= _DUE_MS)
    .values(
        state="failed",
        error=TOO_LATE,
        ended_ms=DbNow(),
        **_NOW,
    )
)
_EXPIRE_ONE = _EXPIRE.where(_t.id == sa.bindparam("the_id")).returning(tasks.c.id)
_EXPIRE_SENT = _EXPIRE.where(_t.sender == sa.bindparam("of_sender")).returning(tasks.c.id)
_OVERDUE = sa.select(_t.id).where(*_SENT, _STILL_OPEN, DbNow() >= _DUE_MS).limit(1)
_COUNT_OPEN = sa.select(sa.func.count()).select_from(tasks).where(*_SENT, _STILL_OPEN)
_FORGET = sa.delete(tasks).where(_MINE, _t.created_ms < sa.bindparam("until_ms"), ~_STILL_OPEN).returning(tasks.c.id)


@dataclass(frozen=True, slots=True, kw_only=True)
class NewTask:
    """What is known of a task when it comes in. `held` is what its session is held to."""

    message_id: str
    context_id: str
    sender: str
    sender_name: str
    agent_id: str
    agent_name: str
    project_id: str | None
    content: str
    skill: str | None
    held: dict[str, Any]
    limit_ms: int | None


def looks_overdue(row: Row) -> bool:
    """Whether the time of the task is over by this machine's clock; the database's decides."""
    return row.state in OPEN and row.limit_ms is not None and row.created_ms + row.limit_ms <= time.time() * 1000


class Tasks:
    """The tasks of one tenant that came in from elsewhere."""

    def __init__(self, tx: Tx, tenant: str) -> None:
        self.tx = tx
        self.tenant = tenant

    def add(self, new: NewTask, keep_days: int) -> Row:
        """Take a task in; those that are long over go."""
        at = now_ms(self.tx)
        self.tx.all(_FORGET, {"of_tenant": self.tenant, "until_ms": at - keep_days * DAY_MS})
        values = {name: getattr(new, name) for name in new.__dataclass_fields__}
        values |= {"id": new_id("task"), "tenant": self.tenant, "state": "submitted"}
        row = self.tx.one(sa.insert(tasks).values(**values, created_ms=at, updated_ms=at).returning(*tasks.c))
        assert row is not None
        return row

    def of(self, task_id: str, sender: str | None = None) -> Row | None:
        """The task; None if there is none, or it is another sender's."""
        row = self.tx.one(_OF, {"of_tenant": self.tenant, "the_id": task_id})
        return row if row is None or sender in (None, row.sender) else None

    def twin(self, sender: str, message_id: str) -> Row | None:
        """The task that this message of the sender has led to before."""
        return self.tx.one(_TWIN, {"of_tenant": self.tenant, "of_sender": sender, "the_message": message_id})

    def wait_ms(self, sender: str, most: int) -> int:
        """For how long the sender has to wait if it may send so many a minute; 0 if it need not."""
        at = now_ms(self.tx)
        row = self.tx.one(_RECENT, {"of_tenant": self.tenant, "of_sender": sender, "since_ms": at - MINUTE_MS})
        return max(row.first_ms + MINUTE_MS - at, 1) if most and row is not None and row.sent >= most else 0

    def taken(self, context_id: str, sender: str) -> bool:
        """Whether the context is another sender's."""
        given = {"of_tenant": self.tenant, "the_context": context_id, "of_sender": sender}
        return self.tx.one(_OTHERS.limit(1), given) is not None

    def before(self, task: Row) -> Sequence[Row]:
        """What the sender has asked in the same context before, the oldest first."""
        given = {"of_tenant": self.tenant, "of_sender": task.sender, "the_context": task.context_id}
        found = self.tx.all(_BEFORE, {**given, "the_id": task.id, "until_ms": task.created_ms})
        return found[::-1]

    def page(
        self, sender: str, *, context: str, state: str, since_ms: int, after: str, limit: int
    ) -> tuple[Sequence[Row], int]:
        """Some tasks of the sender, the newest first, and how many there are altogether.

        `after` is the id of the last one of the page before: ids sort by the time they were made.
        """
        wanted = [_t.tenant == self.tenant, _t.sender == sender]
        wanted += [_t.context_id == context] if context else []
        wanted += [_t.state == state] if state else []
        wanted += [_t.updated_ms >= since_ms] if since_ms else []
        total = self.tx.scalar(sa.select(sa.func.count()).select_from(tasks).where(*wanted))
        wanted += [_t.id < after] if after else []
        return self.tx.all(sa.select(tasks).where(*wanted).order_by(_t.id.desc()).limit(limit)), total

    def begin(self, task_id: str) -> Row | None:
        """The task, which is under way from now on; None if it is over, or its time is."""
        self._moved(_EXPIRE_ONE, task_id)
        return self._moved(_BEGIN, task_id)

    def expire(self, task_id: str) -> Row | None:
        """Fail the task if its time is over, and bring back how it is then; None if there is no such task."""
        self._moved(_EXPIRE_ONE, task_id)
        return self.of(task_id)

    def expire_all(self, sender: str) -> None:
        """The same for all tasks of a sender."""
        if self.tx.all(_EXPIRE_SENT, {"of_tenant": self.tenant, "of_sender": sender}):
            self.tx.wake(WAKE)

    def has_overdue(self, sender: str) -> bool:
        """Whether a task of the sender is not over and its time is."""
        return self.tx.scalar(_OVERDUE, {"of_tenant": self.tenant, "of_sender": sender}) is not None

    def open_of(self, sender: str) -> int:
        """How many tasks of the sender are not over."""
        return self.tx.scalar(_COUNT_OPEN, {"of_tenant": self.tenant, "of_sender": sender})

    def note_session(self, task_id: str, session_id: str) -> bool:
        """Keep which session does it; False if it is over meanwhile."""
        return self._moved(_NOTE, task_id, the_session=session_id) is not None

    def end(self, task_id: str, state: State, *, answer: str | None = None, error: str | None = None) -> Row | None:
        """Bring the task to its end; None if it is over already."""
        kept = None if answer is None else answer.replace("\0", "")[:MAX_ANSWER].encode("utf-8", "replace").decode()
        return self._moved(_END, task_id, new_state=state, the_answer=kept, the_error=error)

    def _moved(self, statement: sa.Executable, task_id: str, **values: Any) -> Row | None:
        row = self.tx.one(statement, {"of_tenant": self.tenant, "the_id": task_id, **values})
        if row is not None:
            self.tx.wake(WAKE)
        return row

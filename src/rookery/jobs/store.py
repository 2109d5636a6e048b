"""Deferring work and looking at it. Everything here is part of the caller's own transaction."""

from collections.abc import Mapping, Sequence
from typing import Any

import sqlalchemy as sa
from pydantic import BaseModel
from sqlalchemy.dialects import postgresql, sqlite

from rookery.db.clock import DbNow
from rookery.db.tx import Tx
from rookery.jobs.kinds import Kind
from rookery.jobs.tables import OVER, jobs

WAKE = "jobs"
CANCEL = "jobs:cancel"
Row = sa.Row[Any]

_VALUES: dict[str, Any] = {
    **{name: sa.bindparam(name) for name in ("tenant", "kind", "queue", "key", "lock_key", "attempts", "backoff_ms")},
    "args": sa.bindparam("args", type_=sa.JSON),
    "state": "waiting",
    "due_ms": sa.func.coalesce(sa.bindparam("at_ms", type_=sa.BigInteger), DbNow())
    + sa.bindparam("delay_ms", type_=sa.BigInteger),
    "attempt": 0,
    "failures": 0,
    "losses": 0,
    "cancel": False,
    "created_ms": DbNow(),
}
_DEFER = {
    name: dialect.insert(jobs).values(_VALUES).on_conflict_do_nothing().returning(jobs.c.id)
    for name, dialect in (("sqlite", sqlite), ("postgresql", postgresql))
}
_MINE = jobs.c.tenant == sa.bindparam("of_tenant")
_OF = sa.select(jobs).where(_MINE, jobs.c.id == sa.bindparam("job_id"))
_BY_KEY = sa.select(jobs).where(_MINE, jobs.c.key == sa.bindparam("wanted"))
_DROP = (
    sa.update(jobs)
    .where(_MINE, jobs.c.id == sa.bindparam("job_id"), jobs.c.state == "waiting")
    .values(state="cancelled", cancel=True, ended_ms=DbNow(), error=sa.bindparam("reason"))
    .returning(jobs.c.id)
)
_ASK = (
    sa.update(jobs)
    .where(_MINE, jobs.c.id == sa.bindparam("job_id"), jobs.c.state == "running")
    .values(cancel=True)
    .returning(jobs.c.id)
)

_RELEASE = (
    sa.update(jobs)
    .where(_MINE, jobs.c.state == "waiting", jobs.c.waits_for == sa.bindparam("name"))
    .values(due_ms=DbNow(), waits_for=None)
    .returning(jobs.c.id)
)


class Jobs:
    """The deferred work of one tenant."""

    def __init__(self, tx: Tx, tenant: str) -> None:
        self.tx = tx
        self.tenant = tenant

    def defer(
        self,
        kind: Kind | str,
        args: BaseModel | Mapping[str, Any],
        *,
        at_ms: int | None = None,
        delay_ms: int = 0,
        key: str | None = None,
        lock: str | None = None,
        queue: str | None = None,
        attempts: int | None = None,
        backoff_s: float | None = None,
    ) -> int:
        """Let a worker do this once the transaction is committed and the time has come; the job's id.

        A `key` lasts: if the tenant ever deferred a job of that key that is still kept, nothing is added and its id
        comes back. Of jobs with one `lock` only one runs at a time.
        """
        known = kind if isinstance(kind, Kind) else None
        values = {
            "tenant": self.tenant,
            "kind": known.name if known is not None else kind,
            "queue": queue or (known.queue if known is not None else "default"),
            "args": args.model_dump(mode="json") if isinstance(args, BaseModel) else dict(args),
            "key": key,
            "lock_key": lock,
            "at_ms": at_ms,
            "delay_ms": delay_ms,
            "attempts": attempts if attempts is not None else known.attempts if known is not None else 3,
            "backoff_ms": round(1000 * (backoff_s if backoff_s is not None else known.backoff_s if known else 5.0)),
        }
        made = self.tx.scalar(_DEFER[self.tx.dialect], values)
        if made is None:
            first = self.by_key(key or "")
            assert first is not None
            return first.id
        self.tx.wake(WAKE)
        return made

    def of(self, job_id: int) -> Row | None:
        """A job by its id."""
        return self.tx.one(_OF, {"of_tenant": self.tenant, "job_id": job_id})

    def by_key(self, key: str) -> Row | None:
        """The job that was deferred under `key`."""
        return self.tx.one(_BY_KEY, {"of_tenant": self.tenant, "wanted": key})

    def cancel(self, job_id: int, reason: str = "cancelled") -> bool:
        """Give a job up; whether there was anything to give up.

        One that waits is cancelled here and now, and the caller does what has to follow. One that runs is told to
        stop, and its kind's `ended` follows when it has.
        """
        values = {"of_tenant": self.tenant, "job_id": job_id}
        if self.tx.one(_DROP, {**values, "reason": reason}) is not None:
            self.tx.wake(WAKE)
            return True
        if self.tx.one(_ASK, values) is None:
            return False
        self.tx.wake(CANCEL)
        return True

    def cancel_key(self, key: str, reason: str = "cancelled") -> bool:
        """The same by key."""
        found = self.by_key(key)
        return found is not None and self.cancel(found.id, reason)

    def release(self, name: str) -> int:
        """Let what was postponed until somebody says this name be due now; how many jobs that are."""
        released = len(self.tx.all(_RELEASE, {"of_tenant": self.tenant, "name": name}))
        if released:
            self.tx.wake(WAKE)
        return released

    def page(
        self, *, states: Sequence[str] = (), kind: str | None = None, queue: str | None = None, limit: int = 50
    ) -> Sequence[Row]:
        """The newest jobs of some states, a kind or a queue."""
        wanted = sa.select(jobs).where(jobs.c.tenant == self.tenant).order_by(jobs.c.id.desc()).limit(limit)
        if states:
            wanted = wanted.where(jobs.c.state.in_(states))
        if kind is not None:
            wanted = wanted.where(jobs.c.kind == kind)
        if queue is not None:
            wanted = wanted.where(jobs.c.queue == queue)
        return self.tx.all(wanted)

    def counts(self) -> dict[str, int]:
        """How many jobs there are in each state."""
        counted = sa.select(jobs.c.state, sa.func.count().label("n")).where(jobs.c.tenant == self.tenant)
        return {row.state: row.n for row in self.tx.all(counted.group_by(jobs.c.state))}


def is_over(row: Row) -> bool:
    """Whether nothing will happen to the job any more."""
    return row.state in OVER

"""What a worker does to the table: take jobs, keep them, and let go of them. The attempt number fences every write.

The same statements on both databases. A lease is measured by the database's clock alone, so a worker whose own clock
is wrong takes nothing too early and keeps nothing too long.
"""

import json
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import sqlalchemy as sa

from rookery.db.clock import NOW
from rookery.db.tx import Tx
from rookery.jobs.store import WAKE

MAX_LOSSES = 10
"""So many workers may die with a job before it is taken for the cause."""
MAX_ERROR = 2000
LONGEST_BACKOFF_MS = 3_600_000
_LOCKED = 0x4A4F42  # "JOB": on PostgreSQL one worker at a time chooses among jobs with lock keys
Row = sa.Row[Any]


@dataclass(frozen=True, slots=True)
class Claimant:
    """Who takes jobs: its name, how long it keeps them without a sign of life, what it knows and looks after."""

    name: str
    lease_ms: int
    kinds: tuple[str, ...]
    queues: tuple[str, ...] = ()
    """Empty: every queue."""


class Held(Exception):
    """Another worker has the job now, or it is over. Nothing was written."""


# A list is one value of a statement that never changes: one that grows with its lists is written anew for every call.
_LISTED = {"sqlite": "IN (SELECT value FROM json_each(:{name}))", "postgresql": "= ANY(:{name})"}


def _text(statement: str, returns: str = "") -> dict[str, Any]:
    """The statement for both dialects; `{kinds}`, `{queues}` and `{ids}` are tests of whether a list has a value.

    SQLAlchemy works out only once where the columns are if it is told all that the statement `returns`, in their order.
    """
    found: dict[str, Any] = {}
    for dialect, now in NOW.items():
        written = statement.replace("{now}", now)
        written = written.replace("{skip}", "FOR UPDATE SKIP LOCKED" if dialect == "postgresql" else "")
        written = written.replace("{kept}", "AS MATERIALIZED" if dialect == "postgresql" else "AS")
        for name in ("kinds", "queues", "ids"):
            written = written.replace(f"{{{name}}}", _LISTED[dialect].format(name=name))
        found[dialect] = _returning(sa.text(written), returns) if returns else sa.text(written)
    return found


def _returning(statement: sa.TextClause, names: str) -> sa.TextualSelect:
    columns: list[sa.ColumnClause[Any]] = [
        sa.column(name, sa.JSON if name == "args" else None) for name in names.split(", ")
    ]
    return statement.columns(*columns)


def _list(dialect: str, values: Sequence[Any]) -> Any:
    return json.dumps([*values]) if dialect == "sqlite" else list(values)


_KNOWN = "kind {kinds} AND (:every OR queue {queues})"
_TAKE = (
    "UPDATE jobs SET state = 'running', attempt = attempt + 1, worker = :worker, lease_ms = {now} + :lease, "
    "started_ms = {now}, progress = NULL, waits_for = NULL"
)
_GIVEN = (
    "id, tenant, kind, args, key, lock_key, attempt, failures, losses, attempts, backoff_ms, cancel, due_ms, started_ms"
)
_FREE = _text(
    f"WITH chosen {{kept}} (SELECT id FROM jobs WHERE state = 'waiting' AND due_ms <= {{now}} AND lock_key IS NULL "
    f"AND {_KNOWN} ORDER BY due_ms, id LIMIT :room {{skip}}) "
    f"{_TAKE} WHERE id IN (SELECT id FROM chosen) RETURNING {_GIVEN}",
    _GIVEN,
)
_SOME_LOCKED = _text(
    f"SELECT 1 AS found FROM jobs WHERE state = 'waiting' AND due_ms <= {{now}} AND lock_key IS NOT NULL AND {_KNOWN} "
    "LIMIT 1",
    "found",
)
_UNHELD = (
    "NOT EXISTS (SELECT 1 FROM jobs AS held WHERE held.tenant = jobs.tenant AND held.lock_key = jobs.lock_key "
    "AND held.state = 'running')"
)
_WITH_LOCK = _text(
    f"WITH chosen {{kept}} (SELECT id FROM jobs WHERE state = 'waiting' AND due_ms <= {{now}} "
    f"AND lock_key IS NOT NULL AND {_KNOWN} AND {_UNHELD} "
    "AND NOT EXISTS (SELECT 1 FROM jobs AS first WHERE first.tenant = jobs.tenant AND first.lock_key = jobs.lock_key "
    "AND first.state = 'waiting' AND first.due_ms <= {now} AND first.kind {kinds} "
    "AND (:every OR first.queue {queues}) AND (first.due_ms, first.id) < (jobs.due_ms, jobs.id)) "
    f"ORDER BY due_ms, id LIMIT :room {{skip}}) {_TAKE} WHERE id IN (SELECT id FROM chosen) RETURNING {_GIVEN}",
    _GIVEN,
)
_LOST = _text(
    f"WITH chosen {{kept}} (SELECT id FROM jobs WHERE state = 'running' AND lease_ms < {{now}} AND {_KNOWN} "
    "ORDER BY lease_ms LIMIT :room {skip}) "
    f"{_TAKE}, losses = losses + 1 WHERE id IN (SELECT id FROM chosen) RETURNING {_GIVEN}",
    _GIVEN,
)
_NEXT = _text(
    "SELECT least_due - {now} AS due, least_locked - {now} AS locked, least_lease - {now} AS lease FROM (SELECT "
    f"(SELECT min(due_ms) FROM jobs WHERE state = 'waiting' AND lock_key IS NULL AND {_KNOWN}) AS least_due, "
    f"(SELECT min(due_ms) FROM jobs WHERE state = 'waiting' AND lock_key IS NOT NULL AND {_KNOWN} AND {_UNHELD}) "
    "AS least_locked, "
    f"(SELECT min(lease_ms) FROM jobs WHERE state = 'running' AND {_KNOWN}) AS least_lease) AS found",
    "due, locked, lease",
)
# Not all that the table has under our name: of what was given to us on a line that broke we know nothing.
_HELD = "WHERE id {ids} AND state = 'running' AND worker = :worker"
_SEEN = "id, attempt, cancel"
_BEAT = _text(f"UPDATE jobs SET lease_ms = {{now}} + :lease {_HELD} RETURNING {_SEEN}", _SEEN)
_LOOK = _text(f"SELECT {_SEEN} FROM jobs {_HELD}", _SEEN)
_FENCE = "WHERE id = :id AND attempt = :attempt AND state = 'running'"
# Asked for a row rather than counted: a statement with its values bound apart is compiled once.
_FENCED = f"{_FENCE} RETURNING id"
_OURS = {
    "sqlite": _returning(sa.text(f"SELECT 1 AS found FROM jobs {_FENCE}"), "found"),
    "postgresql": _returning(sa.text(f"SELECT 1 AS found FROM jobs {_FENCE} FOR UPDATE"), "found"),
}
_END = _text(
    "UPDATE jobs SET state = :state, error = :error, ended_ms = {now}, worker = NULL, lease_ms = NULL, "
    f"failures = failures + :failed {_FENCED}",
    "id",
)
_AGAIN = _text(
    "UPDATE jobs SET state = 'waiting', error = :error, due_ms = {now} + :delay, worker = NULL, lease_ms = NULL, "
    f"failures = failures + :failed, losses = losses + :lost, waits_for = :until {_FENCE}"
)
_PROGRESS = _returning(
    sa.text(f"UPDATE jobs SET progress = :progress {_FENCED}").bindparams(sa.bindparam("progress", type_=sa.JSON)), "id"
)
_PURGE = _text(
    "DELETE FROM jobs WHERE id IN (SELECT id FROM jobs WHERE ended_ms < {now} - :keep ORDER BY ended_ms LIMIT :room)"
)


@lru_cache
def _known(dialect: str, kinds: tuple[str, ...], queues: tuple[str, ...]) -> Mapping[str, Any]:
    return {"kinds": _list(dialect, kinds), "every": not queues, "queues": _list(dialect, queues or ("",))}


class Claims:
    """The jobs of one worker, in an open transaction."""

    def __init__(self, tx: Tx, claimant: Claimant) -> None:
        self.tx = tx
        self.claimant = claimant

    @property
    def _known(self) -> Mapping[str, Any]:
        return _known(self.tx.dialect, self.claimant.kinds, self.claimant.queues)

    def take(self, room: int, *, locked_first: bool) -> list[Row]:
        """Up to `room` jobs that are due, with those of dead workers among them. From here on they are ours."""
        taken = self._some(_LOST, room)
        for way in (self._locked, self._free) if locked_first else (self._free, self._locked):
            taken += way(room - len(taken))
        return taken

    def wait_ms(self) -> int | None:
        """Milliseconds until there may be something to take; None: until somebody defers something."""
        row = self.tx.one(_NEXT[self.tx.dialect], self._known)
        assert row is not None
        # The lease itself has to be over.
        found = [row.due, row.locked, None if row.lease is None else row.lease + 1]
        return min((int(each) for each in found if each is not None), default=None)

    def beat(self, ids: Sequence[int]) -> dict[tuple[int, int], bool]:
        """Keep what we have of these for another lease: by id and attempt, whether it has been cancelled."""
        values = {"ids": _list(self.tx.dialect, ids), "worker": self.claimant.name, "lease": self.claimant.lease_ms}
        return {(row.id, row.attempt): bool(row.cancel) for row in self.tx.all(_BEAT[self.tx.dialect], values)}

    def look(self, ids: Sequence[int]) -> dict[tuple[int, int], bool]:
        """The same without keeping anything."""
        values = {"ids": _list(self.tx.dialect, ids), "worker": self.claimant.name}
        return {(row.id, row.attempt): bool(row.cancel) for row in self.tx.all(_LOOK[self.tx.dialect], values)}

    def _free(self, room: int) -> list[Row]:
        return self._some(_FREE, room)

    def _locked(self, room: int) -> list[Row]:
        if room < 1 or self.tx.one(_SOME_LOCKED[self.tx.dialect], self._known) is None:
            return []
        if self.tx.dialect == "postgresql":
            # Two workers could each take a job of one key, since neither sees yet what the other took.
            self.tx.scalar(sa.text(f"SELECT pg_advisory_xact_lock({_LOCKED})"))
        return self._some(_WITH_LOCK, room)

    def _some(self, statement: dict[str, Any], room: int) -> list[Row]:
        if room < 1:
            return []
        values = {
            **self._known,
            "room": room,
            "worker": self.claimant.name,
            "lease": self.claimant.lease_ms,
        }
        return list(self.tx.all(statement[self.tx.dialect], values))


def fence(tx: Tx, job_id: int, attempt: int) -> None:
    """Refuse to go on unless the attempt still has the job; until the transaction ends nobody can take it over."""
    if tx.one(_OURS[tx.dialect], {"id": job_id, "attempt": attempt}) is None:
        raise Held


def end(tx: Tx, job: Row, state: str, error: str | None = None, *, failed: bool = False) -> None:
    """The job is over."""
    values = {"id": job.id, "attempt": job.attempt, "state": state, "error": _cut(error), "failed": int(failed)}
    if tx.one(_END[tx.dialect], values) is None:
        raise Held
    if job.lock_key is not None:
        tx.wake(WAKE)


def again(
    tx: Tx,
    job: Row,
    error: str | None,
    *,
    failed: bool = False,
    lost: bool = False,
    delay_ms: int = 0,
    until: str | None = None,
) -> None:
    """Let somebody try it again: after the delay, or as soon as what waits for `until` is released."""
    values = {"id": job.id, "attempt": job.attempt, "error": _cut(error), "delay": delay_ms, "until": until}
    if tx.run(_AGAIN[tx.dialect].bindparams(**values, failed=int(failed), lost=int(lost))) == 0:
        raise Held
    tx.wake(WAKE)


def report(tx: Tx, job: Row, progress: dict[str, Any]) -> None:
    """How far the job is."""
    if tx.one(_PROGRESS, {"id": job.id, "attempt": job.attempt, "progress": progress}) is None:
        raise Held


def purge(tx: Tx, keep_days: int, room: int = 1000) -> int:
    """Forget some jobs that have been over for long; how many."""
    return tx.run(_PURGE[tx.dialect].bindparams(keep=keep_days * 86_400_000, room=room))


def backoff_ms(job: Row) -> int:
    """How long to wait after one more failure: twice as long each time, never all at once."""
    full = min(job.backoff_ms * 2 ** min(job.failures, 20), LONGEST_BACKOFF_MS)
    return round(full * random.uniform(0.75, 1.25))


def said(error: str) -> str:
    """What went wrong, as a database can keep it: names of files are not always text, and programs print anything."""
    return error[:MAX_ERROR].replace("\x00", "").encode("utf-8", "replace").decode()


def _cut(error: str | None) -> str | None:
    return None if error is None else said(error)

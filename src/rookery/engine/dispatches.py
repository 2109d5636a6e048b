"""Keeps what was dispatched. Every change is one guarded statement; what has ended stays as it is."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Literal

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql, sqlite

from rookery.core.ids import new_id
from rookery.db.clock import DbNow
from rookery.db.tx import Tx
from rookery.engine.project_settings import Role
from rookery.engine.tables import ALIVE, ENDED, QUEUED, RUNNING, dispatches
from rookery.jobs.store import Jobs
from rookery.lifecycle.issue_tables import WAKE

Row = sa.Row[Any]
Work = Literal["phase", "judge_phase", "judge_pr", "scan", "intake"]
Outcome = Literal["succeeded", "failed", "timed_out", "stalled", "idle", "lost", "cancelled"]
"""`idle`: the agent ended without what it was there for. `lost`: its worker died. `cancelled`: nobody wants it now."""
RUN_KIND = "orchestrator.run"
MAX_ERROR = 2_000
_d = dispatches.c
_MINE = _d.tenant == sa.bindparam("of_tenant")
_THIS = (_MINE, _d.id == sa.bindparam("wanted"))
_ONE = sa.select(dispatches).where(*_THIS)
_OF_ISSUE = (
    sa.select(dispatches)
    .where(_MINE, _d.issue_id == sa.bindparam("wanted"))
    .order_by(_d.created_ms.desc(), _d.id.desc())
    .limit(sa.bindparam("at_most", type_=sa.Integer))
)
_NEW, _LIVING, _ANY = (_d.state == QUEUED,), (_d.state != ENDED,), ()
_Guards = tuple[sa.ColumnElement[bool], ...]


@cache
def _changing(guards: _Guards, names: tuple[str, ...], stamp: str | None) -> sa.Executable:
    """The change of these columns of one dispatch, built once, with the database's time in `stamp`."""
    given = {name: sa.bindparam(f"new_{name}", type_=_d[name].type) for name in names}
    stamps = {name: DbNow() for name in (stamp, "updated_ms") if name is not None}
    return sa.update(dispatches).where(*_THIS, *guards).values(**given, **stamps).returning(*dispatches.c)


@dataclass(frozen=True, slots=True, kw_only=True)
class NewDispatch:
    """An attempt to be made. `about` is what a judge is to judge, `payload` what a scanner or an intake is to do."""

    project_id: str
    work: Work
    role: Role
    agent: str
    issue_id: str | None = None
    phase: str | None = None
    about: str | None = None
    attempt: int = 1
    payload: Mapping[str, Any] = field(default_factory=dict[str, Any])


class Dispatches:
    """The dispatches of one tenant."""

    def __init__(self, tx: Tx, tenant: str) -> None:
        self.tx = tx
        self.tenant = tenant

    def queue(self, new: NewDispatch) -> Row | None:
        """Let a worker start the agent; None if something of the issue, or of this kind in the project, lives."""
        insert = (sqlite if self.tx.dialect == "sqlite" else postgresql).insert(dispatches)
        values = {name: getattr(new, name) for name in NewDispatch.__slots__}
        values |= {"id": new_id("dsp"), "tenant": self.tenant, "state": QUEUED, "payload": dict(new.payload)}
        made = insert.values(**values, created_ms=DbNow(), updated_ms=DbNow()).on_conflict_do_nothing()
        row = self.tx.one(made.returning(*dispatches.c))
        if row is None:
            return None
        job_id = Jobs(self.tx, self.tenant).defer(
            RUN_KIND, {"dispatch_id": row.id}, key=f"dispatch:{row.id}", queue="runs", attempts=1
        )
        return self._change(row.id, _ANY, job_id=job_id)

    def of(self, dispatch_id: str) -> Row | None:
        return self.tx.one(_ONE, {"of_tenant": self.tenant, "wanted": dispatch_id})

    def live(self, project_id: str | None = None) -> Sequence[Row]:
        """What has not ended, oldest first."""
        wanted = sa.select(dispatches).where(_d.tenant == self.tenant, ALIVE)
        if project_id is not None:
            wanted = wanted.where(_d.project_id == project_id)
        return self.tx.all(wanted.order_by(_d.created_ms, _d.id))

    def of_issue(self, issue_id: str, limit: int = 50) -> Sequence[Row]:
        """The attempts at an issue, newest first."""
        return self.tx.all(_OF_ISSUE, {"of_tenant": self.tenant, "wanted": issue_id, "at_most": limit})

    def begin(self, row: Row, **values: Any) -> Row | None:
        """The attempt runs from now on; None if it has begun or ended already."""
        return self._change(row.id, _NEW, "started_ms", state=RUNNING, **values)

    def note(self, row: Row, **values: Any) -> Row | None:
        """Keep something about an attempt that lives; None if it has ended."""
        return self._change(row.id, _LIVING, **values)

    def end(self, dispatch_id: str, outcome: Outcome, error: str | None = None) -> Row | None:
        """The attempt is over, and whoever plans is woken; None if it was over before."""
        said = None if error is None else error[:MAX_ERROR].replace("\0", "").encode("utf-8", "replace").decode()
        row = self._change(dispatch_id, _LIVING, "ended_ms", state=ENDED, outcome=outcome, error=said)
        if row is not None:
            self.tx.wake(WAKE)
        return row

    def stop(self, row: Row, reason: str) -> bool:
        """Have it end, for this reason; whether it lived. One that has not begun ends here."""
        found = self.of(row.id)
        if found is None or found.state == ENDED:
            return False
        # The job first, as those do who work on it: then no two transactions wait for each other.
        Jobs(self.tx, self.tenant).cancel(found.job_id, reason)
        noted = self.note(row, stop=reason[:MAX_ERROR])
        if noted is None:
            return False
        if noted.state == QUEUED:
            self.end(row.id, "cancelled", reason)
        return True

    def _change(self, dispatch_id: str, guards: _Guards, stamp: str | None = None, /, **values: Any) -> Row | None:
        given = {f"new_{name}": value for name, value in values.items()}
        whose = {"of_tenant": self.tenant, "wanted": dispatch_id}
        return self.tx.one(_changing(guards, tuple(values), stamp), {**whose, **given})

"""Which issues are ready and who holds which: the statements. What may be claimed by whom is in lease_moves.py."""

from collections.abc import Sequence
from functools import cache
from typing import Any

import sqlalchemy as sa

from rookery.core.actor import Actor
from rookery.db.tx import Tx
from rookery.domains.tracker.tables import finding_processing, issue_deps, issue_labels
from rookery.identity.store import now_ms
from rookery.lifecycle.issue_tables import issues

NEEDS_PLANNING = "needs-planning"
"""The label that keeps workers away."""
AT_ONCE = 100
"""So many may be claiming at the same moment before one of them is told that nothing is ready though something is."""
_SHOWN = ("id", "identifier", "title", "status", "phase", "priority", "size", "created_ms", "updated_ms")
_TAKE_TURNS = sa.text("SELECT pg_advisory_xact_lock(hashtextextended(:name, 0))")
# Moves on within a transaction, so a call that waited for a lock does not see the time at which it began to wait.
_POSTGRES_NOW = sa.cast(sa.extract("epoch", sa.func.statement_timestamp()) * 1000, sa.BigInteger)

Row = sa.Row[Any]
Condition = sa.ColumnElement[bool]


def db_now(tx: Tx) -> sa.ColumnElement[int]:
    """The time in milliseconds as part of a statement, by the one clock that all who share the database agree on."""
    return sa.literal(now_ms(), sa.BigInteger) if tx.dialect == "sqlite" else _POSTGRES_NOW


class Leases:
    """The leases of the actor's tenant. `take` and `renew` are one guarded statement each."""

    def __init__(self, tx: Tx, actor: Actor) -> None:
        self.tx = tx
        self.actor = actor

    def ready(self, limit: int, phases: Sequence[str] = ()) -> Sequence[Row]:
        """Issues of the bound project that the actor could claim, by priority, then age; of these phases if any.

        Costs what the issues cost that are open for work before the last one found; finished ones are not looked at.
        """
        return self._found(_ready(self.tx.dialect, self._works, bool(phases)), limit, phases)

    def first_ready(self, phases: Sequence[str]) -> Row | None:
        """The first of those, whole. It is locked on PostgreSQL, and what another is just claiming is passed over."""
        # Who writes to SQLite is alone, so there the first one cannot be lost to another.
        enough = 1 if self.tx.dialect == "sqlite" else AT_ONCE
        found = self._found(_first_ready(self.tx.dialect, self._works, bool(phases)), enough, phases)
        return found[0] if found else None

    def own(self) -> Row | None:
        """The issue that the actor's session holds, if it holds one.

        Until the end of the transaction no other call of the same session gets past this.
        """
        actor = self.actor
        if self.tx.dialect == "postgresql":
            name = f"lease:{actor.tenant}:{actor.subject}:{actor.session}"
            self.tx.run(_TAKE_TURNS.bindparams(name=name))
        mine = (issues.c.tenant == actor.tenant, issues.c.lease_subject == actor.subject)
        session = issues.c.lease_session == actor.session
        return self.tx.one(sa.select(issues).where(*mine, session, self._live))

    def look(self, issue: Row) -> Row:
        """The issue as it is now, locked until the end of the transaction, and as `live` whether its lease holds."""
        wanted = sa.select(issues, self._live.label("live")).where(issues.c.id == issue.id)
        row = self.tx.one(wanted.with_for_update())
        assert row is not None
        return row

    def take(self, issue: Row, minutes: int, name: str) -> Row | None:
        """Give the actor a new lease on the issue as it was read; None if it cannot be had or has changed since."""
        same = (issues.c.id == issue.id, issues.c.status == issue.status, issues.c.fence == issue.fence)
        here = (issues.c.tenant == self.actor.tenant, issues.c.project_id == self.actor.project)
        guards = (*same, *here, self._free(issue), *_unhindered(issues, self._works))
        values = {**self._holder(name), "lease_until_ms": self._end(minutes), "fence": issues.c.fence + 1}
        return self._change(guards, {**values, "status": "in_progress", "updated_ms": now_ms()})

    def renew(self, issue: Row, minutes: int, name: str, *, any_session: bool) -> Row | None:
        """Let the actor's live lease end later, never sooner; None if it has none.

        With `any_session` also one that another session of the actor took: from here on it is this session's.
        """
        if issue.lease_subject != self.actor.subject:
            return None
        same = (issues.c.id == issue.id, issues.c.tenant == self.actor.tenant, issues.c.fence == issue.fence)
        mine = [issues.c.lease_subject == self.actor.subject, self._live]
        if not any_session:
            mine.append(issues.c.lease_session == self.actor.session)
        end, now = self._end(minutes), issues.c.lease_until_ms
        later = sa.case((now > end, now), else_=end)
        return self._change((*same, *mine), {**self._holder(name), "lease_until_ms": later})

    def waits_for(self, issue: Row, limit: int = 5) -> Sequence[Row]:
        """Some of the dependencies that are not done."""
        needed = sa.select(issues.c.identifier, issues.c.status)
        needed = needed.join(issue_deps, issue_deps.c.depends_on == issues.c.id)
        unmet = (issue_deps.c.issue_id == issue.id, issues.c.status != "done")
        return self.tx.all(needed.where(*unmet).order_by(issues.c.created_ms, issues.c.id).limit(limit))

    @property
    def _works(self) -> bool:
        return self.actor.profile == "worker"

    @property
    def _live(self) -> Condition:
        return issues.c.lease_until_ms > db_now(self.tx)

    def _free(self, issue: Row) -> Condition:
        """Held by nobody. In progress it must have been: without a lease it is with whom it was given to."""
        none, over = issues.c.lease_until_ms.is_(None), issues.c.lease_until_ms <= db_now(self.tx)
        if issue.status == "todo" or self.actor.kind == "human" or self.actor.issue == issue.id:
            over = sa.or_(none, over)
        return sa.and_(issues.c.status.in_(("todo", "in_progress")), over)

    def _end(self, minutes: int) -> sa.ColumnElement[int]:
        return db_now(self.tx) + minutes * 60_000

    def _holder(self, name: str) -> dict[str, Any]:
        return {"lease_subject": self.actor.subject, "lease_session": self.actor.session, "lease_name": name}

    def _change(self, guards: Sequence[Condition], values: dict[str, Any]) -> Row | None:
        return self.tx.one(sa.update(issues).where(*guards).values(**values).returning(*issues.c))

    def _found(self, statement: sa.Select[Any], limit: int, phases: Sequence[str]) -> Sequence[Row]:
        place = {"tenant": self.actor.tenant, "project": self.actor.project}
        values = {**place, "limit": limit, "phases": list(phases), "now_ms": now_ms()}
        return self.tx.connection.execute(statement, values).all()


# Building these takes longer than running them, so they are built once, with names for what differs from call to call.


@cache
def _ready(dialect: str, works: bool, by_phase: bool) -> sa.Select[Any]:
    """One walk of the index per status, each ended by the limit."""
    walks = [_walk(status, dialect, works, by_phase).subquery(f"first_{status}") for status in ("todo", "in_progress")]
    both = sa.union_all(*(sa.select(walk) for walk in walks)).subquery("both")
    ordered = sa.select(both).order_by(both.c.priority, both.c.created_ms, both.c.id)
    return ordered.limit(sa.bindparam("limit", type_=sa.Integer))


@cache
def _first_ready(dialect: str, works: bool, by_phase: bool) -> sa.Select[Any]:
    ready = _ready(dialect, works, by_phase).subquery("ready")
    # PostgreSQL looks again at what was changed while it waited, but at the row that it locks only.
    over = issues.c.lease_until_ms <= _now(dialect)
    free = sa.or_(sa.and_(issues.c.status == "todo", issues.c.lease_until_ms.is_(None)), over)
    wanted = sa.select(issues).join(ready, ready.c.id == issues.c.id).where(issues.c.status == ready.c.status, free)
    order = (ready.c.priority, ready.c.created_ms, ready.c.id)
    return wanted.order_by(*order).limit(1).with_for_update(of=issues, skip_locked=True)


def _walk(status: str, dialect: str, works: bool, by_phase: bool) -> sa.Select[Any]:
    issue = issues.alias(status)
    here = (issue.c.tenant == sa.bindparam("tenant"), issue.c.project_id == sa.bindparam("project"))
    over = issue.c.lease_until_ms <= _now(dialect)
    free = sa.or_(issue.c.lease_until_ms.is_(None), over) if status == "todo" else over
    found = sa.select(*(issue.c[name] for name in _SHOWN)).where(*here, issue.c.status == status, free)
    if by_phase:
        found = found.where(issue.c.phase.in_(sa.bindparam("phases", expanding=True)))
    ordered = found.where(*_unhindered(issue, works)).order_by(issue.c.priority, issue.c.created_ms, issue.c.id)
    return ordered.limit(sa.bindparam("limit", type_=sa.Integer))


def _now(dialect: str) -> sa.ColumnElement[int]:
    return sa.bindparam("now_ms", type_=sa.BigInteger) if dialect == "sqlite" else _POSTGRES_NOW


@cache
def _unhindered(issue: sa.FromClause, works: bool) -> tuple[Condition, ...]:
    """All that it depends on is done, no claim of it waits, and for a worker it is planned.

    Subqueries that yield a value are run for each row that is looked at. PostgreSQL would turn NOT EXISTS into a join
    with all dependencies there are where that seems cheaper.
    """
    needed = issues.alias("needed")
    unmet = sa.select(needed.c.id).join(issue_deps, issue_deps.c.depends_on == needed.c.id)
    unmet = unmet.where(issue_deps.c.issue_id == issue.c.id, needed.c.status != "done").limit(1)
    # What was claimed to be complete waits for advance, whatever its status says meanwhile.
    claimed = sa.select(finding_processing.c.finding_id).where(
        finding_processing.c.project_id == issue.c.project_id,
        finding_processing.c.issue_id == issue.c.id,
        finding_processing.c.processed_ms.is_(None),
    )
    waiting = (unmet, claimed.limit(1))
    conditions: list[Condition] = [each.correlate(issue).scalar_subquery().is_(None) for each in waiting]
    if works:
        unplanned = sa.select(issue_labels.c.label).where(
            issue_labels.c.issue_id == issue.c.id, issue_labels.c.label == NEEDS_PLANNING
        )
        conditions.append(unplanned.correlate(issue).scalar_subquery().is_(None))
    return tuple(conditions)

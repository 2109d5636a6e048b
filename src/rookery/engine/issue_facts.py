"""Reads the issues that are in work, with all that decides what happens to them: a few statements for all of them."""

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, TypeVar

import sqlalchemy as sa

from rookery.db.tx import Tx
from rookery.domains.tracker.lease_store import NEEDS_PLANNING
from rookery.domains.tracker.tables import (
    finding_processing,
    issue_changes,
    issue_deps,
    issue_labels,
    phase_claims,
    prs,
)
from rookery.engine.retrying import FREE_CANCELLATIONS, MAX_ROUNDS
from rookery.engine.tables import ENDED, dispatches, gate_runs
from rookery.engine.world_facts import SKIP, AttemptFact, FindingFact, IssueFact, PrFact, ProjectFact, Tried
from rookery.lifecycle.issue_tables import issues
from rookery.lifecycle.run_tables import agent_runs

IN_WORK = ("todo", "in_progress", "review")
Row = sa.Row[Any]
T = TypeVar("T")
Select = sa.Select[*tuple[Any, ...]]
_i, _d, _f = issues.c, dispatches.c, finding_processing.c
_SHOWN = (
    *("tenant", "project_id", "id", "identifier", "status", "phase", "priority", "created_ms", "blocked_on"),
    *("lease_name", "lease_until_ms"),
)


def read_issues(tx: Tx, there: Sequence[ProjectFact], about: str | None = None) -> list[IssueFact]:
    """The issues of the enabled projects that could be worked on, and the one that is asked about."""
    read = _statements(about is not None)
    values = {"projects": [project.id for project in there if project.enabled], "about": about}
    rows = tx.all(read.issues, values)
    if not rows:
        return []
    labels = _by_issue(tx.all(read.labels, values), lambda row: row.label)
    needed = _by_issue(tx.all(read.dependencies, values), lambda row: (row.identifier, row.status))
    waiting = _by_issue(tx.all(read.findings, {"projects": [project.id for project in there]}), _finding)
    latest = {row.issue_id: PrFact(row.id, row.status) for row in tx.all(read.prs, values)}
    tried = _attempts(tx, read, values)
    limited = [each.id for each in there if each.settings.issue_budget_usd is not None]
    spent = tx.all(read.spent, {**values, "projects": limited}) if limited else ()
    micros = {row.issue_id: int(row.micros) for row in spent}
    return [
        IssueFact(
            tenant=row.tenant,
            project_id=row.project_id,
            id=row.id,
            identifier=row.identifier,
            status=row.status,
            phase=row.phase,
            priority=row.priority,
            created_ms=row.created_ms,
            blocked_on=row.blocked_on,
            holder=row.lease_name,
            held_until_ms=row.lease_until_ms,
            labels=frozenset(labels.get(row.id, ())),
            waits_for=needed.get(row.id, ()),
            findings=waiting.get(row.id, ()),
            pr=latest.get(row.id),
            attempts=tried.get(row.id, {}),
            spent_micros=micros.get(row.id, 0),
        )
        for row in rows
    ]


def _by_issue(rows: Sequence[Row], fact: Callable[[Row], T]) -> Mapping[str, list[T]]:
    found: dict[str, list[T]] = defaultdict(list)
    for row in rows:
        found[row.issue_id].append(fact(row))
    return found


def _finding(row: Row) -> FindingFact:
    return FindingFact(row.finding_id, row.phase, row.outcome, bool(row.gates))


def _attempts(tx: Tx, read: "_Statements", values: Mapping[str, Any]) -> Mapping[str, dict[Tried, list[AttemptFact]]]:
    """How it went in their phases so far, without what a person's unblocking has made good."""
    rows = tx.all(read.attempts, values)
    freed = {row.issue_id: row.at_ms for row in tx.all(read.unblocked, values)} if rows else {}
    tried: dict[str, dict[Tried, list[AttemptFact]]] = defaultdict(lambda: defaultdict(list))
    for row in rows:
        if row.created_ms >= freed.get(row.issue_id, 0):
            tried[row.issue_id][row.work, row.about].append(AttemptFact(row.outcome, row.ended_ms))
    return tried


@dataclass(frozen=True, slots=True)
class _Statements:
    issues: Select
    labels: Select
    dependencies: Select
    findings: Select
    prs: Select
    attempts: Select
    unblocked: Select
    spent: Select


@cache
def _statements(asked: bool) -> _Statements:
    """Built once, since that takes longer than to run them. `asked`: one issue is wanted whatever its state."""
    those = _i.project_id.in_(sa.bindparam("projects", expanding=True))
    working = sa.and_(those, _i.status.in_(IN_WORK))
    wanted = sa.or_(working, _i.id == sa.bindparam("about")) if asked else working
    troubled = _troubled(wanted)
    return _Statements(
        issues=sa.select(*(_i[name] for name in _SHOWN)).where(wanted),
        labels=_labels(wanted),
        dependencies=_dependencies(wanted),
        findings=_findings(),
        prs=_prs(wanted),
        attempts=_tried(wanted, troubled),
        unblocked=_unblocked(troubled),
        spent=_spent(wanted),
    )


def _labels(wanted: sa.ColumnElement[bool]) -> Select:
    """Those that bear upon what happens."""
    label = issue_labels.c.label
    found = sa.select(issue_labels.c.issue_id, label).join(issues, _i.id == issue_labels.c.issue_id)
    return found.where(wanted, sa.or_(label == NEEDS_PLANNING, label.like(f"{SKIP}%")))


def _dependencies(wanted: sa.ColumnElement[bool]) -> Select:
    """What is not done of what they wait for."""
    other = issues.alias("other")
    found = sa.select(issue_deps.c.issue_id, other.c.identifier, other.c.status)
    found = found.join(issues, _i.id == issue_deps.c.issue_id).join(other, other.c.id == issue_deps.c.depends_on)
    return found.where(wanted, other.c.status != "done").order_by(other.c.created_ms, other.c.id)


def _findings() -> Select:
    """Claims and verdicts that nobody has acted on, the oldest first."""
    gates = gate_runs.c
    asked = sa.and_(gates.claim_id.is_not(None), gates.ended_ms.is_(None))
    return (
        sa.select(_f.issue_id, _f.finding_id, _f.outcome, phase_claims.c.phase, asked.label("gates"))
        .outerjoin(phase_claims, phase_claims.c.finding_id == _f.finding_id)
        .outerjoin(gate_runs, gates.claim_id == _f.finding_id)
        .where(_f.project_id.in_(sa.bindparam("projects", expanding=True)), _f.processed_ms.is_(None))
        .order_by(_f.seq)
    )


def _prs(wanted: sa.ColumnElement[bool]) -> Select:
    """The newest pull request of each issue in review."""
    newer = prs.alias("newer")
    newest = sa.select(sa.func.max(newer.c.revision)).where(newer.c.issue_id == prs.c.issue_id).scalar_subquery()
    found = sa.select(prs.c.issue_id, prs.c.id, prs.c.status).join(issues, _i.id == prs.c.issue_id)
    return found.where(wanted, _i.status == "review", prs.c.revision == newest)


_MINE = sa.and_(_i.tenant == _d.tenant, _i.id == _d.issue_id, _i.phase == _d.phase)


def _troubled(wanted: sa.ColumnElement[bool]) -> sa.CompoundSelect[Any]:
    """The issues with an attempt in their phase that failed, or with many that did not. Of the others none matters."""
    ended = sa.select(_d.issue_id).join(issues, _MINE).where(wanted, _d.state == ENDED).correlate(None)
    failed = ended.where(_d.outcome.not_in(("succeeded", "cancelled")))
    worked = ended.where(_d.outcome == "succeeded", _d.work == "phase")
    cancelled = ended.where(_d.outcome == "cancelled")
    return sa.union(
        failed,
        worked.group_by(_d.issue_id).having(sa.func.count() >= MAX_ROUNDS),
        cancelled.group_by(_d.issue_id).having(sa.func.count() > FREE_CANCELLATIONS),
    )


def _tried(wanted: sa.ColumnElement[bool], troubled: sa.CompoundSelect[Any]) -> Select:
    found = sa.select(_d.issue_id, _d.work, _d.about, _d.outcome, _d.ended_ms, _d.created_ms).join(issues, _MINE)
    counted = (wanted, _d.state == ENDED, _d.issue_id.in_(troubled))
    return found.where(*counted).order_by(_d.ended_ms, _d.created_ms, _d.id)


def _unblocked(troubled: sa.CompoundSelect[Any]) -> Select:
    """When those issues were last unblocked, if they were."""
    change = issue_changes.c
    blocked = (change.field == "status", sa.cast(change.old, sa.Text) == '"blocked"', change.issue_id.in_(troubled))
    last = sa.select(change.issue_id, sa.func.max(change.at_ms).label("at_ms"))
    return last.where(*blocked).group_by(change.issue_id)


def _spent(wanted: sa.ColumnElement[bool]) -> Select:
    """What they have cost."""
    run = agent_runs.c
    found = sa.select(run.issue_id, sa.func.sum(run.cost_micros).label("micros"))
    found = found.join(issues, sa.and_(_i.tenant == run.tenant, _i.id == run.issue_id))
    return found.where(wanted).group_by(run.issue_id)

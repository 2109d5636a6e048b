"""What waits for a person besides questions: reviews, merges, and what has come to a stop. For every page, so cheap.

Nothing of this is stored: it is how issues, pull requests, runs and schedules stand. A review waits for a person where
no orchestrator would give it to a judge.
"""

from typing import Any

import sqlalchemy as sa

from rookery.asks.tables import OPEN, asks
from rookery.db.clock import DbNow
from rookery.db.tx import Tx
from rookery.domains.schedules.tables import PAUSED, schedules
from rookery.domains.tracker.tables import finding_processing, phase_claims, phase_verdicts, prs
from rookery.engine.tables import orchestrator_projects
from rookery.identity.tables import projects
from rookery.lifecycle.issue_tables import issues
from rookery.lifecycle.run_tables import agent_runs

Select = sa.Select[*tuple[Any, ...]]
GRACE_MS = 60_000
"""So long after its deadline a run may take to end."""
SILENT_MS = 3_600_000
"""Of a run without a deadline something is heard at least so often, or it is lost."""
MOST_COUNTED = 100
"""So many of a kind are counted: whoever has more reads a list, not a figure."""
_TENANT = sa.bindparam("of_tenant", type_=sa.Text)
_i, _p, _r, _f, _s = issues.c, prs.c, agent_runs.c, finding_processing.c, schedules.c
_OURS = sa.select(projects.c.id).where(projects.c.tenant == _TENANT)
_WORKED_ON = sa.select(orchestrator_projects.c.project_id).where(
    orchestrator_projects.c.tenant == _TENANT, orchestrator_projects.c.enabled.is_(True)
)
_NEWER = prs.alias("newer")
_NEWEST = ~sa.exists().where(_NEWER.c.issue_id == _p.issue_id, _NEWER.c.revision > _p.revision)
_PULLED = (
    sa.select(
        *(_i.id.label("issue_id"), _i.identifier, _i.title, _i.project_id, _p.revision, _p.risk_level, _p.risk_score),
        *(_p.subject, _p.status, _p.updated_ms.label("since_ms"), _p.id),
    )
    .join(issues, _i.id == _p.issue_id)
    .where(_p.project_id.in_(_OURS), _p.tenant == _TENANT, _i.status == "review", _NEWEST)
)
MERGES = _PULLED.where(_p.status == "approved")
REVIEWS = _PULLED.where(_p.status == "open", _p.project_id.not_in(_WORKED_ON))
CLAIMS = (
    sa.select(
        *(_i.id.label("issue_id"), _i.identifier, _i.title, _i.project_id, phase_claims.c.phase),
        *(phase_claims.c.subject, _i.updated_ms.label("since_ms"), _f.finding_id.label("id")),
    )
    .join(phase_claims, phase_claims.c.finding_id == _f.finding_id)
    .join(issues, _i.id == _f.issue_id)
    .where(
        *(_f.project_id.in_(_OURS), _f.project_id.not_in(_WORKED_ON), _f.processed_ms.is_(None), _i.tenant == _TENANT),
        *(phase_claims.c.phase == _i.phase, phase_claims.c.phase != "ready", _i.status.not_in(("done", "cancelled"))),
        ~sa.exists().where(phase_verdicts.c.claim_id == _f.finding_id),
    )
)
BLOCKED = sa.select(_i.id, _i.identifier, _i.title, _i.project_id, _i.phase, _i.updated_ms).where(
    _i.project_id.in_(_OURS),
    _i.tenant == _TENANT,
    _i.status == "blocked",
    _i.blocked_on.is_distinct_from("subtasks"),
)
_ANSWER = sa.exists().where(
    asks.c.tenant == _r.tenant,
    asks.c.status == OPEN,
    asks.c.session.is_not(None),
    asks.c.session.in_((_r.session, _r.key)),
)
LATE = sa.select(agent_runs).where(
    _r.tenant == _TENANT,
    _r.status == "running",
    sa.or_(_r.deadline_ms < DbNow() - GRACE_MS, sa.and_(_r.deadline_ms.is_(None), _r.updated_ms < DbNow() - SILENT_MS)),
    ~_ANSWER,
)
STOPPED = sa.select(schedules).where(_s.tenant == _TENANT, _s.status == PAUSED, _s.failures > 0)
COUNTED = ("merges", "reviews", "blocked", "late_runs", "stopped_schedules")


def _many(wanted: Select) -> sa.ScalarSelect[int]:
    some = wanted.with_only_columns(sa.literal_column("1", sa.Integer), maintain_column_froms=True).limit(MOST_COUNTED)
    return sa.select(sa.func.count()).select_from(some.subquery()).scalar_subquery()


_ASKED = (
    sa.select(asks.c.kind, sa.func.count().label("many"))
    .where(asks.c.tenant == _TENANT, asks.c.status == sa.literal_column(f"'{OPEN}'"), asks.c.expires_ms > DbNow())
    .group_by(asks.c.kind)
)
_FIGURES = sa.select(
    _many(MERGES).label("merges"),
    (_many(REVIEWS) + _many(CLAIMS)).label("reviews"),
    _many(BLOCKED).label("blocked"),
    _many(LATE).label("late_runs"),
    _many(STOPPED).label("stopped_schedules"),
)


def figures(tx: Tx, tenant: str) -> dict[str, int]:
    """How much of each kind waits for a person, up to a hundred. Two statements, answered from indexes."""
    values = {"of_tenant": tenant}
    asked = {row.kind: row.many for row in tx.all(_ASKED, values)}
    found = tx.one(_FIGURES, values)
    assert found is not None
    decided = {"schedules": asked.pop("schedule", 0), "approvals": asked.pop("approval", 0) + asked.pop("verdict", 0)}
    counts: dict[str, int] = {
        "questions": sum(asked.values()),
        **decided,
        **{name: getattr(found, name) for name in COUNTED},
    }
    return counts

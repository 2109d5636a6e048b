"""The tool that shows people what goes on now, and how things have ended lately."""

from typing import Any

import sqlalchemy as sa
from pydantic import Field

from rookery.core.context import Context
from rookery.core.tool import ToolInput, ToolOutput, tool
from rookery.domains.tracker.tables import issue_changes
from rookery.engine.tables import ALIVE, dispatches
from rookery.identity.tables import agents, projects
from rookery.lifecycle.issue_tables import issues
from rookery.lifecycle.run_tables import agent_runs
from rookery.sessions.tables import agent_sessions

MICROS = 1_000_000
LOOKED_AT = 400
"""So many changes are looked through for outcomes: among a thousand others there is little news in older ones."""
OUTCOMES = {"status": ("done", "blocked", "cancelled"), "pr": ("approved", "rejected", "merged")}
_r, _d, _c, _s = agent_runs.c, dispatches.c, issue_changes.c, agent_sessions.c
_TENANT = sa.bindparam("of_tenant", type_=sa.Text)
_ISSUE = (issues.c.identifier, issues.c.title, projects.c.slug, agents.c.name.label("agent_name"))
_RUNNING = (
    sa.select(agent_runs, *_ISSUE, _d.role, _d.attempt.label("tried"), _d.id.label("dispatch"), _s.title.label("named"))
    .outerjoin(issues, sa.and_(issues.c.tenant == _r.tenant, issues.c.id == _r.issue_id))
    .outerjoin(projects, projects.c.id == _r.project_id)
    .outerjoin(agents, agents.c.id == _r.agent)
    .outerjoin(dispatches, sa.and_(_d.tenant == _r.tenant, _d.run_id == _r.id, ALIVE))
    .outerjoin(agent_sessions, sa.and_(_s.tenant == _r.tenant, _s.id == _r.session))
    .where(_r.tenant == _TENANT, _r.status == "running")
    .order_by(_r.created_ms, _r.id)
)
_QUEUED = (
    sa.select(dispatches, *_ISSUE)
    .outerjoin(issues, sa.and_(issues.c.tenant == _d.tenant, issues.c.id == _d.issue_id))
    .outerjoin(projects, projects.c.id == _d.project_id)
    .outerjoin(agents, agents.c.id == _d.agent)
    .where(_d.tenant == _TENANT, ALIVE, _d.run_id.is_(None))
    .order_by(_d.created_ms, _d.id)
)
_LAST = sa.select(issue_changes).order_by(_c.seq.desc()).limit(LOOKED_AT).subquery()
_CHANGED = (
    sa.select(_LAST, issues.c.identifier, issues.c.title, projects.c.slug)
    .join(issues, sa.and_(issues.c.tenant == _LAST.c.tenant, issues.c.id == _LAST.c.issue_id))
    .outerjoin(projects, projects.c.id == issues.c.project_id)
    .where(_LAST.c.tenant == _TENANT, _LAST.c.field.in_(tuple(OUTCOMES)))
    .order_by(_LAST.c.seq.desc())
)


class WhatRuns(ToolInput):
    limit: int = Field(30, ge=1, le=200, description="Of each, at most.")


class NowRunning(ToolOutput):
    """A run that goes on, or a dispatch that waits for its turn: that has no run yet."""

    run_id: str | None
    key: str | None
    session: str | None
    session_title: str | None
    issue: str | None
    title: str
    project: str | None
    agent: str | None
    role: str | None
    phase: str | None
    kind: str | None
    attempt: int
    since_ms: int
    cost_usd: float
    deadline_ms: int | None


class RecentOutcome(ToolOutput):
    """How something ended: an issue, or the pull request of one."""

    issue: str
    title: str
    project: str | None
    about: str
    outcome: str
    by: str
    why: str | None
    at_ms: int


class GoingOn(ToolOutput):
    running: list[NowRunning]
    queued: list[NowRunning]
    outcomes: list[RecentOutcome]


@tool(
    title="What runs", effect="read", action="runs:read", tier="observe", group="System", profiles="", default=False,
    principals="people",
)  # fmt: skip
def what_runs(ctx: Context, args: WhatRuns) -> GoingOn:
    """Show the runs that go on and what waits for its turn, the oldest first, and the last outcomes of issues."""
    values = {"of_tenant": ctx.actor.tenant}
    ended = (row for row in ctx.tx.all(_CHANGED, values) if row.new in OUTCOMES[row.field])
    return GoingOn(
        running=[_running(row) for row in ctx.tx.all(_RUNNING.limit(args.limit), values)],
        queued=[_queued(row) for row in ctx.tx.all(_QUEUED.limit(args.limit), values)],
        outcomes=[_outcome(row) for row, _ in zip(ended, range(args.limit), strict=False)],
    )


def _running(row: sa.Row[Any]) -> NowRunning:
    return NowRunning(
        run_id=row.id,
        key=row.key,
        session=row.session,
        session_title=row.named,
        role=row.role or row.profile,
        kind=row.kind,
        attempt=row.tried or row.attempt,
        since_ms=row.started_ms or row.created_ms,
        cost_usd=row.cost_micros / MICROS,
        deadline_ms=row.deadline_ms,
        **_named(row),
    )


def _queued(row: sa.Row[Any]) -> NowRunning:
    return NowRunning(
        run_id=None,
        key=None,
        session=None,
        session_title=None,
        role=row.role,
        kind=row.work,
        attempt=row.attempt,
        since_ms=row.created_ms,
        cost_usd=0.0,
        deadline_ms=None,
        **_named(row),
    )


def _named(row: sa.Row[Any]) -> dict[str, Any]:
    about = {"issue": row.identifier, "title": row.title or "", "project": row.slug}
    return {**about, "agent": row.agent_name or row.agent, "phase": row.phase}


def _outcome(row: sa.Row[Any]) -> RecentOutcome:
    return RecentOutcome(
        issue=row.identifier,
        title=row.title,
        project=row.slug,
        about="pull request" if row.field == "pr" else "issue",
        outcome=row.new,
        by=row.author,
        why=row.why,
        at_ms=row.at_ms,
    )

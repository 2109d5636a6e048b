"""How the orchestrator stands, for people: who leads, what goes on, what begins next, and what the rest waits for."""

from collections import Counter
from typing import Any

import sqlalchemy as sa

from rookery.core.tool import ToolOutput
from rookery.db.tx import Tx
from rookery.domains.tracker.tables import issue_changes
from rookery.engine.limits import MICROS
from rookery.engine.plan import Plan, Wait
from rookery.engine.tables import ALIVE, ENDED, dispatches
from rookery.engine.world_facts import ProjectFact, World
from rookery.identity.tables import agents, projects
from rookery.lifecycle.issue_tables import issues

Row = sa.Row[Any]
MAX_WAITS = 200
"""So many reasons are told one by one; all are counted."""
MAX_LIVE = 1_000
_d, _i, _c = dispatches.c, issues.c, issue_changes.c
_NAMED = (
    sa.select(
        dispatches,
        issues.c.identifier,
        projects.c.slug,
        agents.c.name.label("agent_name"),
    )
    .outerjoin(issues, sa.and_(issues.c.tenant == _d.tenant, issues.c.id == _d.issue_id))
    .outerjoin(projects, projects.c.id == _d.project_id)
    .outerjoin(agents, agents.c.id == _d.agent)
)

_LAST_MOVE = (
    sa.select(sa.func.max(_c.seq)).where(_c.issue_id == _i.id, _c.field == "status").correlate(issues).scalar_subquery()
)
_BLOCKED = (
    sa.select(_i.tenant, _i.project_id, _i.identifier, _c.why, _c.at_ms)
    .select_from(issues.outerjoin(issue_changes, _c.seq == _LAST_MOVE))
    .where(
        _i.tenant == sa.bindparam("of_tenant"),
        _i.project_id.in_(sa.bindparam("projects", expanding=True)),
        _i.status == "blocked",
        _i.blocked_on.is_distinct_from("subtasks"),
    )
    .order_by(_c.at_ms.desc(), _i.id)
    .limit(MAX_WAITS)
)


class Leader(ToolOutput):
    """Who leads or led last. `alive`: it still does. What it said of its last tick."""

    host: str
    alive: bool
    term: int
    ticked_ms: int | None
    tick: dict[str, Any] | None


class Attempt(ToolOutput):
    """One dispatch."""

    id: str
    project: str
    issue: str | None
    work: str
    role: str
    phase: str | None
    agent: str
    attempt: int
    state: str
    outcome: str | None
    error: str | None
    stop: str | None
    run_id: str | None
    created_ms: int
    started_ms: int | None
    ended_ms: int | None


class WorkedProject(ToolOutput):
    """A project that agents work on. Dollars are those of today."""

    project: str
    enabled: bool
    at_work: int
    max_agents: int
    role_caps: dict[str, int]
    spent_usd: float
    daily_budget_usd: float | None


class NextStart(ToolOutput):
    """What begins at the next tick."""

    project: str
    issue: str | None
    work: str
    role: str
    agent: str
    attempt: int


class WaitingIssue(ToolOutput):
    """What waits, for what, and until when if that is known."""

    project: str
    issue: str | None
    code: str
    reason: str
    until_ms: int | None


class BlockedIssue(ToolOutput):
    """What a person has to look at, since when, and why if whoever blocked it said so."""

    project: str
    issue: str
    since_ms: int | None
    reason: str | None


class OrchestratorStatus(ToolOutput):
    leader: Leader | None
    now_ms: int
    runtime: bool
    at_work: int
    max_agents: int
    spent_usd: float
    daily_budget_usd: float | None
    projects: list[WorkedProject]
    running: list[Attempt]
    queued: list[Attempt]
    retries: list[WaitingIssue]
    next: list[NextStart]
    waits: dict[str, int]
    waiting: list[WaitingIssue]
    blocked: list[BlockedIssue]
    background: list[Attempt]
    """The last scan and the last intake of each project that came to nothing, unless one has succeeded since."""


def attempts(tx: Tx, *guards: sa.ColumnElement[bool], limit: int, oldest_first: bool = False) -> list[Attempt]:
    """Dispatches with the names of what they are about, newest first unless said otherwise."""
    order = (_d.created_ms, _d.id) if oldest_first else (_d.created_ms.desc(), _d.id.desc())
    return [_attempt(row) for row in tx.all(_NAMED.where(*guards).order_by(*order).limit(limit))]


def status_of(
    tx: Tx, world: World, planned: Plan, led: Row | None, tenant: str, project_id: str | None
) -> OrchestratorStatus:
    """The part of the world and of the plan that is the tenant's, or about one of its projects."""
    mine = [each for each in world.projects if each.tenant == tenant and project_id in (None, each.id)]
    slugs = {(each.tenant, each.id): each.slug for each in mine}
    busy = Counter((each.tenant, each.project_id) for each in world.live)
    waits = [wait for wait in planned.waits if (wait.tenant, wait.project_id) in slugs]
    told = [_waiting(wait, slugs) for wait in waits]
    # Also of projects that are not worked on any more: what goes on there has not been stopped.
    here = [_d.tenant == tenant, ALIVE, *([] if project_id is None else [_d.project_id == project_id])]
    live = attempts(tx, *here, limit=MAX_LIVE, oldest_first=True)
    names = {agent.id: agent.name for found in world.agents.values() for agent in found}
    starts = [start for start in planned.starts if (start.tenant, start.new.project_id) in slugs]
    return OrchestratorStatus(
        leader=None if led is None else _leader(led, tenant),
        now_ms=world.now_ms,
        runtime=world.runtime,
        at_work=len(world.live),
        max_agents=world.max_agents,
        spent_usd=world.spent_today_micros / MICROS,
        daily_budget_usd=world.daily_budget_usd or None,
        projects=[_project(each, busy[each.tenant, each.id]) for each in mine],
        running=[each for each in live if each.started_ms is not None],
        queued=[each for each in live if each.started_ms is None],
        retries=sorted((each for each in told if each.code == "retry"), key=lambda each: each.until_ms or 0),
        next=[
            NextStart(
                project=slugs[start.tenant, start.new.project_id],
                issue=start.identifier,
                work=start.new.work,
                role=start.new.role,
                agent=names.get(start.new.agent, start.new.agent),
                attempt=start.new.attempt,
            )
            for start in starts
        ],
        waits=dict(Counter(wait.code for wait in waits).most_common()),
        waiting=told[:MAX_WAITS],
        blocked=_blocked(tx, tenant, slugs),
        background=_background(tx, tenant, [each.id for each in mine]),
    )


def _blocked(tx: Tx, tenant: str, slugs: dict[tuple[str, str], str]) -> list[BlockedIssue]:
    """The newest first."""
    rows = tx.all(_BLOCKED, {"of_tenant": tenant, "projects": [project_id for _, project_id in slugs]})
    return [
        BlockedIssue(
            project=slugs[row.tenant, row.project_id], issue=row.identifier, since_ms=row.at_ms, reason=row.why
        )
        for row in rows
    ]


def _background(tx: Tx, tenant: str, project_ids: list[str]) -> list[Attempt]:
    """Nobody's issue has a comment about these, so people are told of them here."""
    last: list[Attempt] = []
    for project_id in project_ids:
        for work in ("intake", "scan"):
            same = (_d.tenant == tenant, _d.project_id == project_id, _d.work == work, _d.issue_id.is_(None))
            last += attempts(tx, *same, _d.state == ENDED, _d.outcome != "cancelled", limit=1)
    return [each for each in last if each.outcome != "succeeded"]


def _leader(row: Row, tenant: str) -> Leader:
    """Of what went wrong only what concerns the tenant, or everybody."""
    report: dict[str, Any] = row.report or {}
    failures = [text for whose, text in report.get("failures", ()) if whose in ("", tenant)]
    tick = None if row.report is None else {**report, "failures": failures}
    return Leader(host=row.host, alive=row.left_ms > 0, term=row.term, ticked_ms=row.ticked_ms, tick=tick)


def _attempt(row: Row) -> Attempt:
    same = ("id", "work", "role", "phase", "attempt", "state", "outcome", "error", "stop", "run_id")
    times = ("created_ms", "started_ms", "ended_ms")
    return Attempt(
        **{name: getattr(row, name) for name in (*same, *times)},
        project=row.slug or row.project_id,
        issue=row.identifier or row.issue_id,
        agent=row.agent_name or row.agent,
    )


def _project(project: ProjectFact, at_work: int) -> WorkedProject:
    return WorkedProject(
        project=project.slug,
        enabled=project.enabled,
        at_work=at_work,
        max_agents=project.settings.max_agents,
        role_caps=project.settings.role_caps,
        spent_usd=project.spent_today_micros / MICROS,
        daily_budget_usd=project.settings.daily_budget_usd,
    )


def _waiting(wait: Wait, slugs: dict[tuple[str, str], str]) -> WaitingIssue:
    return WaitingIssue(
        project=slugs[wait.tenant, wait.project_id],
        issue=wait.identifier,
        code=wait.code,
        reason=wait.reason,
        until_ms=wait.until_ms,
    )

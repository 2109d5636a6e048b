"""Reads what the orchestrator decides from. The number of statements does not depend on how many issues there are.

What lives is read first: whatever ends meanwhile is seen with all that followed from its end, or as still alive.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

import sqlalchemy as sa
from pydantic import ValidationError

from rookery.db.clock import now_ms
from rookery.db.tx import Tx
from rookery.domains.tracker.project_store import WorkSettings
from rookery.domains.tracker.tables import tracker_projects
from rookery.engine.issue_facts import read_issues
from rookery.engine.limits import DAY_MS
from rookery.engine.project_settings import OrchestratorSettings, unreadable
from rookery.engine.tables import ALIVE, ENDED, RUNNING, dispatches, orchestrator_projects
from rookery.engine.world_facts import AgentFact, AttemptFact, LiveFact, ProjectFact, Wish, World
from rookery.identity.tables import agents, projects, tenants
from rookery.lifecycle.issue_tables import issues
from rookery.lifecycle.pauses import Pause, Pauses
from rookery.lifecycle.run_tables import agent_runs
from rookery.settings import Settings

Row = sa.Row[Any]
_d, _o, _r = dispatches.c, orchestrator_projects.c, agent_runs.c
_LIVE = sa.union_all(
    sa.select(dispatches).where(ALIVE, _d.issue_id.is_not(None)),
    sa.select(dispatches).where(ALIVE, _d.issue_id.is_(None)),
)
_PROJECTS = (
    sa.select(
        projects.c.tenant,
        projects.c.id,
        projects.c.slug,
        projects.c.path,
        projects.c.members,
        _o.enabled,
        _o.settings,
        tracker_projects.c.settings.label("work"),
    )
    .outerjoin(orchestrator_projects, _o.project_id == projects.c.id)
    .outerjoin(tracker_projects, tracker_projects.c.project_id == projects.c.id)
    .where(
        sa.or_(
            _o.enabled.is_(True),
            projects.c.id.in_(sa.select(issues.c.project_id).where(issues.c.id == sa.bindparam("about"))),
        )
    )
    .order_by(projects.c.tenant, projects.c.slug)
)
_AGENTS = (
    sa.select(agents.c.tenant, agents.c.id, agents.c.name)
    .where(agents.c.tenant.in_(sa.bindparam("tenants", expanding=True)))
    .order_by(agents.c.created_ms, agents.c.id)
)
_SPENT = (
    # From the tenants outwards, which no database may turn around: so the runs of earlier days are not looked at.
    sa.select(_r.tenant, _r.project_id, sa.func.sum(_r.cost_micros).label("micros"))
    .select_from(
        tenants.outerjoin(agent_runs, sa.and_(_r.tenant == tenants.c.id, _r.created_ms >= sa.bindparam("since_ms")))
    )
    .group_by(_r.tenant, _r.project_id)
)
_BACKGROUND = (
    sa.select(_d.tenant, _d.project_id, _d.work, _d.outcome, _d.ended_ms)
    .where(
        _d.tenant.in_(sa.bindparam("tenants", expanding=True)),
        _d.project_id.in_(sa.bindparam("projects", expanding=True)),
        _d.created_ms >= sa.bindparam("since_ms"),
        _d.issue_id.is_(None),
        _d.state == ENDED,
    )
    .order_by(_d.ended_ms, _d.created_ms, _d.id)
)
"""Scans and intakes of one day: what failed before that keeps nothing from being tried again."""


def read_world(
    tx: Tx,
    settings: Settings,
    wishes: Sequence[Wish] = (),
    *,
    runtime: bool = True,
    led: bool = True,
    issue_id: str | None = None,
) -> World:
    """Everything of all tenants that bears upon what may begin: the enabled projects and their issues in work.

    With `issue_id` that issue is there as well, whatever its state and its project's.
    """
    at_ms = now_ms(tx)
    live = [_live(row) for row in tx.all(_LIVE)]
    found = tx.all(_PROJECTS, {"about": issue_id})
    ours = sorted({row.tenant for row in found})
    costs = tx.all(_SPENT, {"since_ms": at_ms // DAY_MS * DAY_MS})
    spent = {(row.tenant, row.project_id): int(row.micros) for row in costs if row.tenant is not None}
    tried = _background(tx, ours, found, at_ms)
    there = [_project(row, spent.get((row.tenant, row.id), 0), tried) for row in found]
    return World(
        now_ms=at_ms,
        max_agents=settings.max_agents,
        daily_budget_usd=settings.daily_budget_usd,
        spent_today_micros=sum(spent.values()),
        runtime=runtime,
        led=led,
        projects=there,
        agents=_agents(tx, ours),
        pauses=_pauses(tx, ours),
        issues=read_issues(tx, there, issue_id),
        live=live,
        wishes=wishes,
    )


def _live(row: Row) -> LiveFact:
    return LiveFact(
        tenant=row.tenant,
        project_id=row.project_id,
        issue_id=row.issue_id,
        work=row.work,
        role=row.role,
        agent=row.agent,
        attempt=row.attempt,
        running=row.state == RUNNING,
        since_ms=row.started_ms or row.created_ms,
    )


def _project(row: Row, spent_micros: int, tried: Mapping[tuple[str, str], dict[Any, list[AttemptFact]]]) -> ProjectFact:
    stored: dict[str, Any] = row.settings or {}
    kept: dict[str, Any] = row.work or {}
    settings, work, fault = OrchestratorSettings(), WorkSettings(), None
    try:
        settings, work = OrchestratorSettings(**stored), WorkSettings(**kept)
    except ValidationError as error:
        fault = unreadable(error)
    return ProjectFact(
        tenant=row.tenant,
        id=row.id,
        slug=row.slug,
        folder=row.path,
        settings=settings,
        enabled=bool(row.enabled) and fault is None,
        fault=fault,
        pipeline=work.pipeline,
        members=None if row.members is None else frozenset(row.members),
        spent_today_micros=spent_micros,
        attempts=tried.get((row.tenant, row.id), {}),
    )


def _agents(tx: Tx, ours: Sequence[str]) -> dict[str, list[AgentFact]]:
    found: dict[str, list[AgentFact]] = defaultdict(list)
    for row in tx.all(_AGENTS, {"tenants": ours}):
        found[row.tenant].append(AgentFact(row.id, row.name))
    return found


def _pauses(tx: Tx, ours: Sequence[str]) -> dict[str, Sequence[Pause]]:
    return {tenant: Pauses(tx, tenant).all() for tenant in ours}


def _background(
    tx: Tx, ours: Sequence[str], found: Sequence[Row], at_ms: int
) -> dict[tuple[str, str], dict[Any, list[AttemptFact]]]:
    tried: dict[tuple[str, str], dict[Any, list[AttemptFact]]] = defaultdict(lambda: defaultdict(list))
    place = {"tenants": ours, "projects": [row.id for row in found], "since_ms": at_ms - DAY_MS}
    for row in tx.all(_BACKGROUND, place):
        tried[row.tenant, row.project_id][row.work].append(AttemptFact(row.outcome, row.ended_ms))
    return tried

"""What people see of workflows and their runs: more than agents are told, and without the right to change them.

Not in a module where tools are looked for: no agent has them, and no session pays for their listing. They are called,
decided and recorded like any other.
"""

from collections import defaultdict
from typing import Any

import sqlalchemy as sa
from pydantic import Field

from rookery.core.context import Context
from rookery.core.moments import with_moments
from rookery.core.tool import NoInput, ToolInput, ToolOutput, tool
from rookery.domains.workflows.engine import snapshot_of
from rookery.domains.workflows.graph import in_order
from rookery.domains.workflows.run_store import Row, Runs, node_rows
from rookery.domains.workflows.shown import LONG, cut, run_line, whole_workflow, workflow_line
from rookery.domains.workflows.store import Workflows, owner_of
from rookery.domains.workflows.tables import workflow_runs
from rookery.identity.store import IdentityStore
from rookery.jobs.tables import jobs

LAST = 8
Json = dict[str, Any]
_ranked = (
    sa.select(
        workflow_runs,
        sa.func.row_number()
        .over(partition_by=workflow_runs.c.workflow_id, order_by=workflow_runs.c.id.desc())
        .label("place"),
    )
    .where(workflow_runs.c.workflow_id.in_(sa.bindparam("ids", expanding=True)))
    .subquery()
)
_LAST = sa.select(_ranked).where(_ranked.c.place <= LAST).order_by(_ranked.c.workflow_id, _ranked.c.place)
_ATTEMPTS = sa.select(jobs.c.id, jobs.c.attempt).where(jobs.c.id.in_(sa.bindparam("ids", expanding=True)))


class OneWorkflow(ToolInput):
    workflow_id: str = Field(max_length=100, description="Its id.")


class OneRun(ToolInput):
    run_id: str = Field(max_length=100, description="Its id.")


class WorkflowsOverview(ToolOutput):
    workflows: list[Json]


class WorkflowShown(ToolOutput):
    workflow: Json
    runs: list[Json]


class RunShown(ToolOutput):
    run: Json
    graph: Json


@tool(
    title="Workflows overview", effect="read", action="workflow:read", tier="observe", group="System", profiles="",
    default=False, principals="people",
)  # fmt: skip
def workflows_overview(ctx: Context, args: NoInput) -> WorkflowsOverview:
    """Show every workflow with how its last runs ended."""
    rows, names = Workflows(ctx.tx, ctx.actor.tenant, owner_of(ctx.actor)).page(), _names(ctx)
    last: defaultdict[str, list[Json]] = defaultdict(list)
    if rows:
        for run in ctx.tx.all(_LAST, {"ids": [row.id for row in rows]}):
            last[run.workflow_id].append(run_line(run))
    return WorkflowsOverview(
        workflows=[
            workflow_line(row)
            | {"agent": names.get(row.agent_id, row.agent_id), "description": row.description, "last": last[row.id]}
            for row in rows
        ]
    )


@tool(
    title="Show workflow", effect="read", action="workflow:read", tier="observe", group="System", profiles="",
    default=False, principals="people",
)  # fmt: skip
def show_workflow(ctx: Context, args: OneWorkflow) -> WorkflowShown:
    """Show a workflow with its graph and its newest runs."""
    row = Workflows(ctx.tx, ctx.actor.tenant, owner_of(ctx.actor)).get(args.workflow_id)
    runs = Runs(ctx.tx, ctx.actor.tenant, owner_of(ctx.actor)).page(row.id)
    agent = _names(ctx).get(row.agent_id, row.agent_id)
    return WorkflowShown(workflow=whole_workflow(row) | {"agent": agent}, runs=[run_line(run) for run in runs])


@tool(
    title="Show workflow run", effect="read", action="workflow:read", tier="observe", group="System", profiles="",
    default=False, principals="people",
)  # fmt: skip
def show_workflow_run(ctx: Context, args: OneRun) -> RunShown:
    """Show a run with its graph as it was when it began, and of every node what it was given, gave and cost in time."""
    row = Runs(ctx.tx, ctx.actor.tenant, owner_of(ctx.actor)).get(args.run_id)
    graph = snapshot_of(row).graph
    rows = {each.node_id: each for each in node_rows(ctx.tx, row.id)}
    attempts = _attempts(ctx, list(rows.values()))
    shown = run_line(row) | {
        "name": snapshot_of(row).name,
        "input": cut(row.input, LONG),
        "output": cut(row.output, LONG),
        "nodes": [
            {"id": node.id, "type": node.type, "label": node.name} | _node(rows[node.id], attempts)
            for node in in_order(graph)
        ],
    }
    return RunShown(run=shown, graph=graph.model_dump(mode="json", exclude_none=True))


def _names(ctx: Context) -> dict[str, str]:
    return {row.id: row.name for row in IdentityStore(ctx.tx, ctx.actor.tenant).agents()}


def _attempts(ctx: Context, rows: list[Row]) -> dict[int, int]:
    """How often the work behind each node was begun, as long as its job is kept."""
    ids = [row.job_id for row in rows if row.job_id is not None]
    return {row.id: row.attempt for row in ctx.tx.all(_ATTEMPTS, {"ids": ids})} if ids else {}


def _node(row: Row, attempts: dict[int, int]) -> Json:
    names = ("status", "error", "session_id", "work_task_id", "started_ms", "ended_ms")
    return with_moments({name: getattr(row, name) for name in names}) | {
        "input": cut(row.input, LONG),
        "output": cut(row.output, LONG),
        "attempts": attempts.get(row.job_id) if row.job_id is not None else None,
        "took_ms": None if row.started_ms is None or row.ended_ms is None else row.ended_ms - row.started_ms,
    }

"""The tables of workflows, their runs, and what became of each node of a run."""

import sqlalchemy as sa

from rookery.db.migrate import Migration
from rookery.db.schema import flag, json_text, metadata, text, whole

workflows = sa.Table(
    "workflows",
    metadata,
    text("id", primary_key=True),
    text("tenant"),
    text("agent_id"),
    text("name"),
    text("description"),
    json_text("nodes"),
    json_text("edges"),
    text("status"),
    text("default_project_id", null=True),
    whole("max_concurrency"),
    flag("by_person"),
    text("made_by"),
    whole("created_ms"),
    whole("updated_ms"),
)
"""`agent_id` is whose it is, and who acts in it where a node names nobody. `by_person`: a person wrote the graph as it
is, so its nodes may name other agents.
"""
sa.Index("workflows_agent", workflows.c.tenant, workflows.c.agent_id, workflows.c.id)

workflow_runs = sa.Table(
    "workflow_runs",
    metadata,
    text("id", primary_key=True),
    text("tenant"),
    text("workflow_id"),
    text("agent_id"),
    text("status"),
    json_text("input"),
    json_text("output", null=True),
    json_text("workflow_snapshot"),
    text("error", null=True),
    text("started_by"),
    whole("started_ms"),
    whole("ended_ms", null=True),
)
"""`workflow_snapshot` is the workflow as it was when the run began: later changes do not reach it."""
sa.Index("workflow_runs_workflow", workflow_runs.c.tenant, workflow_runs.c.workflow_id, workflow_runs.c.id)
_OPEN = sa.text("ended_ms IS NULL")
sa.Index(
    "workflow_runs_open",
    workflow_runs.c.tenant,
    workflow_runs.c.agent_id,
    sqlite_where=_OPEN,
    postgresql_where=_OPEN,
)

workflow_node_runs = sa.Table(
    "workflow_node_runs",
    metadata,
    text("run_id", primary_key=True),
    text("node_id", primary_key=True),
    text("tenant"),
    text("node_type"),
    text("status"),
    json_text("input", null=True),
    json_text("output", null=True),
    text("session_id", null=True),
    text("work_task_id", null=True),
    whole("job_id", null=True),
    text("error", null=True),
    whole("started_ms", null=True),
    whole("ended_ms", null=True),
)
"""One row for each node from the run's start. `job_id` is the deferred work that will settle a node under way."""

MIGRATIONS = (
    Migration(
        1,
        "workflows",
        [
            "CREATE TABLE workflows (id TEXT NOT NULL PRIMARY KEY, tenant TEXT NOT NULL, agent_id TEXT NOT NULL, "
            "name TEXT NOT NULL, description TEXT NOT NULL, nodes {json} NOT NULL, edges {json} NOT NULL, "
            "status TEXT NOT NULL, default_project_id TEXT, max_concurrency BIGINT NOT NULL, "
            "by_person BOOLEAN NOT NULL, made_by TEXT NOT NULL, created_ms BIGINT NOT NULL, "
            "updated_ms BIGINT NOT NULL)",
            "CREATE INDEX workflows_agent ON workflows (tenant, agent_id, id)",
            "CREATE TABLE workflow_runs (id TEXT NOT NULL PRIMARY KEY, tenant TEXT NOT NULL, "
            "workflow_id TEXT NOT NULL, agent_id TEXT NOT NULL, status TEXT NOT NULL, input {json} NOT NULL, "
            "output {json}, workflow_snapshot {json} NOT NULL, error TEXT, started_by TEXT NOT NULL, "
            "started_ms BIGINT NOT NULL, ended_ms BIGINT)",
            "CREATE INDEX workflow_runs_workflow ON workflow_runs (tenant, workflow_id, id)",
            "CREATE INDEX workflow_runs_open ON workflow_runs (tenant, agent_id) WHERE ended_ms IS NULL",
            "CREATE TABLE workflow_node_runs (run_id TEXT NOT NULL, node_id TEXT NOT NULL, tenant TEXT NOT NULL, "
            "node_type TEXT NOT NULL, status TEXT NOT NULL, input {json}, output {json}, session_id TEXT, "
            "work_task_id TEXT, job_id BIGINT, error TEXT, started_ms BIGINT, ended_ms BIGINT, "
            "PRIMARY KEY (run_id, node_id))",
        ],
    ),
)

"""The tables of work tasks, and the steps that build them."""

import sqlalchemy as sa

from rookery.db.migrate import Migration
from rookery.db.schema import flag, json_text, metadata, text, whole

work_tasks = sa.Table(
    "work_tasks",
    metadata,
    text("id", primary_key=True),
    text("tenant"),
    text("agent_id"),
    text("project_id"),
    text("source"),
    text("source_id", null=True),
    json_text("requester"),
    text("description"),
    text("branch_name"),
    text("status"),
    whole("iteration"),
    text("original_branch", null=True),
    text("base_commit", null=True),
    text("worktree_dir", null=True),
    text("session_id", null=True),
    text("output", null=True),
    text("problems", null=True),
    flag("pr_asked"),
    text("pr_url", null=True),
    text("summary", null=True),
    text("error", null=True),
    whole("cost_micros"),
    whole("created_ms"),
    whole("updated_ms"),
    whole("completed_ms", null=True),
    json_text("pull_request", null=True),
    sa.UniqueConstraint("tenant", "agent_id", "source_id"),
)
"""`requester` has who asked and what its session was held to, which the agent's session inherits. `iteration` counts
sessions that were begun, `output` is what the last one said, and `problems` what the checks said of it. `pull_request`
is what a completed task proposes: branch, base, commits, sums of the diff, files and risk.
"""
sa.Index("work_tasks_agent", work_tasks.c.tenant, work_tasks.c.agent_id, work_tasks.c.created_ms)
sa.Index("work_tasks_newest", work_tasks.c.tenant, work_tasks.c.created_ms)

work_days = sa.Table(
    "work_days",
    metadata,
    text("tenant", primary_key=True),
    text("agent_id", primary_key=True),
    whole("day"),
    whole("created"),
)
"""How many tasks an agent has created on its last day with any; `day` counts days in UTC since 1970."""

work_settings = sa.Table(
    "work_settings",
    metadata,
    text("project_id", primary_key=True),
    text("tenant"),
    json_text("settings"),
    whole("updated_ms"),
)

MIGRATIONS = (
    Migration(
        1,
        "work",
        [
            "CREATE TABLE work_tasks (id TEXT NOT NULL PRIMARY KEY, tenant TEXT NOT NULL, agent_id TEXT NOT NULL, "
            "project_id TEXT NOT NULL, source TEXT NOT NULL, source_id TEXT, requester {json} NOT NULL, "
            "description TEXT NOT NULL, branch_name TEXT NOT NULL, status TEXT NOT NULL, iteration BIGINT NOT NULL, "
            "original_branch TEXT, base_commit TEXT, worktree_dir TEXT, session_id TEXT, output TEXT, problems TEXT, "
            "pr_asked BOOLEAN NOT NULL, pr_url TEXT, summary TEXT, error TEXT, cost_micros BIGINT NOT NULL, "
            "created_ms BIGINT NOT NULL, updated_ms BIGINT NOT NULL, completed_ms BIGINT, "
            "UNIQUE (tenant, agent_id, source_id))",
            "CREATE INDEX work_tasks_agent ON work_tasks (tenant, agent_id, created_ms)",
            "CREATE INDEX work_tasks_newest ON work_tasks (tenant, created_ms)",
            "CREATE TABLE work_days (tenant TEXT NOT NULL, agent_id TEXT NOT NULL, day BIGINT NOT NULL, "
            "created BIGINT NOT NULL, PRIMARY KEY (tenant, agent_id))",
            "CREATE TABLE work_settings (project_id TEXT NOT NULL PRIMARY KEY, tenant TEXT NOT NULL, "
            "settings {json} NOT NULL, updated_ms BIGINT NOT NULL)",
        ],
    ),
    Migration(2, "pull requests of work tasks", ["ALTER TABLE work_tasks ADD COLUMN pull_request {json}"]),
)

"""The tables of schedules and of their executions: one row for every due time that came."""

import sqlalchemy as sa

from rookery.db.migrate import Migration
from rookery.db.schema import json_text, metadata, text, whole

MICROS = 1_000_000
ACTIVE, PAUSED, COMPLETED = "active", "paused", "completed"
UNDER_WAY = ("running", "awaiting_approval", "approved")
"""What an execution may be while the next due time has to wait for it."""

schedules = sa.Table(
    "schedules",
    metadata,
    text("id", primary_key=True),
    text("tenant"),
    text("agent_id"),
    text("name"),
    text("description"),
    text("cron", null=True),
    whole("interval_ms", null=True),
    text("timezone"),
    whole("anchor_ms"),
    json_text("actions"),
    json_text("requester"),
    text("approval_policy"),
    text("missed"),
    text("status"),
    text("reason", null=True),
    whole("max_executions", null=True),
    whole("execution_count"),
    whole("failures"),
    whole("max_budget_micros", null=True),
    text("notify_address", null=True),
    whole("version"),
    whole("last_due_ms", null=True),
    whole("next_due_ms", null=True),
    text("created_by"),
    whole("created_ms"),
    whole("updated_ms"),
)
"""`version` goes up with every change by hand; what was planned for another one is void. `failures` counts those in a
row, `reason` says why it is not active. `requester` is what whoever gave the actions was held to, and what is done
is held to as well. `interval_ms` counts from `anchor_ms`. Money
is in millionths of a US dollar.
"""
sa.Index("schedules_agents", schedules.c.tenant, schedules.c.agent_id)

executions = sa.Table(
    "schedule_executions",
    metadata,
    text("id", primary_key=True),
    text("tenant"),
    text("schedule_id"),
    text("agent_id"),
    whole("due_ms"),
    text("status"),
    text("result", null=True),
    json_text("steps"),
    json_text("config_snapshot"),
    whole("cost_micros"),
    text("decided_by", null=True),
    whole("created_ms"),
    whole("started_ms", null=True),
    whole("completed_ms", null=True),
    sa.UniqueConstraint("schedule_id", "due_ms"),
)
"""`steps` has one entry for each action, `config_snapshot` the schedule as it was when it was due."""
sa.Index("schedule_executions_status", executions.c.tenant, executions.c.status, executions.c.due_ms)

MIGRATIONS = (
    Migration(
        1,
        "schedules",
        [
            "CREATE TABLE schedules (id TEXT NOT NULL PRIMARY KEY, tenant TEXT NOT NULL, agent_id TEXT NOT NULL, "
            "name TEXT NOT NULL, description TEXT NOT NULL, cron TEXT, interval_ms BIGINT, timezone TEXT NOT NULL, "
            "anchor_ms BIGINT NOT NULL, actions {json} NOT NULL, requester {json} NOT NULL, "
            "approval_policy TEXT NOT NULL, missed TEXT NOT NULL, "
            "status TEXT NOT NULL, reason TEXT, max_executions BIGINT, execution_count BIGINT NOT NULL, "
            "failures BIGINT NOT NULL, max_budget_micros BIGINT, notify_address TEXT, "
            "version BIGINT NOT NULL, last_due_ms BIGINT, next_due_ms BIGINT, created_by TEXT NOT NULL, "
            "created_ms BIGINT NOT NULL, updated_ms BIGINT NOT NULL)",
            "CREATE INDEX schedules_agents ON schedules (tenant, agent_id)",
            "CREATE TABLE schedule_executions (id TEXT NOT NULL PRIMARY KEY, tenant TEXT NOT NULL, "
            "schedule_id TEXT NOT NULL, agent_id TEXT NOT NULL, due_ms BIGINT NOT NULL, status TEXT NOT NULL, "
            "result TEXT, steps {json} NOT NULL, config_snapshot {json} NOT NULL, cost_micros BIGINT NOT NULL, "
            "decided_by TEXT, created_ms BIGINT NOT NULL, started_ms BIGINT, completed_ms BIGINT, "
            "UNIQUE (schedule_id, due_ms))",
            "CREATE INDEX schedule_executions_status ON schedule_executions (tenant, status, due_ms)",
        ],
    ),
)

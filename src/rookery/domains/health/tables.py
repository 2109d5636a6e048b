"""The tables of codebase health, and the steps that build them."""

import sqlalchemy as sa

from rookery.db.migrate import Migration
from rookery.db.schema import json_text, metadata, serial, text, whole
from rookery.domains.health.metrics import COLUMNS

health_snapshots = sa.Table(
    "health_snapshots",
    metadata,
    serial("seq"),
    text("id"),
    text("tenant"),
    text("project_id"),
    text("agent_id", null=True),
    text("source"),
    *(whole(column, null=True) for column in COLUMNS),
    json_text("details"),
    whole("collected_ms"),
    sa.UniqueConstraint("id"),
)
"""A count is NULL if nobody counted: that is not 0. `source` is collected or recorded, `agent_id` NULL for people."""
sa.Index("health_snapshots_project", health_snapshots.c.project_id, health_snapshots.c.seq)

health_settings = sa.Table(
    "health_settings",
    metadata,
    text("project_id", primary_key=True),
    text("tenant"),
    json_text("settings"),
    whole("updated_ms"),
)

health_collections = sa.Table(
    "health_collections",
    metadata,
    text("project_id", primary_key=True),
    text("tenant"),
    text("token"),
    whole("until_ms"),
)
"""Which projects are being looked at. Whoever dies at it holds nobody up for longer than `until_ms`."""

MIGRATIONS = (
    Migration(
        1,
        "health",
        [
            "CREATE TABLE health_snapshots (seq {serial}, id TEXT NOT NULL UNIQUE, tenant TEXT NOT NULL, "
            "project_id TEXT NOT NULL, agent_id TEXT, source TEXT NOT NULL, tsc_error_count BIGINT, "
            "test_failure_count BIGINT, todo_count BIGINT, fixme_count BIGINT, hack_count BIGINT, "
            "large_file_count BIGINT, outdated_dep_count BIGINT, details {json} NOT NULL, "
            "collected_ms BIGINT NOT NULL)",
            "CREATE INDEX health_snapshots_project ON health_snapshots (project_id, seq)",
            "CREATE TABLE health_settings (project_id TEXT NOT NULL PRIMARY KEY, tenant TEXT NOT NULL, "
            "settings {json} NOT NULL, updated_ms BIGINT NOT NULL)",
            "CREATE TABLE health_collections (project_id TEXT NOT NULL PRIMARY KEY, tenant TEXT NOT NULL, "
            "token TEXT NOT NULL, until_ms BIGINT NOT NULL)",
        ],
    ),
)

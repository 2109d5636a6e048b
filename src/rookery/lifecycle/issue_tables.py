"""The rows of issues. They stand here, below the domains, because more than one domain has to find an issue."""

import sqlalchemy as sa

from rookery.db.migrate import Migration
from rookery.db.schema import metadata, text, whole

WAKE = "orchestrator"
"""Whoever plans the work waits for this name: something about an issue is new."""
issues = sa.Table(
    "issues",
    metadata,
    text("id", primary_key=True),
    text("tenant"),
    text("project_id"),
    text("identifier"),
    whole("number"),
    text("parent_id", null=True),
    text("title"),
    text("description"),
    text("status"),
    text("blocked_on", null=True),
    text("phase"),
    whole("priority"),
    text("size", null=True),
    whole("rejections"),
    text("created_by"),
    text("author"),
    whole("created_ms"),
    whole("updated_ms"),
    whole("fence"),
    text("lease_subject", null=True),
    text("lease_session", null=True),
    text("lease_name", null=True),
    whole("lease_until_ms", null=True),
    text("run_id", null=True),
    sa.UniqueConstraint("tenant", "identifier"),
)
"""`fence` counts the leases that the issue has had; `blocked_on` says what a blocked issue waits for; `run_id` is the
run of an agent that made it."""
sa.Index("issues_status", issues.c.project_id, issues.c.status, issues.c.priority, issues.c.created_ms, issues.c.id)
_FINISHED = sa.text("status IN ('done', 'cancelled')")
sa.Index(
    "issues_finished",
    issues.c.project_id,
    issues.c.status,
    issues.c.updated_ms,
    sqlite_where=_FINISHED,
    postgresql_where=_FINISHED,
)
sa.Index("issues_number", issues.c.project_id, issues.c.number)
sa.Index("issues_parent", issues.c.parent_id)
sa.Index("issues_order", issues.c.project_id, issues.c.priority, issues.c.created_ms, issues.c.id)
_HELD = issues.c.lease_subject.is_not(None)
sa.Index("issues_lease", issues.c.tenant, issues.c.lease_subject, sqlite_where=_HELD, postgresql_where=_HELD)
_MADE = issues.c.run_id.is_not(None)
sa.Index("issues_run", issues.c.tenant, issues.c.run_id, sqlite_where=_MADE, postgresql_where=_MADE)

issue_aliases = sa.Table(
    "issue_aliases",
    metadata,
    text("tenant", primary_key=True),
    text("identifier", primary_key=True),
    text("issue_id"),
)
"""Identifiers that an issue had before it was moved to another project."""

MIGRATIONS = (
    Migration(
        1,
        "issues",
        [
            "CREATE TABLE issues (id TEXT NOT NULL PRIMARY KEY, tenant TEXT NOT NULL, project_id TEXT NOT NULL, "
            "identifier TEXT NOT NULL, number BIGINT NOT NULL, parent_id TEXT, title TEXT NOT NULL, "
            "description TEXT NOT NULL, status TEXT NOT NULL, blocked_on TEXT, phase TEXT NOT NULL, "
            "priority BIGINT NOT NULL, size TEXT, rejections BIGINT NOT NULL, created_by TEXT NOT NULL, "
            "author TEXT NOT NULL, created_ms BIGINT NOT NULL, updated_ms BIGINT NOT NULL, fence BIGINT NOT NULL, "
            "lease_subject TEXT, lease_session TEXT, lease_name TEXT, lease_until_ms BIGINT, "
            "UNIQUE (tenant, identifier))",
            "CREATE INDEX issues_status ON issues (project_id, status, priority, created_ms, id)",
            "CREATE INDEX issues_finished ON issues (project_id, status, updated_ms) "
            "WHERE status IN ('done', 'cancelled')",
            "CREATE INDEX issues_number ON issues (project_id, number)",
            "CREATE INDEX issues_parent ON issues (parent_id)",
            "CREATE INDEX issues_order ON issues (project_id, priority, created_ms, id)",
            "CREATE INDEX issues_lease ON issues (tenant, lease_subject) WHERE lease_subject IS NOT NULL",
            "CREATE TABLE issue_aliases (tenant TEXT NOT NULL, identifier TEXT NOT NULL, issue_id TEXT NOT NULL, "
            "PRIMARY KEY (tenant, identifier))",
        ],
    ),
    Migration(
        2,
        "the run that made an issue",
        [
            "ALTER TABLE issues ADD COLUMN run_id TEXT",
            "CREATE INDEX issues_run ON issues (tenant, run_id) WHERE run_id IS NOT NULL",
        ],
    ),
)

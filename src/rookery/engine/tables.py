"""What the orchestrator remembers: who leads, what it has dispatched, where work happens, and what gates said."""

import sqlalchemy as sa

from rookery.db.migrate import Migration
from rookery.db.schema import flag, json_text, metadata, text, whole

QUEUED, RUNNING, ENDED = "queued", "running", "ended"

orchestrator_leaders = sa.Table(
    "orchestrator_leaders",
    metadata,
    text("name", primary_key=True),
    text("holder"),
    text("host"),
    whole("term"),
    whole("until_ms"),
    whole("ticked_ms", null=True),
    json_text("report", null=True),
)
"""One row. `term` counts the leaders there were; whoever has a smaller one writes nothing more."""

orchestrator_projects = sa.Table(
    "orchestrator_projects",
    metadata,
    text("project_id", primary_key=True),
    text("tenant"),
    flag("enabled"),
    json_text("settings"),
    whole("updated_ms"),
)

dispatches = sa.Table(
    "dispatches",
    metadata,
    text("id", primary_key=True),
    text("tenant"),
    text("project_id"),
    text("issue_id", null=True),
    text("work"),
    text("role"),
    text("phase", null=True),
    text("about", null=True),
    json_text("payload"),
    text("agent"),
    whole("attempt"),
    text("state"),
    text("outcome", null=True),
    text("error", null=True),
    text("stop", null=True),
    whole("job_id", null=True),
    text("run_id", null=True),
    text("session", null=True),
    whole("fence", null=True),
    text("workspace", null=True),
    whole("budget_micros", null=True),
    json_text("prompt", null=True),
    json_text("tools", null=True),
    whole("created_ms"),
    whole("started_ms", null=True),
    whole("ended_ms", null=True),
    whole("updated_ms"),
)
"""One row for each attempt to let an agent do something; a retry is another row.

`budget_micros` is what the run may cost, in millionths of a dollar: nobody else is promised the same money.
`work` is phase, judge_phase, judge_pr, scan or intake; `about` is the claim or the pull request that is judged. `stop`
is why it is to end. `prompt` says which sections the agent was told and what was cut of them, `tools` the names that it
had and the warnings about them."""
_LIVE = dispatches.c.state != ENDED
ALIVE = dispatches.c.state != sa.literal_column(f"'{ENDED}'")
"""What has not ended. As text, or no database could know that these are the rows of its partial indexes."""
_WITH_ISSUE, _WITHOUT = (
    sa.and_(_LIVE, dispatches.c.issue_id.is_not(None)),
    sa.and_(_LIVE, dispatches.c.issue_id.is_(None)),
)
sa.Index(
    "dispatches_live_issue",
    dispatches.c.tenant,
    dispatches.c.issue_id,
    unique=True,
    sqlite_where=_WITH_ISSUE,
    postgresql_where=_WITH_ISSUE,
)
sa.Index(
    "dispatches_live_project",
    dispatches.c.tenant,
    dispatches.c.project_id,
    dispatches.c.work,
    unique=True,
    sqlite_where=_WITHOUT,
    postgresql_where=_WITHOUT,
)
sa.Index("dispatches_live", dispatches.c.created_ms, dispatches.c.id, sqlite_where=_LIVE, postgresql_where=_LIVE)
sa.Index("dispatches_issue", dispatches.c.tenant, dispatches.c.issue_id, dispatches.c.created_ms, dispatches.c.id)
sa.Index("dispatches_project", dispatches.c.tenant, dispatches.c.project_id, dispatches.c.created_ms, dispatches.c.id)
_BACKGROUND = dispatches.c.issue_id.is_(None)
sa.Index(
    "dispatches_background",
    dispatches.c.tenant,
    dispatches.c.project_id,
    dispatches.c.work,
    dispatches.c.created_ms,
    sqlite_where=_BACKGROUND,
    postgresql_where=_BACKGROUND,
)

workspaces = sa.Table(
    "workspaces",
    metadata,
    text("issue_id", primary_key=True),
    text("tenant"),
    text("project_id"),
    text("repository"),
    text("path"),
    text("branch"),
    text("base"),
    text("kept", null=True),
    whole("made_ms"),
    whole("removed_ms", null=True),
)
"""The worktree of an issue. `repository` is the project's folder, `base` the commit that the branch began at, `kept`
why it was not removed though its issue has ended."""
sa.Index("workspaces_project", workspaces.c.tenant, workspaces.c.project_id)

gate_runs = sa.Table(
    "gate_runs",
    metadata,
    text("claim_id", primary_key=True),
    text("tenant"),
    text("issue_id"),
    text("head"),
    json_text("results", null=True),
    text("error", null=True),
    whole("created_ms"),
    whole("ended_ms", null=True),
)
"""What the project's gates said of one claim. `results` is null until they have run."""

intake_requests = sa.Table(
    "intake_requests",
    metadata,
    text("id", primary_key=True),
    text("tenant"),
    text("project_id"),
    text("digest"),
    text("text"),
    text("source"),
    text("submitted_by"),
    text("state"),
    text("dispatch_id", null=True),
    json_text("issues", null=True),
    text("note", null=True),
    whole("created_ms"),
    whole("done_ms", null=True),
    sa.UniqueConstraint("tenant", "project_id", "digest"),
)
"""Raw requests: `state` is new, taken, done or failed; `digest` keeps the same request from being taken in twice."""
sa.Index("intake_requests_state", intake_requests.c.tenant, intake_requests.c.project_id, intake_requests.c.state)

MIGRATIONS = (
    Migration(
        1,
        "orchestrator",
        [
            "CREATE TABLE orchestrator_leaders (name TEXT NOT NULL PRIMARY KEY, holder TEXT NOT NULL, "
            "host TEXT NOT NULL, term BIGINT NOT NULL, until_ms BIGINT NOT NULL, ticked_ms BIGINT, report {json})",
            "CREATE TABLE orchestrator_projects (project_id TEXT NOT NULL PRIMARY KEY, tenant TEXT NOT NULL, "
            "enabled BOOLEAN NOT NULL, settings {json} NOT NULL, updated_ms BIGINT NOT NULL)",
            "CREATE TABLE dispatches (id TEXT NOT NULL PRIMARY KEY, tenant TEXT NOT NULL, project_id TEXT NOT NULL, "
            "issue_id TEXT, work TEXT NOT NULL, role TEXT NOT NULL, phase TEXT, about TEXT, payload {json} NOT NULL, "
            "agent TEXT NOT NULL, attempt BIGINT NOT NULL, state TEXT NOT NULL, outcome TEXT, error TEXT, stop TEXT, "
            "job_id BIGINT, run_id TEXT, session TEXT, fence BIGINT, workspace TEXT, "
            "budget_micros BIGINT, prompt {json}, tools {json}, "
            "created_ms BIGINT NOT NULL, started_ms BIGINT, ended_ms BIGINT, updated_ms BIGINT NOT NULL)",
            "CREATE UNIQUE INDEX dispatches_live_issue ON dispatches (tenant, issue_id) "
            "WHERE state != 'ended' AND issue_id IS NOT NULL",
            "CREATE UNIQUE INDEX dispatches_live_project ON dispatches (tenant, project_id, work) "
            "WHERE state != 'ended' AND issue_id IS NULL",
            "CREATE INDEX dispatches_live ON dispatches (created_ms, id) WHERE state != 'ended'",
            "CREATE INDEX dispatches_issue ON dispatches (tenant, issue_id, created_ms, id)",
            "CREATE INDEX dispatches_project ON dispatches (tenant, project_id, created_ms, id)",
            "CREATE INDEX dispatches_background ON dispatches (tenant, project_id, work, created_ms) "
            "WHERE issue_id IS NULL",
            "CREATE TABLE workspaces (issue_id TEXT NOT NULL PRIMARY KEY, tenant TEXT NOT NULL, "
            "project_id TEXT NOT NULL, repository TEXT NOT NULL, path TEXT NOT NULL, branch TEXT NOT NULL, "
            "base TEXT NOT NULL, kept TEXT, made_ms BIGINT NOT NULL, removed_ms BIGINT)",
            "CREATE INDEX workspaces_project ON workspaces (tenant, project_id)",
            "CREATE TABLE gate_runs (claim_id TEXT NOT NULL PRIMARY KEY, tenant TEXT NOT NULL, issue_id TEXT NOT NULL, "
            "head TEXT NOT NULL, results {json}, error TEXT, created_ms BIGINT NOT NULL, ended_ms BIGINT)",
            "CREATE TABLE intake_requests (id TEXT NOT NULL PRIMARY KEY, tenant TEXT NOT NULL, "
            "project_id TEXT NOT NULL, digest TEXT NOT NULL, text TEXT NOT NULL, source TEXT NOT NULL, "
            "submitted_by TEXT NOT NULL, state TEXT NOT NULL, dispatch_id TEXT, issues {json}, note TEXT, "
            "created_ms BIGINT NOT NULL, done_ms BIGINT, UNIQUE (tenant, project_id, digest))",
            "CREATE INDEX intake_requests_state ON intake_requests (tenant, project_id, state)",
        ],
    ),
)

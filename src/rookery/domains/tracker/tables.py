"""The tables of the tracker, and the step that builds them. Issues themselves are in `lifecycle`."""

import sqlalchemy as sa

from rookery.db.migrate import Migration
from rookery.db.schema import append_only, flag, json_text, metadata, serial, text, whole
from rookery.domains.tracker.learning_tables import LEARNING_STATEMENTS

tracker_projects = sa.Table(
    "tracker_projects",
    metadata,
    text("project_id", primary_key=True),
    text("tenant"),
    text("prefix"),
    whole("next_number"),
    json_text("settings"),
    sa.UniqueConstraint("tenant", "prefix"),
)
issue_labels = sa.Table(
    "issue_labels", metadata, text("issue_id", primary_key=True), text("label", primary_key=True), text("project_id")
)
sa.Index("issue_labels_label", issue_labels.c.project_id, issue_labels.c.label)
issue_deps = sa.Table("issue_deps", metadata, text("issue_id", primary_key=True), text("depends_on", primary_key=True))
sa.Index("issue_deps_depends_on", issue_deps.c.depends_on)
issue_changes = sa.Table(
    "issue_changes",
    metadata,
    serial("seq"),
    text("tenant"),
    text("issue_id"),
    text("field"),
    json_text("old", null=True),
    json_text("new", null=True),
    text("subject"),
    text("author"),
    text("why", null=True),
    whole("at_ms"),
)
sa.Index("issue_changes_issue", issue_changes.c.issue_id, issue_changes.c.seq)
comments = sa.Table(
    "comments",
    metadata,
    serial("seq"),
    text("id"),
    text("tenant"),
    text("issue_id"),
    text("author"),
    text("subject"),
    text("content"),
    whole("created_ms"),
    sa.UniqueConstraint("id"),
)
sa.Index("comments_issue", comments.c.issue_id, comments.c.seq)
findings = sa.Table(
    "findings",
    metadata,
    serial("seq"),
    text("id"),
    text("tenant"),
    text("issue_id"),
    text("run_id", null=True),
    text("category"),
    text("author"),
    text("subject"),
    json_text("payload"),
    whole("created_ms"),
    sa.UniqueConstraint("id"),
)
sa.Index("findings_issue", findings.c.issue_id, findings.c.seq)
finding_processing = sa.Table(
    "finding_processing",
    metadata,
    text("finding_id", primary_key=True),
    text("project_id"),
    text("issue_id"),
    whole("seq"),
    text("outcome", null=True),
    whole("processed_ms", null=True),
)
"""A row for each claim and verdict. Processed: `processed_ms` is set; the finding itself never changes."""
sa.Index(
    "finding_processing_waiting",
    finding_processing.c.project_id,
    finding_processing.c.seq,
    sqlite_where=finding_processing.c.processed_ms.is_(None),
    postgresql_where=finding_processing.c.processed_ms.is_(None),
)
phase_claims = sa.Table(
    "phase_claims",
    metadata,
    text("finding_id", primary_key=True),
    whole("seq"),
    text("issue_id"),
    text("phase"),
    text("artifact_hash", null=True),
    text("worktree", null=True),
    text("branch", null=True),
    text("head", null=True),
    text("subject"),
    text("profile", null=True),
)
"""Where a claim was made and by whom, besides what the finding says."""
sa.Index("phase_claims_issue", phase_claims.c.issue_id, phase_claims.c.phase, phase_claims.c.seq)
phase_verdicts = sa.Table(
    "phase_verdicts",
    metadata,
    text("finding_id", primary_key=True),
    text("claim_id"),
    text("verdict"),
    sa.UniqueConstraint("claim_id"),
)
artifacts = sa.Table(
    "artifacts",
    metadata,
    text("issue_id", primary_key=True),
    text("hash", primary_key=True),
    text("phase"),
    text("path"),
    text("content"),
    whole("created_ms"),
)
"""What was claimed, byte for byte, so that a verdict or a validation never depends on a folder that may be gone."""
prs = sa.Table(
    "prs",
    metadata,
    text("id", primary_key=True),
    text("tenant"),
    text("project_id"),
    text("issue_id"),
    whole("revision"),
    text("branch"),
    text("base"),
    text("diff"),
    json_text("stats"),
    whole("source_lines"),
    whole("risk_score"),
    text("risk_level"),
    json_text("risk_reasons"),
    text("status"),
    text("reason", null=True),
    text("fix_instructions", null=True),
    text("subject"),
    text("profile", null=True),
    text("judged_by", null=True),
    whole("created_ms"),
    whole("updated_ms"),
    text("head", null=True),
    text("diff_hash", null=True),
    text("approved_head", null=True),
    text("approved_diff", null=True),
    text("merged_in", null=True),
    text("url", null=True),
    whole("told_ms", null=True),
    sa.UniqueConstraint("issue_id", "revision"),
)
"""`head` is the commit that is reviewed and `diff_hash` the SHA-256 of its diff from where it left the base branch; an
approval keeps both. Without a `head` nothing is known but the diff. `merged_in` is the commit of the base branch that
has it, `url` where it was published, `told_ms` when the owner was told that it waits for a person."""
sa.Index("prs_project", prs.c.project_id, prs.c.status)
pr_gates = sa.Table(
    "pr_gates",
    metadata,
    text("pr_id", primary_key=True),
    sa.Column("position", sa.BigInteger, primary_key=True, autoincrement=False),
    text("command"),
    text("label"),
    whole("exit_code"),
    text("output"),
    flag("required"),
)
line_comments = sa.Table(
    "line_comments",
    metadata,
    serial("seq"),
    text("id"),
    text("tenant"),
    text("issue_id"),
    text("pr_id"),
    text("path"),
    text("side"),
    whole("line"),
    text("code"),
    text("content"),
    text("author"),
    text("subject"),
    whole("created_ms"),
    sa.UniqueConstraint("id"),
)
"""What was said of a line of a pull request: of `side` old or new, with the `code` that stood there."""
sa.Index("line_comments_pr", line_comments.c.pr_id, line_comments.c.seq)
sa.Index("line_comments_issue", line_comments.c.issue_id, line_comments.c.seq)
coverage = sa.Table(
    "coverage",
    metadata,
    text("project_id", primary_key=True),
    text("file_path", primary_key=True),
    text("concept", primary_key=True),
    text("tenant"),
    text("status"),
    text("ticket_id", null=True),
    text("notes", null=True),
    text("author"),
    whole("updated_ms"),
    text("content", null=True),
)
"""What was examined. `content` is git's hash of the file as it was then, null where nobody knows."""
scan_readings = sa.Table(
    "scan_readings",
    metadata,
    text("session", primary_key=True),
    text("tenant"),
    text("project_id"),
    text("head"),
    json_text("files"),
)
"""What a scanner's session reads: the commit, and the files that it was given with git's hash of each."""

_FINDINGS = [
    "CREATE TABLE findings (seq {serial}, id TEXT NOT NULL UNIQUE, tenant TEXT NOT NULL, issue_id TEXT NOT NULL, "
    "run_id TEXT, category TEXT NOT NULL, author TEXT NOT NULL, subject TEXT NOT NULL, payload {json} NOT NULL, "
    "created_ms BIGINT NOT NULL)",
    "CREATE INDEX findings_issue ON findings (issue_id, seq)",
    append_only("findings"),
    "CREATE TABLE finding_processing (finding_id TEXT NOT NULL PRIMARY KEY, project_id TEXT NOT NULL, "
    "issue_id TEXT NOT NULL, seq BIGINT NOT NULL, outcome TEXT, processed_ms BIGINT)",
    "CREATE INDEX finding_processing_waiting ON finding_processing (project_id, seq) WHERE processed_ms IS NULL",
    "CREATE TABLE phase_claims (finding_id TEXT NOT NULL PRIMARY KEY, seq BIGINT NOT NULL, issue_id TEXT NOT NULL, "
    "phase TEXT NOT NULL, artifact_hash TEXT, worktree TEXT, branch TEXT, head TEXT, subject TEXT NOT NULL, "
    "profile TEXT)",
    "CREATE INDEX phase_claims_issue ON phase_claims (issue_id, phase, seq)",
    "CREATE TABLE phase_verdicts (finding_id TEXT NOT NULL PRIMARY KEY, claim_id TEXT NOT NULL UNIQUE, "
    "verdict TEXT NOT NULL)",
    "CREATE TABLE artifacts (issue_id TEXT NOT NULL, hash TEXT NOT NULL, phase TEXT NOT NULL, path TEXT NOT NULL, "
    "content TEXT NOT NULL, created_ms BIGINT NOT NULL, PRIMARY KEY (issue_id, hash))",
]
_ABOUT_ISSUES = [
    "CREATE TABLE tracker_projects (project_id TEXT NOT NULL PRIMARY KEY, tenant TEXT NOT NULL, prefix TEXT NOT NULL, "
    "next_number BIGINT NOT NULL, settings {json} NOT NULL, UNIQUE (tenant, prefix))",
    "CREATE TABLE issue_labels (issue_id TEXT NOT NULL, label TEXT NOT NULL, project_id TEXT NOT NULL, "
    "PRIMARY KEY (issue_id, label))",
    "CREATE INDEX issue_labels_label ON issue_labels (project_id, label)",
    "CREATE TABLE issue_deps (issue_id TEXT NOT NULL, depends_on TEXT NOT NULL, PRIMARY KEY (issue_id, depends_on))",
    "CREATE INDEX issue_deps_depends_on ON issue_deps (depends_on)",
    "CREATE TABLE issue_changes (seq {serial}, tenant TEXT NOT NULL, issue_id TEXT NOT NULL, field TEXT NOT NULL, "
    "old {json}, new {json}, subject TEXT NOT NULL, author TEXT NOT NULL, why TEXT, at_ms BIGINT NOT NULL)",
    "CREATE INDEX issue_changes_issue ON issue_changes (issue_id, seq)",
    append_only("issue_changes"),
    "CREATE TABLE comments (seq {serial}, id TEXT NOT NULL UNIQUE, tenant TEXT NOT NULL, issue_id TEXT NOT NULL, "
    "author TEXT NOT NULL, subject TEXT NOT NULL, content TEXT NOT NULL, created_ms BIGINT NOT NULL)",
    "CREATE INDEX comments_issue ON comments (issue_id, seq)",
]
_REVIEW = [
    "CREATE TABLE prs (id TEXT NOT NULL PRIMARY KEY, tenant TEXT NOT NULL, project_id TEXT NOT NULL, "
    "issue_id TEXT NOT NULL, revision BIGINT NOT NULL, branch TEXT NOT NULL, base TEXT NOT NULL, diff TEXT NOT NULL, "
    "stats {json} NOT NULL, source_lines BIGINT NOT NULL, risk_score BIGINT NOT NULL, risk_level TEXT NOT NULL, "
    "risk_reasons {json} NOT NULL, status TEXT NOT NULL, reason TEXT, fix_instructions TEXT, subject TEXT NOT NULL, "
    "profile TEXT, judged_by TEXT, created_ms BIGINT NOT NULL, updated_ms BIGINT NOT NULL, "
    "UNIQUE (issue_id, revision))",
    "CREATE INDEX prs_project ON prs (project_id, status)",
    "CREATE TABLE pr_gates (pr_id TEXT NOT NULL, position BIGINT NOT NULL, command TEXT NOT NULL, label TEXT NOT NULL, "
    "exit_code BIGINT NOT NULL, output TEXT NOT NULL, required BOOLEAN NOT NULL, PRIMARY KEY (pr_id, position))",
    "CREATE TABLE coverage (project_id TEXT NOT NULL, file_path TEXT NOT NULL, concept TEXT NOT NULL, "
    "tenant TEXT NOT NULL, status TEXT NOT NULL, ticket_id TEXT, notes TEXT, author TEXT NOT NULL, "
    "updated_ms BIGINT NOT NULL, PRIMARY KEY (project_id, file_path, concept))",
    "CREATE TABLE test_health (seq {serial}, tenant TEXT NOT NULL, project_id TEXT NOT NULL, issue_id TEXT NOT NULL, "
    "run_id TEXT, test_count BIGINT NOT NULL, test_files_changed BIGINT, tests_added BIGINT, tests_removed BIGINT, "
    "execution_time_ms BIGINT, source_lines BIGINT, author TEXT NOT NULL, at_ms BIGINT NOT NULL)",
    "CREATE INDEX test_health_project ON test_health (project_id, seq)",
]
_BOUND = ("head", "diff_hash", "approved_head", "approved_diff", "merged_in", "url")
_MERGING = [
    *(f"ALTER TABLE prs ADD COLUMN {name} TEXT" for name in _BOUND),
    "ALTER TABLE prs ADD COLUMN told_ms BIGINT",
]
_SCANS = [
    "ALTER TABLE coverage ADD COLUMN content TEXT",
    "CREATE TABLE scan_readings (session TEXT NOT NULL PRIMARY KEY, tenant TEXT NOT NULL, project_id TEXT NOT NULL, "
    "head TEXT NOT NULL, files {json} NOT NULL)",
]
_LINE_COMMENTS = [
    "CREATE TABLE line_comments (seq {serial}, id TEXT NOT NULL UNIQUE, tenant TEXT NOT NULL, issue_id TEXT NOT NULL, "
    "pr_id TEXT NOT NULL, path TEXT NOT NULL, side TEXT NOT NULL, line BIGINT NOT NULL, code TEXT NOT NULL, "
    "content TEXT NOT NULL, author TEXT NOT NULL, subject TEXT NOT NULL, created_ms BIGINT NOT NULL)",
    "CREATE INDEX line_comments_pr ON line_comments (pr_id, seq)",
    "CREATE INDEX line_comments_issue ON line_comments (issue_id, seq)",
]
MIGRATIONS = (
    Migration(1, "tracker", [*_ABOUT_ISSUES, *_FINDINGS, *_REVIEW, *LEARNING_STATEMENTS]),
    Migration(2, "merging", _MERGING),
    Migration(3, "what scanners read", _SCANS),
    Migration(4, "line comments", _LINE_COMMENTS),
)

"""The table of asks: whatever somebody has to answer before an agent goes on. One row each, before anybody is told."""

import sqlalchemy as sa

from rookery.db.schema import json_text, metadata, text, whole

KINDS = ("question", "approval", "elicitation", "schedule", "verdict")
OPEN, ANSWERED, WITHDRAWN, EXPIRED = "open", "answered", "withdrawn", "expired"
STATUSES = (OPEN, ANSWERED, WITHDRAWN, EXPIRED)

asks = sa.Table(
    "asks",
    metadata,
    text("id", primary_key=True),
    text("short_id"),
    text("tenant"),
    text("kind"),
    text("agent_id"),
    text("project_id", null=True),
    text("session", null=True),
    text("subject", null=True),
    text("question"),
    json_text("options"),
    text("context"),
    text("status"),
    json_text("answer", null=True),
    text("answered_by", null=True),
    text("answered_via", null=True),
    text("batch_key"),
    text("key", null=True),
    whole("created_ms"),
    whole("expires_ms"),
    whole("answered_ms", null=True),
    whole("told_ms", null=True),
    json_text("follow", null=True),
    whole("later_ms", null=True),
)
"""`agent_id` is who asks, `subject` what it is about. Of one `key` there is one open ask at most. Asks of one agent and
one `batch_key` can be answered together. `answer` is `{text, option}`, with options counted from 1; `told_ms` says
since when the asker has it. One that is open past `expires_ms` has expired, whatever its status says yet. `follow` is
the job that an answer leads to, as `{job, args, queue}`. `later_ms` is when a person last said: not now. `short_id` is
the beginning of the id. What was withdrawn has in `answered_ms` since when, and in `answered_by` the person who
dismissed it, if one did.
"""
_OPEN = sa.text("status = 'open'")
sa.Index("asks_keys", asks.c.tenant, asks.c.key, asks.c.created_ms)
sa.Index("asks_open_keys", asks.c.tenant, asks.c.key, unique=True, sqlite_where=_OPEN, postgresql_where=_OPEN)
sa.Index("asks_open", asks.c.tenant, asks.c.expires_ms, sqlite_where=_OPEN, postgresql_where=_OPEN)
sa.Index(
    "asks_open_of",
    *(asks.c.tenant, asks.c.agent_id, asks.c.batch_key),
    sqlite_where=_OPEN,
    postgresql_where=_OPEN,
)
sa.Index("asks_short", asks.c.tenant, asks.c.short_id)
sa.Index("asks_newest", asks.c.tenant, asks.c.created_ms)

ASK_STATEMENTS = [
    "CREATE TABLE asks (id TEXT NOT NULL PRIMARY KEY, tenant TEXT NOT NULL, kind TEXT NOT NULL, "
    "agent_id TEXT NOT NULL, project_id TEXT, session TEXT, subject TEXT, question TEXT NOT NULL, "
    "options {json} NOT NULL, context TEXT NOT NULL, status TEXT NOT NULL, answer {json}, answered_by TEXT, "
    "answered_via TEXT, batch_key TEXT NOT NULL, key TEXT, created_ms BIGINT NOT NULL, "
    "expires_ms BIGINT NOT NULL, answered_ms BIGINT, told_ms BIGINT)",
    "CREATE INDEX asks_keys ON asks (tenant, key, created_ms)",
    "CREATE UNIQUE INDEX asks_open_keys ON asks (tenant, key) WHERE status = 'open'",
    "CREATE INDEX asks_open ON asks (tenant, expires_ms) WHERE status = 'open'",
    "CREATE INDEX asks_batches ON asks (tenant, agent_id, batch_key)",
    "CREATE INDEX asks_newest ON asks (tenant, created_ms)",
]

approvals = sa.Table(
    "approvals",
    metadata,
    text("ask_id", primary_key=True),
    text("tenant"),
    text("asker"),
    text("tool"),
    text("digest"),
    whole("number"),
    text("token_hash"),
    whole("used_ms", null=True),
)
"""What an ask of the kind approval is about: one call, by the `digest` of its input. `number` counts the asks about the
same call; `used_ms` is when the call went through, which it does once. `tool` is what a yes that lasts agrees to beyond
this call, empty if there is nothing."""
sa.Index("approvals_calls", approvals.c.tenant, approvals.c.asker, approvals.c.digest, approvals.c.number, unique=True)
sa.Index("approvals_tokens", approvals.c.token_hash, unique=True)

APPROVAL_STATEMENTS = [
    "CREATE TABLE approvals (ask_id TEXT NOT NULL PRIMARY KEY, tenant TEXT NOT NULL, asker TEXT NOT NULL, "
    "tool TEXT NOT NULL, digest TEXT NOT NULL, number BIGINT NOT NULL, token_hash TEXT NOT NULL, used_ms BIGINT)",
    "CREATE UNIQUE INDEX approvals_calls ON approvals (tenant, asker, digest, number)",
    "CREATE UNIQUE INDEX approvals_tokens ON approvals (token_hash)",
]
FOLLOW_STATEMENTS = ["ALTER TABLE asks ADD COLUMN follow {json}", "ALTER TABLE asks ADD COLUMN later_ms BIGINT"]

FOUND_STATEMENTS = [
    "ALTER TABLE asks ADD COLUMN short_id TEXT NOT NULL DEFAULT ''",
    "UPDATE asks SET short_id = substr(id, 1, 8)",
    "CREATE INDEX asks_short ON asks (tenant, short_id)",
    "DROP INDEX asks_batches",
    "CREATE INDEX asks_open_of ON asks (tenant, agent_id, batch_key) WHERE status = 'open'",
]

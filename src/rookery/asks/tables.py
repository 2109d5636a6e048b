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
)
"""`agent_id` is who asks, `subject` what it is about. Of one `key` there is one open ask at most. Asks of one agent and
one `batch_key` can be answered together. `answer` is `{text, option}`, with options counted from 1; `told_ms` says
since when the asker has it. One that is open past `expires_ms` has expired, whatever its status says yet.
"""
_OPEN = sa.text("status = 'open'")
sa.Index("asks_keys", asks.c.tenant, asks.c.key, asks.c.created_ms)
sa.Index("asks_open_keys", asks.c.tenant, asks.c.key, unique=True, sqlite_where=_OPEN, postgresql_where=_OPEN)
sa.Index("asks_open", asks.c.tenant, asks.c.expires_ms, sqlite_where=_OPEN, postgresql_where=_OPEN)
sa.Index("asks_batches", asks.c.tenant, asks.c.agent_id, asks.c.batch_key)
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

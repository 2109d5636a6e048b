"""The tables of messages between agents, and the steps that build them."""

import sqlalchemy as sa

from rookery.db.migrate import Migration
from rookery.db.schema import json_text, metadata, text, whole

messages = sa.Table(
    "agent_messages",
    metadata,
    text("id", primary_key=True),
    text("tenant"),
    text("thread_id"),
    text("from_id"),
    text("from_name"),
    text("from_session", null=True),
    text("to_id"),
    text("to_name"),
    text("content"),
    text("digest"),
    text("status"),
    text("response", null=True),
    text("error_code", null=True),
    text("error", null=True),
    text("project_id", null=True),
    json_text("held"),
    text("session_id", null=True),
    whole("cost_micros"),
    text("mailbox", null=True),
    whole("created_ms"),
    whole("accepted_ms", null=True),
    whole("arrived_ms", null=True),
    whole("completed_ms", null=True),
    whole("told_ms", null=True),
)
"""`mailbox` is whose inbox the row lies in: the receiver's until it is acknowledged, then the sender's if there is an
answer. `told_ms` is when the answer was given to a call of the sender, which does not say that its client got it.
`accepted_ms` is absent for messages that were refused. `digest` is what duplicates have in common, `held` what the
receiver's session is held to.
"""
sa.Index("agent_messages_sender", messages.c.tenant, messages.c.from_id, messages.c.accepted_ms)
sa.Index("agent_messages_thread", messages.c.tenant, messages.c.thread_id, messages.c.created_ms)
sa.Index(
    "agent_messages_processing",
    messages.c.tenant,
    messages.c.to_id,
    sqlite_where=sa.text("status = 'processing'"),
    postgresql_where=sa.text("status = 'processing'"),
)
sa.Index(
    "agent_messages_session",
    messages.c.tenant,
    messages.c.from_session,
    sqlite_where=sa.text("from_session IS NOT NULL"),
    postgresql_where=sa.text("from_session IS NOT NULL"),
)
sa.Index(
    "agent_messages_inbox",
    messages.c.tenant,
    messages.c.mailbox,
    messages.c.arrived_ms,
    sqlite_where=sa.text("mailbox IS NOT NULL"),
    postgresql_where=sa.text("mailbox IS NOT NULL"),
)

sa.Index("agent_messages_age", messages.c.tenant, messages.c.created_ms)

senders = sa.Table(
    "message_senders",
    metadata,
    text("tenant", primary_key=True),
    text("sender", primary_key=True),
    whole("touched_ms"),
)
"""One row for each sender: whoever has it is the only one to send as that sender."""
sa.Index("message_senders_age", senders.c.tenant, senders.c.touched_ms)

breakers = sa.Table(
    "message_breakers",
    metadata,
    text("tenant", primary_key=True),
    text("target", primary_key=True),
    whole("failures"),
    whole("successes"),
    whole("opened_ms", null=True),
)
"""`opened_ms` is absent while closed. `failures` counts those in a row, `successes` those since it opened."""

MIGRATIONS = (
    Migration(
        1,
        "messages",
        [
            "CREATE TABLE agent_messages (id TEXT NOT NULL PRIMARY KEY, tenant TEXT NOT NULL, thread_id TEXT NOT NULL, "
            "from_id TEXT NOT NULL, from_name TEXT NOT NULL, from_session TEXT, to_id TEXT NOT NULL, "
            "to_name TEXT NOT NULL, "
            "content TEXT NOT NULL, digest TEXT NOT NULL, status TEXT NOT NULL, response TEXT, error_code TEXT, "
            "error TEXT, project_id TEXT, held {json} NOT NULL, session_id TEXT, cost_micros BIGINT NOT NULL, "
            "mailbox TEXT, created_ms BIGINT NOT NULL, accepted_ms BIGINT, arrived_ms BIGINT, completed_ms BIGINT)",
            "CREATE INDEX agent_messages_sender ON agent_messages (tenant, from_id, accepted_ms)",
            "CREATE INDEX agent_messages_thread ON agent_messages (tenant, thread_id, created_ms)",
            "CREATE INDEX agent_messages_processing ON agent_messages (tenant, to_id) WHERE status = 'processing'",
            "CREATE INDEX agent_messages_session ON agent_messages (tenant, from_session) "
            "WHERE from_session IS NOT NULL",
            "CREATE INDEX agent_messages_inbox ON agent_messages (tenant, mailbox, arrived_ms) "
            "WHERE mailbox IS NOT NULL",
            "CREATE TABLE message_senders (tenant TEXT NOT NULL, sender TEXT NOT NULL, touched_ms BIGINT NOT NULL, "
            "PRIMARY KEY (tenant, sender))",
            "CREATE TABLE message_breakers (tenant TEXT NOT NULL, target TEXT NOT NULL, failures BIGINT NOT NULL, "
            "successes BIGINT NOT NULL, opened_ms BIGINT, PRIMARY KEY (tenant, target))",
        ],
    ),
    Migration(
        2,
        "told answers, and the end of old messages",
        [
            "ALTER TABLE agent_messages ADD COLUMN told_ms BIGINT",
            "CREATE INDEX agent_messages_age ON agent_messages (tenant, created_ms)",
            "CREATE INDEX message_senders_age ON message_senders (tenant, touched_ms)",
        ],
    ),
)

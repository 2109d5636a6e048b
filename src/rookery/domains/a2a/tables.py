"""The tables of A2A: cards of agents elsewhere, what sessions have asked of them, and tasks that came in."""

import sqlalchemy as sa

from rookery.db.migrate import Migration
from rookery.db.schema import json_text, metadata, text, whole

cards = sa.Table(
    "a2a_cards",
    metadata,
    text("tenant", primary_key=True),
    text("url", primary_key=True),
    text("name"),
    json_text("card"),
    whole("fetched_ms"),
)
"""What agents elsewhere say of themselves, by their address without a final slash."""
sa.Index("a2a_cards_age", cards.c.tenant, cards.c.fetched_ms)

sessions = sa.Table(
    "a2a_sessions",
    metadata,
    text("tenant", primary_key=True),
    text("session", primary_key=True),
    whole("calls"),
    json_text("agents"),
    whole("since_ms"),
    whole("last_ms"),
)
"""How often a session has asked agents elsewhere. `agents` has, by address, the task in which one waits for an answer.

Also one row for each sender of tasks, which whoever counts them holds.
"""
sa.Index("a2a_sessions_age", sessions.c.tenant, sessions.c.last_ms)

tasks = sa.Table(
    "a2a_tasks",
    metadata,
    text("id", primary_key=True),
    text("tenant"),
    text("context_id"),
    text("message_id"),
    text("sender"),
    text("sender_name"),
    text("agent_id"),
    text("agent_name"),
    text("project_id", null=True),
    text("content"),
    text("skill", null=True),
    json_text("held"),
    text("state"),
    text("answer", null=True),
    text("error", null=True),
    text("session_id", null=True),
    whole("limit_ms", null=True),
    whole("created_ms"),
    whole("updated_ms"),
    whole("ended_ms", null=True),
    sa.UniqueConstraint("tenant", "sender", "message_id"),
)
"""`held` is what the session that does the task is held to, `limit_ms` how long after it came it may be done."""
sa.Index("a2a_tasks_sender", tasks.c.tenant, tasks.c.sender, tasks.c.created_ms, tasks.c.id)
sa.Index("a2a_tasks_context", tasks.c.tenant, tasks.c.context_id, tasks.c.created_ms)
sa.Index("a2a_tasks_age", tasks.c.tenant, tasks.c.created_ms)

MIGRATIONS = (
    Migration(
        1,
        "remote agents",
        [
            "CREATE TABLE a2a_cards (tenant TEXT NOT NULL, url TEXT NOT NULL, name TEXT NOT NULL, "
            "card {json} NOT NULL, fetched_ms BIGINT NOT NULL, PRIMARY KEY (tenant, url))",
            "CREATE INDEX a2a_cards_age ON a2a_cards (tenant, fetched_ms)",
            "CREATE TABLE a2a_sessions (tenant TEXT NOT NULL, session TEXT NOT NULL, calls BIGINT NOT NULL, "
            "agents {json} NOT NULL, since_ms BIGINT NOT NULL, last_ms BIGINT NOT NULL, "
            "PRIMARY KEY (tenant, session))",
            "CREATE INDEX a2a_sessions_age ON a2a_sessions (tenant, last_ms)",
            "CREATE TABLE a2a_tasks (id TEXT NOT NULL PRIMARY KEY, tenant TEXT NOT NULL, context_id TEXT NOT NULL, "
            "message_id TEXT NOT NULL, sender TEXT NOT NULL, sender_name TEXT NOT NULL, agent_id TEXT NOT NULL, "
            "agent_name TEXT NOT NULL, project_id TEXT, content TEXT NOT NULL, skill TEXT, held {json} NOT NULL, "
            "state TEXT NOT NULL, answer TEXT, error TEXT, session_id TEXT, limit_ms BIGINT, "
            "created_ms BIGINT NOT NULL, updated_ms BIGINT NOT NULL, ended_ms BIGINT, "
            "UNIQUE (tenant, sender, message_id))",
            "CREATE INDEX a2a_tasks_sender ON a2a_tasks (tenant, sender, created_ms, id)",
            "CREATE INDEX a2a_tasks_context ON a2a_tasks (tenant, context_id, created_ms)",
            "CREATE INDEX a2a_tasks_age ON a2a_tasks (tenant, created_ms)",
        ],
    ),
)

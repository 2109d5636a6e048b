"""The rows of sessions and of the messages that they were sent. What happened in them is kept with their runs."""

import sqlalchemy as sa

from rookery.db.migrate import Migration
from rookery.db.schema import json_text, metadata, text, whole

IDLE, RUNNING, WAITING, ENDED = "idle", "running", "waiting", "ended"
STATES = (IDLE, RUNNING, WAITING, ENDED)
QUEUED, TAKEN, DONE, LOST, DROPPED = "queued", "taken", "done", "lost", "dropped"

agent_sessions = sa.Table(
    "agent_sessions",
    metadata,
    text("id", primary_key=True),
    text("tenant"),
    text("agent", null=True),
    text("project_id", null=True),
    text("issue_id", null=True),
    text("title"),
    text("origin"),
    text("opened_by"),
    text("runtime"),
    text("native_id", null=True),
    text("model", null=True),
    text("mode"),
    text("cwd", null=True),
    text("state"),
    text("run_id", null=True),
    json_text("binding"),
    json_text("servers"),
    text("pass_hash", null=True),
    whole("interrupts"),
    whole("event_count"),
    whole("turns"),
    whole("cost_micros"),
    whole("input_tokens"),
    whole("output_tokens"),
    whole("context_tokens", null=True),
    whole("context_max", null=True),
    text("error", null=True),
    whole("created_ms"),
    whole("active_ms"),
    whole("ended_ms", null=True),
)
"""`origin` is what wanted the session: user, message, schedule, work, workflow, a2a. `binding` is what its agent is
held to, `pass_hash` the hash of the key with which its programs bind themselves to it. `run_id` is the run of its
newest turn, `interrupts` counts the wishes to end a turn, `event_count` its events in all runs. `mode` is the wanted
one."""
sa.Index("agent_sessions_newest", agent_sessions.c.tenant, agent_sessions.c.active_ms, agent_sessions.c.id)
sa.Index("agent_sessions_native", agent_sessions.c.tenant, agent_sessions.c.native_id)
sa.Index("agent_sessions_pass", agent_sessions.c.pass_hash, unique=True)

session_messages = sa.Table(
    "session_messages",
    metadata,
    text("tenant", primary_key=True),
    text("id", primary_key=True),
    text("session_id"),
    text("text"),
    text("sent_by"),
    text("state"),
    whole("job_id", null=True),
    text("run_id", null=True),
    whole("created_ms"),
    whole("taken_ms", null=True),
    whole("ended_ms", null=True),
)
sa.Index("session_messages_of", session_messages.c.tenant, session_messages.c.session_id, session_messages.c.created_ms)

MIGRATIONS = (
    Migration(
        1,
        "sessions",
        [
            "CREATE TABLE agent_sessions (id TEXT NOT NULL PRIMARY KEY, tenant TEXT NOT NULL, agent TEXT, "
            "project_id TEXT, issue_id TEXT, title TEXT NOT NULL, origin TEXT NOT NULL, opened_by TEXT NOT NULL, "
            "runtime TEXT NOT NULL, native_id TEXT, model TEXT, mode TEXT NOT NULL, cwd TEXT, state TEXT NOT NULL, "
            "run_id TEXT, binding {json} NOT NULL, servers {json} NOT NULL, pass_hash TEXT, "
            "interrupts BIGINT NOT NULL, event_count BIGINT NOT NULL, turns BIGINT NOT NULL, "
            "cost_micros BIGINT NOT NULL, input_tokens BIGINT NOT NULL, output_tokens BIGINT NOT NULL, "
            "context_tokens BIGINT, context_max BIGINT, error TEXT, created_ms BIGINT NOT NULL, "
            "active_ms BIGINT NOT NULL, ended_ms BIGINT)",
            "CREATE INDEX agent_sessions_newest ON agent_sessions (tenant, active_ms, id)",
            "CREATE UNIQUE INDEX agent_sessions_pass ON agent_sessions (pass_hash)",
            "CREATE INDEX agent_sessions_native ON agent_sessions (tenant, native_id)",
            "CREATE TABLE session_messages (tenant TEXT NOT NULL, id TEXT NOT NULL, session_id TEXT NOT NULL, "
            "text TEXT NOT NULL, sent_by TEXT NOT NULL, state TEXT NOT NULL, job_id BIGINT, run_id TEXT, "
            "created_ms BIGINT NOT NULL, taken_ms BIGINT, ended_ms BIGINT, PRIMARY KEY (tenant, id))",
            "CREATE INDEX session_messages_of ON session_messages (tenant, session_id, created_ms)",
        ],
    ),
)

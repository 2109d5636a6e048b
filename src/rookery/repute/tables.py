"""The rows of reputation events. They stand below the domains: each domain adds what it sees."""

import sqlalchemy as sa

from rookery.db.migrate import Migration
from rookery.db.schema import append_only, json_text, metadata, serial, text, whole

reputation_events = sa.Table(
    "reputation_events",
    metadata,
    serial("seq"),
    text("tenant"),
    text("agent_id"),
    text("type"),
    whole("impact"),
    json_text("about"),
    text("key", null=True),
    whole("created_ms"),
    sa.UniqueConstraint("tenant", "agent_id", "key"),
)
"""`impact` is what the event weighs: credits, a rating from 1 to 5, or points. With a `key` it is there once."""
_e = reputation_events.c
sa.Index("reputation_events_type", _e.tenant, _e.agent_id, _e.type, _e.created_ms)
sa.Index("reputation_events_newest", _e.tenant, _e.agent_id, _e.seq)

MIGRATIONS = (
    Migration(
        1,
        "reputation events",
        [
            "CREATE TABLE reputation_events (seq {serial}, tenant TEXT NOT NULL, agent_id TEXT NOT NULL, "
            "type TEXT NOT NULL, impact BIGINT NOT NULL, about {json} NOT NULL, key TEXT, created_ms BIGINT NOT NULL, "
            "UNIQUE (tenant, agent_id, key))",
            "CREATE INDEX reputation_events_type ON reputation_events (tenant, agent_id, type, created_ms)",
            "CREATE INDEX reputation_events_newest ON reputation_events (tenant, agent_id, seq)",
            append_only("reputation_events"),
        ],
    ),
)

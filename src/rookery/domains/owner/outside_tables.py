"""The tables behind answers from outside: links that answer once, and how far each channel was listened to."""

import sqlalchemy as sa

from rookery.db.schema import metadata, text, whole

ask_links = sa.Table(
    "ask_links",
    metadata,
    text("digest", primary_key=True),
    text("tenant"),
    text("ask_id"),
    text("channel_id"),
    text("delivery_id"),
    whole("created_ms"),
    whole("used_ms", null=True),
)
"""Of a link's token only the SHA-256 is here. Each attempt of a delivery sends a link of its own."""
sa.Index("ask_links_age", ask_links.c.created_ms)

channel_listeners = sa.Table(
    "channel_listeners",
    metadata,
    text("channel_id", primary_key=True),
    text("tenant"),
    whole("turn"),
    text("source", null=True),
    text("cursor", null=True),
    whole("heard_ms", null=True),
)
"""`turn` numbers the jobs that listen, of which there is one at a time. `cursor` says how far the `source` was read,
such as a bot; of another source it says nothing.
"""

notification_senders = sa.Table(
    "notification_senders",
    metadata,
    text("tenant"),
    text("agent_id"),
    whole("told_ms"),
    sa.PrimaryKeyConstraint("tenant", "agent_id"),
)
"""One row for each agent that told something: whoever holds it tells, so that limits hold for all servers together."""

OUTSIDE_STATEMENTS: list[str] = [
    "CREATE TABLE ask_links (digest TEXT NOT NULL PRIMARY KEY, tenant TEXT NOT NULL, ask_id TEXT NOT NULL, "
    "channel_id TEXT NOT NULL, delivery_id TEXT NOT NULL, created_ms BIGINT NOT NULL, used_ms BIGINT)",
    "CREATE INDEX ask_links_age ON ask_links (created_ms)",
    "CREATE TABLE channel_listeners (channel_id TEXT NOT NULL PRIMARY KEY, tenant TEXT NOT NULL, "
    "turn BIGINT NOT NULL, source TEXT, cursor TEXT, heard_ms BIGINT)",
    "CREATE TABLE notification_senders (tenant TEXT NOT NULL, agent_id TEXT NOT NULL, told_ms BIGINT NOT NULL, "
    "PRIMARY KEY (tenant, agent_id))",
    "CREATE INDEX owner_notifications_senders ON owner_notifications (tenant, agent_id, created_ms)",
    "CREATE INDEX notification_deliveries_refs ON notification_deliveries (tenant, channel_id, external_ref)",
    "CREATE INDEX notification_deliveries_age ON notification_deliveries (created_ms)",
]
"""Migration 5 of the domain."""

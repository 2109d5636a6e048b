"""The tables of notifications: what the owner was told, by which channels, and how far each delivery is."""

import sqlalchemy as sa

from rookery.db.schema import flag, json_text, metadata, text, whole

SHARED = ""
"""Instead of an agent's id: a channel that a person set up, for whatever any agent tells or asks."""

notification_channels = sa.Table(
    "notification_channels",
    metadata,
    text("id", primary_key=True),
    text("tenant"),
    text("agent_id"),
    text("channel_type"),
    json_text("config_keys"),
    text("config"),
    whole("key_version", null=True),
    flag("enabled"),
    whole("created_ms"),
    whole("updated_ms"),
    sa.UniqueConstraint("tenant", "agent_id", "channel_type"),
)
"""`config` is sealed, in base64: with the keyring of `key_version`, or where that is NULL with the server's own key."""
sa.Index("notification_channels_key", notification_channels.c.key_version)

owner_notifications = sa.Table(
    "owner_notifications",
    metadata,
    text("id", primary_key=True),
    text("tenant"),
    text("agent_id"),
    text("sender"),
    text("session_id", null=True),
    text("title"),
    text("message"),
    text("level"),
    whole("created_ms"),
)
sa.Index("owner_notifications_newest", owner_notifications.c.tenant, owner_notifications.c.created_ms)
sa.Index(
    "owner_notifications_senders",
    owner_notifications.c.tenant,
    owner_notifications.c.agent_id,
    owner_notifications.c.created_ms,
)

notification_deliveries = sa.Table(
    "notification_deliveries",
    metadata,
    text("id", primary_key=True),
    text("tenant"),
    text("about"),
    text("about_id"),
    text("channel_id"),
    text("channel_type"),
    text("status"),
    whole("attempts"),
    text("external_ref", null=True),
    text("error", null=True),
    whole("created_ms"),
    whole("updated_ms"),
    sa.UniqueConstraint("tenant", "about_id", "channel_id"),
)
"""`about` says what `about_id` is: a notification or an ask. The status is pending, sent or failed."""
sa.Index(
    "notification_deliveries_refs",
    notification_deliveries.c.tenant,
    notification_deliveries.c.channel_id,
    notification_deliveries.c.external_ref,
)
sa.Index("notification_deliveries_age", notification_deliveries.c.created_ms)

NOTIFY_STATEMENTS: list[str] = [
    "CREATE TABLE notification_channels (id TEXT NOT NULL PRIMARY KEY, tenant TEXT NOT NULL, agent_id TEXT NOT NULL, "
    "channel_type TEXT NOT NULL, config_keys {json} NOT NULL, config TEXT NOT NULL, key_version BIGINT, "
    "enabled BOOLEAN NOT NULL, created_ms BIGINT NOT NULL, updated_ms BIGINT NOT NULL, "
    "UNIQUE (tenant, agent_id, channel_type))",
    "CREATE INDEX notification_channels_key ON notification_channels (key_version)",
    "CREATE TABLE owner_notifications (id TEXT NOT NULL PRIMARY KEY, tenant TEXT NOT NULL, agent_id TEXT NOT NULL, "
    "sender TEXT NOT NULL, session_id TEXT, title TEXT NOT NULL, message TEXT NOT NULL, level TEXT NOT NULL, "
    "created_ms BIGINT NOT NULL)",
    "CREATE INDEX owner_notifications_newest ON owner_notifications (tenant, created_ms)",
    "CREATE TABLE notification_deliveries (id TEXT NOT NULL PRIMARY KEY, tenant TEXT NOT NULL, about TEXT NOT NULL, "
    "about_id TEXT NOT NULL, channel_id TEXT NOT NULL, channel_type TEXT NOT NULL, status TEXT NOT NULL, "
    "attempts BIGINT NOT NULL, external_ref TEXT, error TEXT, created_ms BIGINT NOT NULL, "
    "updated_ms BIGINT NOT NULL, UNIQUE (tenant, about_id, channel_id))",
]
"""Migration 2 of the domain."""

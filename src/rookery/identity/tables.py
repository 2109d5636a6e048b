"""The tables of identity, and the steps that build them."""

import sqlalchemy as sa

from rookery.db.migrate import Migration
from rookery.db.schema import flag, json_text, metadata, text, whole

EPOCH = "identity"
"""Bumped by every change here, so that no process acts on rights that were taken away."""

tenants = sa.Table("tenants", metadata, text("id", primary_key=True), text("name"), whole("created_ms"))
people = sa.Table(
    "people",
    metadata,
    text("id", primary_key=True),
    text("tenant"),
    text("name"),
    text("role"),
    whole("created_ms"),
    text("email", null=True),
    sa.UniqueConstraint("tenant", "name"),
)
projects = sa.Table(
    "projects",
    metadata,
    text("id", primary_key=True),
    text("tenant"),
    text("slug"),
    text("name"),
    text("path", null=True),
    whole("created_ms"),
    json_text("members", null=True),
    sa.UniqueConstraint("tenant", "slug"),
)
agents = sa.Table(
    "agents",
    metadata,
    text("id", primary_key=True),
    text("tenant"),
    text("name"),
    json_text("permissions", null=True),
    flag("restrict_networking"),
    text("mode"),
    whole("trust", null=True),
    whole("created_ms"),
    sa.UniqueConstraint("tenant", "name"),
)
profiles = sa.Table(
    "profiles",
    metadata,
    text("tenant", primary_key=True),
    text("type", primary_key=True),
    json_text("allowed", null=True),
    json_text("disallowed", null=True),
)
bundles = sa.Table(
    "bundles",
    metadata,
    text("id", primary_key=True),
    text("tenant"),
    text("name"),
    text("description"),
    json_text("tools"),
    text("prompt"),
    whole("created_ms"),
    sa.UniqueConstraint("tenant", "name"),
)
bundle_uses = sa.Table(
    "bundle_uses",
    metadata,
    text("tenant", primary_key=True),
    text("bundle", primary_key=True),
    text("holder", primary_key=True),
    text("holder_kind"),
    whole("sort_order"),
)
grants = sa.Table(
    "grants",
    metadata,
    text("id", primary_key=True),
    text("tenant"),
    text("agent"),
    text("tool"),
    text("reason"),
    text("granted_by"),
    whole("created_ms"),
    whole("expires_ms", null=True),
    whole("revoked_ms", null=True),
    flag("without_approval"),
    flag("standing"),
)
"""`without_approval`: no person is asked about calls of the tool. A `standing` one does that and nothing else: it is a
yes that lasts, and gives the agent nothing that it does not have."""
tokens = sa.Table(
    "tokens",
    metadata,
    text("id", primary_key=True),
    text("tenant"),
    text("name"),
    text("hash"),
    text("holder"),
    text("holder_kind"),
    json_text("scopes"),
    text("created_by"),
    whole("created_ms"),
    whole("expires_ms", null=True),
    whole("revoked_ms", null=True),
    text("profile", null=True),
    text("project", null=True),
    sa.UniqueConstraint("hash"),
)
sign_in_links = sa.Table(
    "sign_in_links",
    metadata,
    text("digest", primary_key=True),
    text("tenant"),
    text("person"),
    whole("created_ms"),
    whole("expires_ms"),
    whole("used_ms", null=True),
)
web_sessions = sa.Table(
    "web_sessions",
    metadata,
    text("id", primary_key=True),
    text("digest"),
    text("tenant"),
    text("person"),
    text("device"),
    whole("created_ms"),
    whole("seen_ms"),
    whole("expires_ms"),
    whole("ended_ms", null=True),
    sa.UniqueConstraint("digest"),
)
"""Who is signed in to the console, by the digest of what their browser holds."""
sa.Index("grants_agent", grants.c.tenant, grants.c.agent)
sa.Index("web_sessions_person", web_sessions.c.tenant, web_sessions.c.person)
sa.Index("people_email", people.c.tenant, people.c.email, unique=True)
sa.Index("bundle_uses_holder", bundle_uses.c.tenant, bundle_uses.c.holder)

MIGRATIONS = (
    Migration(
        1,
        "identity",
        [
            "CREATE TABLE tenants (id TEXT NOT NULL PRIMARY KEY, name TEXT NOT NULL, created_ms BIGINT NOT NULL)",
            "CREATE TABLE people (id TEXT NOT NULL PRIMARY KEY, tenant TEXT NOT NULL, name TEXT NOT NULL, "
            "role TEXT NOT NULL, created_ms BIGINT NOT NULL, UNIQUE (tenant, name))",
            "CREATE TABLE projects (id TEXT NOT NULL PRIMARY KEY, tenant TEXT NOT NULL, slug TEXT NOT NULL, "
            "name TEXT NOT NULL, path TEXT, created_ms BIGINT NOT NULL, UNIQUE (tenant, slug))",
            "CREATE TABLE agents (id TEXT NOT NULL PRIMARY KEY, tenant TEXT NOT NULL, name TEXT NOT NULL, "
            "permissions {json}, restrict_networking BOOLEAN NOT NULL, mode TEXT NOT NULL, trust BIGINT, "
            "created_ms BIGINT NOT NULL, UNIQUE (tenant, name))",
            "CREATE TABLE profiles (tenant TEXT NOT NULL, type TEXT NOT NULL, allowed {json}, disallowed {json}, "
            "PRIMARY KEY (tenant, type))",
            "CREATE TABLE bundles (id TEXT NOT NULL PRIMARY KEY, tenant TEXT NOT NULL, name TEXT NOT NULL, "
            "description TEXT NOT NULL, tools {json} NOT NULL, prompt TEXT NOT NULL, created_ms BIGINT NOT NULL, "
            "UNIQUE (tenant, name))",
            "CREATE TABLE bundle_uses (tenant TEXT NOT NULL, bundle TEXT NOT NULL, holder TEXT NOT NULL, "
            "holder_kind TEXT NOT NULL, sort_order BIGINT NOT NULL, PRIMARY KEY (tenant, bundle, holder))",
            "CREATE INDEX bundle_uses_holder ON bundle_uses (tenant, holder)",
            "CREATE TABLE grants (id TEXT NOT NULL PRIMARY KEY, tenant TEXT NOT NULL, agent TEXT NOT NULL, "
            "tool TEXT NOT NULL, reason TEXT NOT NULL, granted_by TEXT NOT NULL, created_ms BIGINT NOT NULL, "
            "expires_ms BIGINT, revoked_ms BIGINT)",
            "CREATE INDEX grants_agent ON grants (tenant, agent)",
            "CREATE TABLE tokens (id TEXT NOT NULL PRIMARY KEY, tenant TEXT NOT NULL, name TEXT NOT NULL, "
            "hash TEXT NOT NULL UNIQUE, holder TEXT NOT NULL, holder_kind TEXT NOT NULL, scopes {json} NOT NULL, "
            "created_by TEXT NOT NULL, created_ms BIGINT NOT NULL, expires_ms BIGINT, revoked_ms BIGINT)",
        ],
    ),
    Migration(2, "project members", ["ALTER TABLE projects ADD COLUMN members {json}"]),
    Migration(
        3,
        "tokens of a profile and project",
        ["ALTER TABLE tokens ADD COLUMN profile TEXT", "ALTER TABLE tokens ADD COLUMN project TEXT"],
    ),
    Migration(
        4,
        "grants that spare an approval",
        [
            "ALTER TABLE grants ADD COLUMN without_approval BOOLEAN NOT NULL DEFAULT FALSE",
            "ALTER TABLE grants ADD COLUMN standing BOOLEAN NOT NULL DEFAULT FALSE",
        ],
    ),
    Migration(
        5,
        "signing in to the console",
        [
            "CREATE TABLE sign_in_links (digest TEXT NOT NULL PRIMARY KEY, tenant TEXT NOT NULL, person TEXT NOT NULL, "
            "created_ms BIGINT NOT NULL, expires_ms BIGINT NOT NULL, used_ms BIGINT)",
            "CREATE TABLE web_sessions (id TEXT NOT NULL PRIMARY KEY, digest TEXT NOT NULL UNIQUE, "
            "tenant TEXT NOT NULL, person TEXT NOT NULL, device TEXT NOT NULL, created_ms BIGINT NOT NULL, "
            "seen_ms BIGINT NOT NULL, expires_ms BIGINT NOT NULL, ended_ms BIGINT)",
            "CREATE INDEX web_sessions_person ON web_sessions (tenant, person)",
        ],
    ),
    Migration(
        6,
        "people known by their email",
        ["ALTER TABLE people ADD COLUMN email TEXT", "CREATE UNIQUE INDEX people_email ON people (tenant, email)"],
    ),
)

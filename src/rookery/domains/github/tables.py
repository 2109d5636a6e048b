"""The tables of this domain: answers worth asking for again, limits that GitHub told us, and what was posted."""

import sqlalchemy as sa

from rookery.db.migrate import Migration
from rookery.db.schema import metadata, text, whole

answers = sa.Table(
    "github_answers",
    metadata,
    text("tenant", primary_key=True),
    text("key", primary_key=True),
    text("etag"),
    text("link"),
    text("kind"),
    whole("size"),
    whole("used_ms"),
    sa.Column("body", sa.LargeBinary, nullable=False),
)
"""`key` is a digest of the credential and the request; `link` and `kind` are headers of the answer."""
sa.Index("github_answers_used", answers.c.tenant, answers.c.used_ms)

limits = sa.Table(
    "github_limits",
    metadata,
    text("tenant", primary_key=True),
    text("credential", primary_key=True),
    text("kind"),
    whole("until_ms"),
)
"""Until when GitHub wants to hear nothing from a credential, of which only a digest is here."""

posts = sa.Table(
    "github_posts",
    metadata,
    text("tenant", primary_key=True),
    text("digest", primary_key=True),
    text("marker"),
    text("holder", null=True),
    whole("begun_ms"),
    whole("until_ms"),
    whole("done_ms", null=True),
    text("url", null=True),
    whole("number", null=True),
)
"""What agents post, by a digest of agent and input. While `done_ms` is absent it is not known whether it arrived;
`holder` is the call that is at it, until `until_ms`; without one that is when it may last have been sent."""
sa.Index("github_posts_age", posts.c.tenant, posts.c.begun_ms)

_ANSWERS = (
    "CREATE TABLE github_answers (tenant TEXT NOT NULL, key TEXT NOT NULL, etag TEXT NOT NULL, link TEXT NOT NULL, "
    "kind TEXT NOT NULL, size BIGINT NOT NULL, used_ms BIGINT NOT NULL, body {} NOT NULL, PRIMARY KEY (tenant, key))"
)
MIGRATIONS = (
    Migration(
        1,
        "github",
        [
            {"sqlite": [_ANSWERS.format("BLOB")], "postgresql": [_ANSWERS.format("BYTEA")]},
            "CREATE INDEX github_answers_used ON github_answers (tenant, used_ms)",
            "CREATE TABLE github_limits (tenant TEXT NOT NULL, credential TEXT NOT NULL, kind TEXT NOT NULL, "
            "until_ms BIGINT NOT NULL, PRIMARY KEY (tenant, credential))",
            "CREATE TABLE github_posts (tenant TEXT NOT NULL, digest TEXT NOT NULL, marker TEXT NOT NULL, "
            "holder TEXT, begun_ms BIGINT NOT NULL, until_ms BIGINT NOT NULL, done_ms BIGINT, url TEXT, "
            "number BIGINT, PRIMARY KEY (tenant, digest))",
            "CREATE INDEX github_posts_age ON github_posts (tenant, begun_ms)",
        ],
    ),
)

"""The table of memory files: Markdown that a profile keeps for itself, whole."""

import sqlalchemy as sa

from rookery.db.schema import metadata, text, whole

memory_files = sa.Table(
    "memory_files",
    metadata,
    text("tenant", primary_key=True),
    text("scope_slug", primary_key=True),
    text("profile", primary_key=True),
    text("folded", primary_key=True),
    text("filename"),
    sa.Column("content", sa.LargeBinary, nullable=False),
    whole("key_version", null=True),
    text("author"),
    whole("updated_ms"),
)
"""`scope_slug` is a project's slug, or `_global`, which no project can be called. `folded` is the filename in lower
case: some file systems take both spellings for one file. `content` is UTF-8 where `key_version` is NULL and sealed
otherwise, byte for byte what the file has.
"""

_CREATE = (
    "CREATE TABLE memory_files (tenant TEXT NOT NULL, scope_slug TEXT NOT NULL, profile TEXT NOT NULL, "
    "folded TEXT NOT NULL, filename TEXT NOT NULL, content {} NOT NULL, key_version BIGINT, author TEXT NOT NULL, "
    "updated_ms BIGINT NOT NULL, PRIMARY KEY (tenant, scope_slug, profile, folded))"
)
FILE_STATEMENTS = [{"sqlite": [_CREATE.format("BLOB")], "postgresql": [_CREATE.format("BYTEA")]}]

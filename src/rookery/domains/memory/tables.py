"""The tables of memories, and what makes them searchable on either database.

What is searched are tokens, not texts: each stands for one stem of one owner, so an index finds nothing of anybody
else's. SQLite keeps a full-text index beside the table, by triggers; PostgreSQL a column of lexemes.
"""

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql

from rookery.db.migrate import Migration
from rookery.db.schema import append_only, flag, metadata, serial, text, whole
from rookery.domains.memory.file_tables import FILE_STATEMENTS

memories = sa.Table(
    "memories",
    metadata,
    serial("seq"),
    text("id"),
    text("tenant"),
    text("owner"),
    text("key"),
    whole("key_version", null=True),
    whole("updated_ms"),
    whole("expires_ms", null=True),
    flag("archived"),
    whole("created_ms"),
    whole("revision"),
    whole("words"),
    text("status"),
    text("txid", null=True),
    text("run_id", null=True),
    text("issue_id", null=True),
    sa.Column("sealed_key", sa.LargeBinary, nullable=True),
    sa.Column("content", sa.LargeBinary, nullable=False),
    sa.Column("tokens", sa.Text().with_variant(postgresql.TSVECTOR(), "postgresql"), nullable=False),
    sa.UniqueConstraint("id"),
    sa.UniqueConstraint("tenant", "owner", "key"),
)
"""`content` is UTF-8 where `key_version` is NULL and sealed otherwise. With `sealed_key` the key is hidden: `key` is
a keyed hash of it. `revision` counts changes of the content. `tokens` is empty for what is archived. What is long
comes last, since SQLite reads a row from its start.
"""
sa.Index("memories_newest", memories.c.tenant, memories.c.owner, memories.c.updated_ms)
sa.Index("memories_expiring", memories.c.tenant, memories.c.owner, memories.c.expires_ms)
sa.Index("memories_times", memories.c.seq, memories.c.updated_ms, memories.c.expires_ms).ddl_if(dialect="sqlite")
sa.Index("memories_tokens", memories.c.tokens, postgresql_using="gin").ddl_if(dialect="postgresql")

memory_owners = sa.Table(
    "memory_owners",
    metadata,
    text("tenant", primary_key=True),
    text("owner", primary_key=True),
    whole("memories"),
    whole("words"),
    whole("plain"),
)
"""How many memories an owner has, how many tokens they have together, and how many are not sealed. Whoever changes
an owner's memories holds this row, so that of two alike that come at once the second sees the first.
"""
memory_recalls = sa.Table(
    "memory_recalls",
    metadata,
    sa.Column("memory_seq", sa.BigInteger, primary_key=True, autoincrement=False),
    whole("recalls"),
    whole("recalled_ms"),
)
"""How often a memory was found, and when last. Kept apart: a recall changes no memory."""
memory_ledger = sa.Table(
    "memory_ledger",
    metadata,
    serial("seq"),
    text("txid"),
    text("tenant"),
    text("owner"),
    text("memory_id"),
    whole("key_version"),
    sa.Column("payload", sa.LargeBinary, nullable=False),
    whole("created_ms"),
    text("hash"),
    text("signature"),
    sa.UniqueConstraint("txid"),
)
"""The local ledger: sealed copies of memories, chained by `hash` and signed. Rows can only be added."""

PREFIXES = "14 16"
"""A tag has twelve characters; beginnings of two to four letters are found without a look at every word."""
_PUT_IN = "INSERT INTO memories_fts (rowid, tokens) VALUES (new.seq, new.tokens)"
# The index has no copy of the tokens, so whoever takes a row out has to say what was in it.
_TAKE_OUT = "INSERT INTO memories_fts (memories_fts, rowid, tokens) VALUES ('delete', old.seq, old.tokens)"
# The tokenizer that changes no letter: stems come ready-made.
_FULL_TEXT = [
    "CREATE INDEX memories_times ON memories (seq, updated_ms, expires_ms)",
    "CREATE VIRTUAL TABLE memories_fts USING fts5 (tokens, content = 'memories', content_rowid = 'seq', "
    f"tokenize = 'ascii', prefix = '{PREFIXES}')",
    f"CREATE TRIGGER memories_fts_insert AFTER INSERT ON memories BEGIN {_PUT_IN}; END",
    f"CREATE TRIGGER memories_fts_delete AFTER DELETE ON memories BEGIN {_TAKE_OUT}; END",
    f"CREATE TRIGGER memories_fts_update AFTER UPDATE OF seq, tokens ON memories BEGIN {_TAKE_OUT}; {_PUT_IN}; END",
]
_MEMORIES = (
    "CREATE TABLE memories (seq {serial}, id TEXT NOT NULL UNIQUE, tenant TEXT NOT NULL, owner TEXT NOT NULL, "
    "key TEXT NOT NULL, key_version BIGINT, updated_ms BIGINT NOT NULL, expires_ms BIGINT, archived BOOLEAN NOT NULL, "
    "created_ms BIGINT NOT NULL, revision BIGINT NOT NULL, words BIGINT NOT NULL, status TEXT NOT NULL, txid TEXT, "
    "run_id TEXT, issue_id TEXT, sealed_key {bytes}, content {bytes} NOT NULL, tokens {tokens} NOT NULL, "
    "UNIQUE (tenant, owner, key))"
)
_LEDGER = (
    "CREATE TABLE memory_ledger (seq {serial}, txid TEXT NOT NULL UNIQUE, tenant TEXT NOT NULL, owner TEXT NOT NULL, "
    "memory_id TEXT NOT NULL, key_version BIGINT NOT NULL, payload {bytes} NOT NULL, created_ms BIGINT NOT NULL, "
    "hash TEXT NOT NULL, signature TEXT NOT NULL)"
)
_SQLITE = {"serial": "INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT", "bytes": "BLOB", "tokens": "TEXT"}
_POSTGRES = {
    "serial": "BIGINT GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY",
    "bytes": "BYTEA",
    "tokens": "TSVECTOR",
}
MIGRATIONS = (
    Migration(
        1,
        "memories",
        [
            {
                "sqlite": [_MEMORIES.format(**_SQLITE), _LEDGER.format(**_SQLITE), *_FULL_TEXT],
                "postgresql": [
                    _MEMORIES.format(**_POSTGRES),
                    _LEDGER.format(**_POSTGRES),
                    "CREATE INDEX memories_tokens ON memories USING gin (tokens)",
                ],
            },
            "CREATE INDEX memories_newest ON memories (tenant, owner, updated_ms)",
            "CREATE INDEX memories_expiring ON memories (tenant, owner, expires_ms)",
            "CREATE TABLE memory_owners (tenant TEXT NOT NULL, owner TEXT NOT NULL, memories BIGINT NOT NULL, "
            "words BIGINT NOT NULL, plain BIGINT NOT NULL, PRIMARY KEY (tenant, owner))",
            "CREATE TABLE memory_recalls (memory_seq BIGINT NOT NULL PRIMARY KEY, recalls BIGINT NOT NULL, "
            "recalled_ms BIGINT NOT NULL)",
            append_only("memory_ledger"),
            *FILE_STATEMENTS,
        ],
    ),
)

"""The tables of documents and their chunks, and what makes chunks searchable on either database.

SQLite keeps a full-text index beside the chunks, by triggers. PostgreSQL keeps a column of stemmed words, which the
store writes, so that both databases find the same chunks for the same words.
"""

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql

from rookery.db.migrate import Migration
from rookery.db.schema import json_text, metadata, serial, text, whole

vaults = sa.Table(
    "knowledge_vaults",
    metadata,
    text("project_id", primary_key=True),
    text("tenant"),
    json_text("settings"),
    whole("updated_ms"),
)
documents = sa.Table(
    "knowledge_documents",
    metadata,
    text("id", primary_key=True),
    text("tenant"),
    text("project_id"),
    text("path"),
    text("title"),
    text("kind"),
    text("hash"),
    whole("bytes"),
    whole("chunks"),
    text("embedder", null=True),
    whole("revision"),
    text("subject"),
    whole("indexed_ms"),
    sa.UniqueConstraint("project_id", "path"),
)
"""`hash` is that of the file's bytes, `embedder` what made the vectors of all its chunks; NULL: they have none."""
chunks = sa.Table(
    "knowledge_chunks",
    metadata,
    serial("seq"),
    text("tenant"),
    text("project_id"),
    text("document_id"),
    whole("position"),
    text("heading"),
    text("content"),
    whole("overlap"),
    whole("words"),
    sa.Column("lexemes", sa.Text().with_variant(postgresql.TSVECTOR(), "postgresql"), nullable=True),
    sa.Column("vector", sa.LargeBinary, nullable=True),
    text("embedder", null=True),
    sa.UniqueConstraint("document_id", "position"),
)
"""The first `overlap` characters of `content` are the last of the chunk before. `words` is how long the searched text
is. `lexemes` is NULL on SQLite. `vector` has 16-bit floats, the low byte first.
"""
sa.Index("knowledge_chunks_vectors", chunks.c.project_id, chunks.c.embedder, chunks.c.seq)
sa.Index("knowledge_chunks_words", chunks.c.tenant, chunks.c.words).ddl_if(dialect="postgresql")
sa.Index("knowledge_chunks_lexemes", chunks.c.lexemes, postgresql_using="gin").ddl_if(dialect="postgresql")

SCOPE_MARK = 0xE000
"""The character that a project's word in the full-text index starts with. Nothing that is searched for has it."""


def _indexed(row: str) -> str:
    """What the full-text index holds of a row: rowid, tenant and project in one word, and the two texts.

    A text loses the mark, so that it cannot claim to belong elsewhere.
    """
    texts = (f"replace({row}.{column}, char({SCOPE_MARK}), ' ')" for column in ("heading", "content"))
    return f"{row}.seq, char({SCOPE_MARK}) || hex({row}.tenant || ' ' || {row}.project_id), {', '.join(texts)}"


# The index has no copy of the texts, so whoever takes a row out has to say what was in it.
_TAKE_OUT = (
    "INSERT INTO knowledge_chunks_fts (knowledge_chunks_fts, rowid, scope, heading, content) "
    f"VALUES ('delete', {_indexed('old')})"
)
_PUT_IN = f"INSERT INTO knowledge_chunks_fts (rowid, scope, heading, content) VALUES ({_indexed('new')})"
_FULL_TEXT = [
    "CREATE VIRTUAL TABLE knowledge_chunks_fts USING fts5 (scope, heading, content, content = '', "
    "tokenize = 'porter unicode61 remove_diacritics 2')",
    f"CREATE TRIGGER knowledge_chunks_fts_insert AFTER INSERT ON knowledge_chunks BEGIN {_PUT_IN}; END",
    f"CREATE TRIGGER knowledge_chunks_fts_delete AFTER DELETE ON knowledge_chunks BEGIN {_TAKE_OUT}; END",
    "CREATE TRIGGER knowledge_chunks_fts_update AFTER UPDATE OF seq, tenant, project_id, heading, content "
    f"ON knowledge_chunks BEGIN {_TAKE_OUT}; {_PUT_IN}; END",
]
MIGRATIONS = (
    Migration(
        1,
        "knowledge",
        [
            "CREATE TABLE knowledge_vaults (project_id TEXT NOT NULL PRIMARY KEY, tenant TEXT NOT NULL, "
            "settings {json} NOT NULL, updated_ms BIGINT NOT NULL)",
            "CREATE TABLE knowledge_documents (id TEXT NOT NULL PRIMARY KEY, tenant TEXT NOT NULL, "
            "project_id TEXT NOT NULL, path TEXT NOT NULL, title TEXT NOT NULL, kind TEXT NOT NULL, "
            "hash TEXT NOT NULL, bytes BIGINT NOT NULL, chunks BIGINT NOT NULL, embedder TEXT, "
            "revision BIGINT NOT NULL, subject TEXT NOT NULL, indexed_ms BIGINT NOT NULL, UNIQUE (project_id, path))",
            "CREATE TABLE knowledge_chunks (seq {serial}, tenant TEXT NOT NULL, project_id TEXT NOT NULL, "
            "document_id TEXT NOT NULL, position BIGINT NOT NULL, heading TEXT NOT NULL, content TEXT NOT NULL, "
            "overlap BIGINT NOT NULL, words BIGINT NOT NULL, embedder TEXT, UNIQUE (document_id, position))",
            "CREATE INDEX knowledge_chunks_vectors ON knowledge_chunks (project_id, embedder, seq)",
            {
                "sqlite": [
                    "ALTER TABLE knowledge_chunks ADD COLUMN lexemes TEXT",
                    "ALTER TABLE knowledge_chunks ADD COLUMN vector BLOB",
                    *_FULL_TEXT,
                ],
                "postgresql": [
                    "ALTER TABLE knowledge_chunks ADD COLUMN lexemes TSVECTOR",
                    "ALTER TABLE knowledge_chunks ADD COLUMN vector BYTEA",
                    "CREATE INDEX knowledge_chunks_words ON knowledge_chunks (tenant, words)",
                    "CREATE INDEX knowledge_chunks_lexemes ON knowledge_chunks USING gin (lexemes)",
                ],
            },
        ],
    ),
)

"""The table of learnings, and what makes it searchable on either database.

SQLite keeps a full-text index beside the table, by triggers. PostgreSQL keeps a column of stemmed words, which the
store writes, so that both databases find the same learnings for the same words.
"""

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql

from rookery.db.schema import flag, json_text, metadata, serial, text, whole

learnings = sa.Table(
    "learnings",
    metadata,
    serial("seq"),
    text("id"),
    text("tenant"),
    text("project_id"),
    text("issue_id"),
    text("pattern"),
    text("context", null=True),
    json_text("applies_to"),
    text("learning_type", null=True),
    whole("quality_score"),
    flag("verified"),
    text("normalized"),
    text("digest"),
    whole("words"),
    sa.Column("lexemes", sa.Text().with_variant(postgresql.TSVECTOR(), "postgresql"), nullable=True),
    text("author"),
    whole("created_ms"),
    sa.UniqueConstraint("id"),
    sa.UniqueConstraint("issue_id", "digest"),
)
"""`project_id` is where it was learnt, and stays when the issue moves. `normalized` is what duplicates are told by,
`digest` its hash, `words` how long the searched text is. `lexemes` is NULL on SQLite.
"""
sa.Index(
    "learnings_narrow",
    learnings.c.seq,
    learnings.c.tenant,
    learnings.c.project_id,
    learnings.c.verified,
    learnings.c.quality_score,
).ddl_if(dialect="sqlite")
sa.Index("learnings_words", learnings.c.tenant, learnings.c.words).ddl_if(dialect="postgresql")
sa.Index("learnings_lexemes", learnings.c.lexemes, postgresql_using="gin").ddl_if(dialect="postgresql")

SCOPE_MARK = 0xE000
"""The character that a project's word in the full-text index starts with. Nothing that is searched for has it."""


def _indexed(row: str) -> str:
    """What the full-text index holds of a row: rowid, tenant and project in one word, and the three texts.

    A text loses the mark, so that it cannot claim to belong elsewhere.
    """
    paths = f"(SELECT group_concat(value, ' ') FROM json_each({row}.applies_to))"
    texts = (f"replace({text}, char({SCOPE_MARK}), ' ')" for text in (f"{row}.pattern", f"{row}.context", paths))
    return f"{row}.seq, char({SCOPE_MARK}) || hex({row}.tenant || ' ' || {row}.project_id), {', '.join(texts)}"


# The index has no copy of the texts, so whoever takes a row out has to say what was in it.
_TAKE_OUT = (
    "INSERT INTO learnings_fts (learnings_fts, rowid, scope, pattern, context, applies_to) "
    f"VALUES ('delete', {_indexed('old')})"
)
_PUT_IN = f"INSERT INTO learnings_fts (rowid, scope, pattern, context, applies_to) VALUES ({_indexed('new')})"
_FULL_TEXT = [
    "CREATE INDEX learnings_narrow ON learnings (seq, tenant, project_id, verified, quality_score)",
    "CREATE VIRTUAL TABLE learnings_fts USING fts5 (scope, pattern, context, applies_to, content = '', "
    "tokenize = 'porter unicode61 remove_diacritics 2', prefix = '2 3 4 5 6')",
    f"CREATE TRIGGER learnings_fts_insert AFTER INSERT ON learnings BEGIN {_PUT_IN}; END",
    f"CREATE TRIGGER learnings_fts_delete AFTER DELETE ON learnings BEGIN {_TAKE_OUT}; END",
    "CREATE TRIGGER learnings_fts_update AFTER UPDATE OF seq, tenant, project_id, pattern, context, applies_to "
    f"ON learnings BEGIN {_TAKE_OUT}; {_PUT_IN}; END",
]
LEARNING_STATEMENTS = [
    "CREATE TABLE learnings (seq {serial}, id TEXT NOT NULL UNIQUE, tenant TEXT NOT NULL, project_id TEXT NOT NULL, "
    "issue_id TEXT NOT NULL, pattern TEXT NOT NULL, context TEXT, applies_to {json} NOT NULL, learning_type TEXT, "
    "quality_score BIGINT NOT NULL, verified BOOLEAN NOT NULL, normalized TEXT NOT NULL, digest TEXT NOT NULL, "
    "words BIGINT NOT NULL, author TEXT NOT NULL, created_ms BIGINT NOT NULL, UNIQUE (issue_id, digest))",
    {
        "sqlite": ["ALTER TABLE learnings ADD COLUMN lexemes TEXT", *_FULL_TEXT],
        "postgresql": [
            "ALTER TABLE learnings ADD COLUMN lexemes TSVECTOR",
            "CREATE INDEX learnings_words ON learnings (tenant, words)",
            "CREATE INDEX learnings_lexemes ON learnings USING gin (lexemes)",
        ],
    },
]

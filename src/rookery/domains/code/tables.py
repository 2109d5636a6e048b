"""The tables of the code index: files with their outlines, and segments with the names of files read together.

Everything hangs on a small number for the project. A file that changes moves into a new segment, so the old one has
names of a file that is no longer there: whoever searches asks which files are. A segment goes with its last file.
"""

import sqlalchemy as sa

from rookery.db.migrate import Migration
from rookery.db.schema import metadata, serial, text, whole

projects = sa.Table(
    "code_projects",
    metadata,
    serial("no"),
    text("tenant"),
    text("project_id"),
    text("root"),
    text("format"),
    whole("last_file"),
    whole("indexed_ms", null=True),
    sa.UniqueConstraint("project_id"),
)
"""`format` says how the rows were made, `indexed_ms` when the whole tree was first in here; NULL: it never was."""
files = sa.Table(
    "code_files",
    metadata,
    sa.Column("project_no", sa.BigInteger, primary_key=True, autoincrement=False),
    sa.Column("file_no", sa.BigInteger, primary_key=True, autoincrement=False),
    whole("segment_no"),
    text("tenant"),
    sa.Column("path", sa.Text().with_variant(sa.Text(collation="C"), "postgresql"), nullable=False),
    text("language"),
    whole("mtime_ns"),
    whole("size"),
    text("hash"),
    whole("symbols"),
    text("outline"),
    sa.UniqueConstraint("project_no", "path"),
)
"""`file_no` is another one whenever the file has changed."""
segments = sa.Table(
    "code_segments",
    metadata,
    sa.Column("project_no", sa.BigInteger, primary_key=True, autoincrement=False),
    sa.Column("segment_no", sa.BigInteger, primary_key=True, autoincrement=False),
    text("tenant"),
    whole("live"),
    text("starts"),
    text("defined"),
)
"""`segment_no` is the number of its first file. `live` files are still there. `starts` and `defined`: segment.py."""
words = sa.Table(
    "code_words",
    metadata,
    sa.Column("project_no", sa.BigInteger, primary_key=True, autoincrement=False),
    sa.Column("bucket", sa.BigInteger, primary_key=True, autoincrement=False),
    sa.Column("segment_no", sa.BigInteger, primary_key=True, autoincrement=False),
    text("tenant"),
    text("used"),
)
"""`used` are the names of one bucket of a segment, with the lines that mention them."""

_PROJECTS = (
    "CREATE TABLE code_projects (no {serial}, tenant TEXT NOT NULL, project_id TEXT NOT NULL UNIQUE, "
    "root TEXT NOT NULL, format TEXT NOT NULL, last_file BIGINT NOT NULL, indexed_ms BIGINT)"
)
_SEGMENTS = (
    "CREATE TABLE code_segments (project_no BIGINT NOT NULL, segment_no BIGINT NOT NULL, tenant TEXT NOT NULL, "
    "live BIGINT NOT NULL, starts TEXT NOT NULL, defined TEXT NOT NULL, PRIMARY KEY (project_no, segment_no))"
)
_WORDS = (
    "CREATE TABLE code_words (project_no BIGINT NOT NULL, bucket BIGINT NOT NULL, segment_no BIGINT NOT NULL, "
    "tenant TEXT NOT NULL, used TEXT NOT NULL, PRIMARY KEY (project_no, bucket, segment_no))"
)


def _files(sorted_text: str) -> str:
    return (
        "CREATE TABLE code_files (project_no BIGINT NOT NULL, file_no BIGINT NOT NULL, segment_no BIGINT NOT NULL, "
        f"tenant TEXT NOT NULL, path {sorted_text} NOT NULL, language TEXT NOT NULL, mtime_ns BIGINT NOT NULL, "
        "size BIGINT NOT NULL, hash TEXT NOT NULL, symbols BIGINT NOT NULL, outline TEXT NOT NULL, "
        "PRIMARY KEY (project_no, file_no), UNIQUE (project_no, path))"
    )


MIGRATIONS = (
    Migration(
        1,
        "code",
        [
            _PROJECTS,
            _SEGMENTS,
            _WORDS,
            # Folders are ranges of paths, so these have to be sorted by their characters.
            {"sqlite": [_files("TEXT")], "postgresql": [_files('TEXT COLLATE "C"')]},
        ],
    ),
)

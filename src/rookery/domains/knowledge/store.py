"""Keeps documents with their chunks: a document is there with all of them, or not at all."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql, sqlite

from rookery.core.ids import new_id
from rookery.db.tx import Tx
from rookery.domains.knowledge.chunks import Chunk
from rookery.domains.knowledge.tables import chunks, documents
from rookery.embedding.epochs import touch
from rookery.identity.store import now_ms

CHUNK_COLUMNS = (
    "tenant", "project_id", "document_id", "position", "heading", "content", "overlap", "words", "lexemes", "vector",
    "embedder",
)  # fmt: skip
_AT = (documents.c.project_id == sa.bindparam("of_project"), documents.c.path == sa.bindparam("at"))
_FIND = sa.select(documents).where(*_AT, documents.c.tenant == sa.bindparam("of_tenant"))
_CONTENT = (
    sa.select(chunks.c.content, chunks.c.overlap)
    .where(chunks.c.document_id == sa.bindparam("of_document"))
    .order_by(chunks.c.position)
)
_DROP_CHUNKS = sa.delete(chunks).where(chunks.c.document_id == sa.bindparam("of_document"))
_REPLACE = (
    sa.update(documents)
    .where(documents.c.id == sa.bindparam("the_id"), documents.c.revision == sa.bindparam("seen"))
    .values(revision=documents.c.revision + 1)
)


@dataclass(frozen=True, slots=True, kw_only=True)
class DraftChunk:
    """A chunk with what is searched of it: how many words it has, for PostgreSQL their stems, and its vector."""

    chunk: Chunk
    words: int
    lexemes: str | None
    vector: bytes | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """A document that was read and cut. Either all its chunks have a vector of `embedder`, or none has."""

    path: str
    title: str
    kind: str
    hash: str
    bytes: int
    chunks: Sequence[DraftChunk]
    embedder: str | None = None


class Documents:
    """The documents of one project."""

    def __init__(self, tx: Tx, tenant: str, project_id: str) -> None:
        self.tx = tx
        self.tenant = tenant
        self.project_id = project_id

    def find(self, path: str) -> sa.Row[Any] | None:
        """The document at this path, or None."""
        return self.tx.one(_FIND, {"of_tenant": self.tenant, "of_project": self.project_id, "at": path})

    def text(self, document: sa.Row[Any]) -> str:
        """What the document says, put together from its chunks."""
        return "".join(row.content[row.overlap :] for row in self.tx.all(_CONTENT, {"of_document": document.id}))

    def page(self, *, below: str = "", after: str = "", limit: int) -> Sequence[sa.Row[Any]]:
        """Documents in the order of their paths: of a folder, or all of them, from after a path on."""
        mine = (documents.c.tenant == self.tenant, documents.c.project_id == self.project_id)
        wanted = sa.select(documents).where(*mine, documents.c.path > after)
        if below:
            # Not LIKE, which on SQLite takes docs/ and Docs/ for one folder.
            folder = f"{below.rstrip('/')}/"
            inside = sa.func.substr(documents.c.path, 1, len(folder)) == folder
            wanted = wanted.where(sa.or_(documents.c.path == below, inside))
        return self.tx.all(wanted.order_by(documents.c.path).limit(limit))

    def save(self, draft: Draft, seen: sa.Row[Any] | None, subject: str) -> str | None:
        """Put the draft in the place of `seen`; its id, or None if another was faster and nothing was changed.

        `seen` is the document at this path as it was when the file was read.
        """
        # First of all: on PostgreSQL whoever changes documents of a project waits here for the one before.
        touch(self.tx, chunks.name, self.project_id)
        values = {
            "title": draft.title,
            "kind": draft.kind,
            "hash": draft.hash,
            "bytes": draft.bytes,
            "chunks": len(draft.chunks),
            "embedder": draft.embedder,
            "subject": subject,
            "indexed_ms": now_ms(),
        }
        document = self._insert(draft.path, values) if seen is None else self._replace(seen, values)
        if document is not None:
            self.tx.insert_rows("knowledge_chunks", CHUNK_COLUMNS, self._rows(document, draft))
        return document

    def _insert(self, path: str, values: Mapping[str, Any]) -> str | None:
        insert = (sqlite if self.tx.dialect == "sqlite" else postgresql).insert(documents)
        given = {"id": new_id("doc"), "tenant": self.tenant, "project_id": self.project_id, "path": path}
        made = insert.values(**given, **values, revision=1).on_conflict_do_nothing()
        return self.tx.scalar(made.returning(documents.c.id))

    def _replace(self, seen: sa.Row[Any], values: Mapping[str, Any]) -> str | None:
        if self.tx.run(_REPLACE.values(**values), [{"the_id": seen.id, "seen": seen.revision}]) != 1:
            return None
        self.tx.run(_DROP_CHUNKS, [{"of_document": seen.id}])
        return seen.id

    def delete(self, path: str) -> sa.Row[Any] | None:
        """Remove the document at this path with its chunks and their vectors; the document, or None without one."""
        touch(self.tx, chunks.name, self.project_id)
        found = self.find(path)
        if found is not None:
            self.tx.run(_DROP_CHUNKS, [{"of_document": found.id}])
            self.tx.run(sa.delete(documents).where(documents.c.id == found.id))
        return found

    def _rows(self, document: str, draft: Draft) -> list[tuple[Any, ...]]:
        return [
            (
                self.tenant, self.project_id, document, position, each.chunk.heading, each.chunk.content,
                each.chunk.overlap, each.words, each.lexemes, each.vector, draft.embedder,
            )
            for position, each in enumerate(draft.chunks)
        ]  # fmt: skip

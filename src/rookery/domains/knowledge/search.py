"""Finds chunks by their words and by their meaning, and makes one list of both."""

import threading
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal
from weakref import WeakKeyDictionary

import sqlalchemy as sa

from rookery.db.database import Database
from rookery.db.tx import Tx
from rookery.domains.knowledge.keyword import Coverage, Ranked, find, keyword_scores, looked_for
from rookery.domains.knowledge.tables import chunks, documents
from rookery.embedding.embedder import Embedder
from rookery.embedding.fusion import hybrid
from rookery.embedding.nearest import Nearest
from rookery.embedding.pgvector import PgVectors
from rookery.embedding.pgvector_table import prepare_soon
from rookery.fulltext.query import Term

Method = Literal["hybrid", "vector", "keyword"]
CANDIDATES = 50
"""So many of the best by words, and by meaning, are looked at more closely."""
_SOME = chunks.c.seq.in_(sa.bindparam("seqs", expanding=True))
_TEXTS = sa.select(chunks.c.seq, chunks.c.heading, chunks.c.content).where(_SOME)
_VECTORS = sa.select(chunks.c.seq, chunks.c.vector).where(_SOME, chunks.c.embedder == sa.bindparam("made_by"))
_SHOWN = (
    sa.select(
        chunks.c.seq, chunks.c.position, chunks.c.heading, chunks.c.content, documents.c.path, documents.c.title,
        documents.c.kind, documents.c.chunks, documents.c.project_id,
    )
    .join(documents, documents.c.id == chunks.c.document_id)
    .where(_SOME)
)  # fmt: skip
_chosen: WeakKeyDictionary[object, Nearest] = WeakKeyDictionary()
_lock = threading.Lock()


@dataclass(frozen=True, slots=True)
class Hit:
    """A chunk that was found: its row with that of its document, and how well it fits, from 0 to 1."""

    row: sa.Row[Any]
    score: float


@dataclass(frozen=True, slots=True)
class Found:
    """The best first. `method` says how they were looked for."""

    method: Method
    hits: Sequence[Hit]


@dataclass(frozen=True, slots=True)
class Meaning:
    """What turns the query into a vector, and what finds the closest vectors of chunks."""

    embedder: Embedder
    matrix: Nearest


def meaning_in(database: object, embedder: Embedder | None) -> Meaning | None:
    """The embedder with the vectors of a database, or None without an embedder."""
    if embedder is None:
        return None
    with _lock:
        nearest = _chosen.get(database)
        if nearest is None or nearest.embedder != embedder.name:
            nearest = _chosen[database] = _nearest(database, embedder)
    return Meaning(embedder, nearest)


def _nearest(database: object, embedder: Embedder) -> Nearest:
    """In memory; on PostgreSQL by pgvector from the moment on that every vector is ready for it."""
    from rookery.embedding.matrix import Matrix

    matrix = Matrix(chunks.name, embedder.name, embedder.dims)
    if not isinstance(database, Database) or not database.url.startswith("postgres"):
        return matrix
    prepare_soon(database.url, chunks.name)
    return PgVectors(chunks.name, embedder.name, embedder.dims, matrix)


class Search:
    """Searches the documents of some projects of a tenant."""

    def __init__(self, tx: Tx, tenant: str, projects: Sequence[str], meaning: Meaning | None) -> None:
        self.tx = tx
        self.tenant = tenant
        self.projects = projects
        self.meaning = meaning

    def find(self, query: str, *, top_k: int, min_score: float) -> Found:
        """The best chunks that score at least `min_score`.

        The score is the cosine similarity; without vectors, and of a chunk that has none yet, that of its words.
        """
        by_words = find(self.tx, self.tenant, self.projects, words := looked_for(query), CANDIDATES)
        scores: dict[int, float] = {}
        by_meaning: Ranked = []
        if self.meaning is not None and query.strip():
            vector = self.meaning.embedder.embed([query])[0]
            by_meaning = self.meaning.matrix.search(self.tx, vector, self.projects, CANDIDATES)
            scores = dict(by_meaning) | (self._cosines(vector, by_words, dict(by_meaning)) if by_meaning else {})
        plain = [each for each in by_words if each[0] not in scores]
        scores |= keyword_scores(words, plain, self._texts(plain)) if plain else {}
        order = [seq for seq, _ in by_words]
        if by_meaning:
            order = hybrid(by_words, [seq for seq, _ in by_meaning], self._coverage(words, by_words))
        best = [seq for seq in order if seq in scores and scores[seq] >= min_score][:top_k]
        return Found(_method(by_words, by_meaning), self._hits(best, scores))

    def _cosines(self, vector: bytes, by_words: Ranked, known: dict[int, float]) -> dict[int, float]:
        """Of those that were found by their words alone."""
        from rookery.embedding.matrix import cosines

        assert self.meaning is not None
        wanted = [seq for seq, _ in by_words if seq not in known]
        rows = self.tx.all(_VECTORS, {"seqs": wanted, "made_by": self.meaning.embedder.name}) if wanted else ()
        if not rows:
            return {}
        return dict(zip((row.seq for row in rows), cosines(vector, [row.vector for row in rows]), strict=True))

    def _coverage(self, words: Sequence[Term], by_words: Ranked) -> float:
        """The share of the query's words that the best find by words has."""
        texts = self._texts(by_words[:1]) if by_words else {}
        return max((Coverage(words).of(text) for text in texts.values()), default=0.0)

    def _texts(self, ranked: Ranked) -> dict[int, str]:
        rows = self.tx.all(_TEXTS, {"seqs": [seq for seq, _ in ranked]})
        return {row.seq: f"{row.heading}\n{row.content}" for row in rows}

    def _hits(self, best: Sequence[int], scores: dict[int, float]) -> list[Hit]:
        rows = {row.seq: row for row in self.tx.all(_SHOWN, {"seqs": list(best)})} if best else {}
        return [Hit(rows[seq], round(max(0.0, min(1.0, scores[seq])), 4)) for seq in best if seq in rows]


def _method(by_words: Ranked, by_meaning: Ranked) -> Method:
    if not by_meaning:
        return "keyword"
    return "hybrid" if by_words else "vector"

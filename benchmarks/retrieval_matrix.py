"""Times the search among 100,000 vectors in memory."""

import time
from typing import Any

import numpy as np
import sqlalchemy as sa

from rookery.db.database import Database
from rookery.db.tx import Tx
from rookery.embedding.epochs import touch
from rookery.embedding.matrix import Matrix

ROWS, DIMS, PROJECT, EMBEDDER = 100_000, 384, "many", "drawn"
NEAREST, TIMES = 50, 60
COLUMNS = ("project_id", "embedder", "vector")
TABLE = "drawn_vectors"
MAKE = (
    f"CREATE TABLE {TABLE} (seq INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT, "
    "project_id TEXT, embedder TEXT, vector BLOB)",
    f"CREATE INDEX {TABLE}_narrow ON {TABLE} (project_id, embedder, seq)",
)


def drawn(count: int, seed: int) -> list[bytes]:
    """Vectors of length 1 in directions that mean nothing."""
    numbers = np.random.default_rng(seed).standard_normal((count, DIMS), dtype=np.float32)
    return [row.tobytes() for row in (numbers / np.linalg.norm(numbers, axis=1, keepdims=True)).astype("<f2")]


def add(tx: Tx, vectors: list[bytes]) -> None:
    touch(tx, TABLE, PROJECT)
    tx.insert_rows(TABLE, COLUMNS, [(PROJECT, EMBEDDER, vector) for vector in vectors])


def make(tx: Tx) -> None:
    for statement in MAKE:
        tx.run(sa.text(statement))
    add(tx, drawn(ROWS, 1))


def remove(tx: Tx) -> None:
    touch(tx, TABLE, PROJECT)
    tx.run(sa.text(f"DELETE FROM {TABLE} WHERE seq BETWEEN 5000 AND 5009"))


def measure(database: Database) -> dict[str, Any]:
    """Milliseconds of the first search, of later ones, and of those after a change; and the bytes that are held."""
    database.direct(make, write=True)
    matrix = Matrix(TABLE, EMBEDDER, DIMS)

    def once(query: bytes) -> float:
        started = time.perf_counter_ns()
        database.direct(lambda tx: matrix.search(tx, query, [PROJECT], NEAREST))
        return (time.perf_counter_ns() - started) / 1e6

    queries = drawn(TIMES, 2)
    first, later = once(queries[0]), [once(query) for query in queries]
    database.direct(lambda tx: add(tx, drawn(10, 3)), write=True)
    added = once(queries[0])
    database.direct(remove, write=True)
    return {"first": first, "later": later, "added": added, "removed": once(queries[0]), "bytes": matrix.size}

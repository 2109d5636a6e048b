"""A table of vectors, and a process that changes it: `python -m tests.embedding.vectors URL CHANGE PROJECT SEED …`."""

import sys
from collections.abc import Sequence

import numpy as np
import sqlalchemy as sa

from rookery.db.database import Database, open_database
from rookery.db.migrate import Migration, migrate
from rookery.db.tx import Tx
from rookery.embedding.epochs import touch
from rookery.embedding.matrix import Found, Matrix

TABLE, EMBEDDER, DIMS = "pieces", "model-1", 8
PLAN = {
    "pieces": [
        Migration(
            1,
            "pieces",
            [
                "CREATE TABLE pieces (seq {serial}, project_id TEXT NOT NULL, label TEXT NOT NULL, embedder TEXT)",
                {
                    "sqlite": ["ALTER TABLE pieces ADD COLUMN vector BLOB"],
                    "postgresql": ["ALTER TABLE pieces ADD COLUMN vector BYTEA"],
                },
                "CREATE INDEX pieces_vectors ON pieces (project_id, embedder, seq)",
            ],
        )
    ]
}
_ADD = sa.text(
    "INSERT INTO pieces (project_id, label, embedder, vector) VALUES (:project, :label, :embedder, :vector) "
    "RETURNING seq"
)
_REMOVE = sa.text("DELETE FROM pieces WHERE project_id = :project AND label = :label")


def open_pieces(url: str) -> Database:
    database = open_database(url)
    migrate(database, PLAN, None)
    return database


def vector(seed: int) -> bytes:
    """Some vector of length 1, the same for the same seed."""
    drawn = np.random.default_rng(seed).standard_normal(DIMS)
    return np.asarray(drawn / np.linalg.norm(drawn), dtype="<f2").tobytes()


def new_matrix(room: int = 10**6) -> Matrix:
    return Matrix(TABLE, EMBEDDER, DIMS, room=room)


def add(tx: Tx, project: str, seeds: Sequence[int], embedder: str = EMBEDDER) -> list[int]:
    """The numbers of new rows with the vectors of these seeds."""
    touch(tx, TABLE, project)
    rows = [{"project": project, "label": str(seed), "embedder": embedder, "vector": vector(seed)} for seed in seeds]
    return [tx.scalar(_ADD, row) for row in rows]


def remove(tx: Tx, project: str, seeds: Sequence[int]) -> None:
    touch(tx, TABLE, project)
    tx.run(_REMOVE, [{"project": project, "label": str(seed)} for seed in seeds])


def closest(database: Database, matrix: Matrix, seed: int, projects: Sequence[str], k: int = 3) -> Found:
    """What the matrix finds for the vector of a seed."""
    return database.direct(lambda tx: matrix.search(tx, vector(seed), projects, k))


def main(url: str, change: str, project: str, *seeds: str) -> None:
    database = open_database(url)
    work = {"add": add, "remove": remove}[change]
    database.direct(lambda tx: work(tx, project, [int(seed) for seed in seeds]), write=True)
    database.close()


if __name__ == "__main__":
    main(*sys.argv[1:])

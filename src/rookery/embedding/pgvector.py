"""Search among stored vectors inside PostgreSQL, by its extension pgvector.

The rows of a table stay the truth, with their vectors as bytes. Beside it is a table that holds the same vectors as
pgvector wants them. A trigger writes it in the transaction that writes the row, whoever writes it; `pgvector_table.py`
makes it. No backup has it, so a backup can be restored where there is no pgvector.
"""

import hashlib
import struct
from collections.abc import Sequence
from typing import Any

import sqlalchemy as sa

from rookery.db.tx import Tx
from rookery.embedding.nearest import Found, Nearest

EXACT_ROWS = 50_000
"""So many rows are compared one by one, in about 40 ms. Of more, an index finds most of the closest, not all."""
INDEX_EFFORT = 400
"""How many candidates the index keeps. With twice as many it finds half of what it misses, in twice the time."""
FILLING, COMPLETE = "filling 1", "complete 1"
"""What the table's column says of itself. Another number has the table made anew, for when its shape changes."""
_STATE = sa.text(
    "SELECT d.description AS state, EXISTS (SELECT 1 FROM pg_index i WHERE i.indexrelid = to_regclass(:index) "
    "AND i.indisvalid) AS indexed, set_config('jit', 'off', true) AS jit "
    "FROM pg_attribute a JOIN pg_description d ON d.objoid = a.attrelid AND d.objsubid = a.attnum "
    "AND d.classoid = 'pg_class'::regclass WHERE a.attrelid = to_regclass(:beside) AND a.attname = 'vector'"
)
_VERSION = sa.text(
    "SELECT x.extversion AS version, to_regtype('halfvec') IS NOT NULL AS usable, "
    "EXISTS (SELECT 1 FROM pg_available_extensions WHERE name = 'vector') AS available "
    "FROM (SELECT 1) one LEFT JOIN pg_extension x ON x.extname = 'vector'"
)


def beside(table: str) -> str:
    """The table that pgvector searches. `rookery backup` leaves out all that end so."""
    return f"{table}_pgvector"


def index_of(table: str, embedder: str) -> str:
    """The index for the vectors of one embedder, once there are many."""
    return f"{beside(table)}_{hashlib.sha256(embedder.encode()).hexdigest()[:12]}"


def state_of(tx: Tx, table: str, embedder: str = "") -> sa.Row[Any] | None:
    """What the table beside says as of `tx`, and whether the embedder's index can be used; None: there is no table."""
    return tx.one(_STATE, {"beside": beside(table), "index": index_of(table, embedder)})


def extension(tx: Tx) -> sa.Row[Any]:
    """pgvector in this database: `version` or None, whether it is `usable`, and whether it is there to be created."""
    found = tx.one(_VERSION)
    assert found is not None
    return found


def told_of(tx: Tx, table: str) -> str:
    """A sentence for people: how vectors are searched on this PostgreSQL, and if not by pgvector, why."""
    state, found = state_of(tx, table), extension(tx)
    if state is not None and state.state == COMPLETE:
        return f"Vectors are searched by pgvector {found.version}."
    if found.usable:
        return "Vectors are searched in memory until a server has copied them for pgvector."
    if found.version is not None:
        needed = "0.7 or newer is needed, in a schema of the search path"
        return f"Vectors are searched in memory: no halfvec of pgvector {found.version} can be seen; {needed}."
    if found.available:
        return "Vectors are searched in memory: whoever may, turns pgvector on by CREATE EXTENSION vector."
    return "Vectors are searched in memory: this PostgreSQL has no pgvector."


class PgVectors:
    """The vectors that one embedder made of a table's rows, searched by pgvector.

    As long as not all of them are in the table beside, `plain` searches. The table is as `Matrix` wants it.
    """

    def __init__(self, table: str, embedder: str, dims: int, plain: Nearest, *, exact_rows: int = EXACT_ROWS) -> None:
        self.table = table
        self.embedder = embedder
        self.dims = dims
        self.plain = plain
        self.exact_rows = exact_rows
        mine = f"FROM {beside(table)} WHERE project_id = ANY(:projects) AND embedder = :embedder"
        # The index is for halfvec(dims), so this cannot use it.
        distance = "vector <#> CAST(:query AS halfvec)"
        self._exact = sa.text(f"SELECT seq, -({distance}) AS score {mine} ORDER BY {distance}, seq DESC LIMIT :k")
        distance = f"vector::halfvec({dims}) <#> CAST(:query AS halfvec({dims}))"
        # Written out, since PostgreSQL takes an index of some rows only if it can see that they are the right ones.
        self._by_index = sa.text(f"SELECT seq, -({distance}) AS score {mine} ORDER BY {distance} LIMIT :k").bindparams(
            sa.bindparam("embedder", type_=sa.Text, literal_execute=True)
        )
        self._count = sa.text(f"SELECT count(*) FROM (SELECT 1 {mine} LIMIT {exact_rows + 1}) counted")
        self._effort = sa.text(
            "SELECT set_config('hnsw.ef_search', :effort, true), "
            "set_config('hnsw.iterative_scan', 'strict_order', true)"
        )

    def search(self, tx: Tx, query: bytes, projects: Sequence[str], k: int) -> Found:
        """The k rows of these projects that are closest to the query, best first, of all that `tx` sees.

        Of more than 50,000 rows some of the closest may be missing; decision 0008 has the figures.
        """
        if len(query) != 2 * self.dims or k < 1 or not projects:
            return []
        state = state_of(tx, self.table, self.embedder)
        if state is None or state.state != COMPLETE:
            return self.plain.search(tx, query, projects, k)
        numbers = ",".join(map(repr, struct.unpack(f"<{self.dims}e", query)))
        mine = {"projects": list(projects), "embedder": self.embedder}
        values = {**mine, "query": f"[{numbers}]", "k": k}
        if state.indexed and tx.scalar(self._count, mine) > self.exact_rows:
            tx.run(self._effort.bindparams(effort=str(max(INDEX_EFFORT, min(k, 1000)))))
            # The index gives up after some thousand rows of other projects.
            if len(rows := tx.all(self._by_index, values)) == k:
                return _found(rows)
        return _found(tx.all(self._exact, values))


def _found(rows: Sequence[sa.Row[Any]]) -> Found:
    found = [(int(row.seq), min(float(row.score), 1.0)) for row in rows]
    return sorted(found, key=lambda row: (-row[1], -row[0]))

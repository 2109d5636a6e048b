"""What finds the closest of stored vectors. `Matrix` does it in memory, `PgVectors` in PostgreSQL."""

from collections.abc import Sequence
from typing import Protocol

from rookery.db.tx import Tx

Found = list[tuple[int, float]]
"""Numbers of rows, each with the cosine of the angle to the query: 1 for the same direction."""


class Nearest(Protocol):
    """The vectors that one embedder made of a table's rows."""

    @property
    def embedder(self) -> str: ...

    def search(self, tx: Tx, query: bytes, projects: Sequence[str], k: int) -> Found:
        """The k rows of these projects that are closest to the query, best first, of all that `tx` sees."""
        ...

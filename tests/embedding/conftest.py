"""Databases with a table of vectors, closed after the test."""

from collections.abc import Iterator

import pytest

from rookery.db.database import Database
from rookery.embedding.embedder import missing

# Where the extra cannot be installed, there is nothing to test but that search goes on without it.
collect_ignore = ["test_matrix.py", "test_minilm.py"] if missing() else []


@pytest.fixture
def pieces(database_url: str) -> Iterator[Database]:
    """On SQLite and on PostgreSQL."""
    from tests.embedding.vectors import open_pieces

    database = open_pieces(database_url)
    yield database
    database.close()

"""Databases with the sample's tables, closed after the test."""

from collections.abc import Callable, Iterator

import pytest

from rookery.db.database import Database
from tests.db.sample import open_sample


@pytest.fixture
def open_database() -> Iterator[Callable[..., Database]]:
    """Opens sample databases."""
    opened: list[Database] = []

    def open_one(url: str, *, audited: bool = True) -> Database:
        opened.append(open_sample(url, audited=audited))
        return opened[-1]

    yield open_one
    for database in opened:
        database.close()


@pytest.fixture
def database(open_database: Callable[..., Database], database_url: str) -> Database:
    """The sample on SQLite and on PostgreSQL."""
    return open_database(database_url)

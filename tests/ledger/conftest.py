"""The books of a platform on a database of its own."""

from collections.abc import Callable

import pytest

from tests.ledger.books import Books
from tests.platform_fixtures import Fleet
from tests.platform_fixtures import prepared_database_url as database_url

__all__ = ["database_url"]


@pytest.fixture
def books(database_url: str, make_fleet: Callable[..., Fleet]) -> Books:
    return Books(make_fleet(database_url, extra={}).platform.database)

"""Where every test of asks is."""

from collections.abc import Callable

import pytest

from tests.domains.owner.reception import Reception
from tests.platform_fixtures import Fleet


@pytest.fixture
def reception(database_url: str, make_fleet: Callable[..., Fleet]) -> Reception:
    """The product's own tools, on SQLite and on PostgreSQL."""
    return Reception(make_fleet(database_url, extra={}))

"""The almanac that every test of schedules looks into."""

from collections.abc import Callable

import pytest

from tests.domains.schedules.almanac import Almanac
from tests.platform_fixtures import Fleet


@pytest.fixture
async def almanac(database_url: str, make_fleet: Callable[..., Fleet]) -> Almanac:
    """The product's own tools and stand-ins for those that actions call, on SQLite and on PostgreSQL."""
    return Almanac(make_fleet(database_url, extra={}))

"""Every test of this domain has a Brave of its own, on this machine, and nothing of ours may reach any other place."""

from collections.abc import AsyncGenerator, Callable
from typing import Any

import pytest

from rookery.domains.research.pace import pace_of
from tests.domains.research.desk import Desk
from tests.domains.research.fake_brave import KEY, serving
from tests.network_guard import nowhere_else
from tests.platform_fixtures import Fleet

__all__ = ["nowhere_else"]


@pytest.fixture
async def desk(database_url: str, make_fleet: Callable[..., Fleet]) -> AsyncGenerator[Desk]:
    """The product's own tools, with a key, on SQLite and on PostgreSQL."""
    # A port may come again, and with it what was learnt about its server.
    pace_of.cache_clear()
    async with serving() as brave:

        def make(**settings: Any) -> Fleet:
            return make_fleet(database_url, extra={}, **{"search_api_key": KEY, "search_url": brave.url, **settings})

        yield Desk(make, brave)

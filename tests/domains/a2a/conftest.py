"""Every test of this domain talks with real servers and clients on this machine, and nothing may reach another."""

from collections.abc import AsyncIterator, Callable

import pytest

from tests.domains.a2a.outpost import Outpost
from tests.domains.a2a.remote_agent import RemoteAgent, remote_agent
from tests.network_guard import nowhere_else
from tests.platform_fixtures import Fleet
from tests.platform_fixtures import prepared_database_url as database_url

__all__ = ["database_url", "nowhere_else"]

MakeOutpost = Callable[..., Outpost]
on_one_database = pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
"""For tests to which the database is all the same."""


@pytest.fixture
def make_outpost(database_url: str, make_fleet: Callable[..., Fleet]) -> MakeOutpost:
    """Fleets with these settings on one database."""
    return lambda **settings: Outpost(lambda **given: make_fleet(database_url, extra={}, **given), **settings)


@pytest.fixture
def outpost(make_outpost: MakeOutpost) -> Outpost:
    """One that may talk with this machine and trusts it, on SQLite and on PostgreSQL."""
    return make_outpost()


@pytest.fixture
async def mirror() -> AsyncIterator[RemoteAgent]:
    """An agent elsewhere that does what it is told."""
    async with remote_agent() as agent:
        yield agent

"""The post office that every test of messages goes to."""

from collections.abc import Callable

import pytest

from tests.domains.messages.post_office import PostOffice
from tests.platform_fixtures import Fleet


@pytest.fixture
async def office(database_url: str, make_fleet: Callable[..., Fleet]) -> PostOffice:
    """Three agents and scripted sessions, on SQLite and on PostgreSQL."""
    made = PostOffice(make_fleet(database_url, extra={}))
    await made.open()
    return made

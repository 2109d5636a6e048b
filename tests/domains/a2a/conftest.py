"""Every test of this domain talks with real servers and clients on this machine, and nothing may reach another."""

import ipaddress
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import pytest

from tests.domains.a2a.outpost import Outpost
from tests.domains.a2a.remote_agent import RemoteAgent, remote_agent
from tests.platform_fixtures import Fleet
from tests.platform_fixtures import prepared_database_url as database_url

__all__ = ["database_url"]

_watched: list[list[str]] = []


def _watch(event: str, arguments: tuple[Any, ...]) -> None:
    """An audit hook of Python: it hears of every connection before it is made. It cannot be taken out again."""
    if not _watched or event not in ("socket.connect", "socket.getaddrinfo"):
        return
    place = arguments[1] if event == "socket.connect" else arguments[:1]
    if isinstance(place, tuple) and not _at_home(str(place[0]), connecting=event == "socket.connect"):
        _watched[-1].append(str(place[0]))
        raise PermissionError(f"{place[0]} is not of this machine")


def _at_home(host: str, *, connecting: bool) -> bool:
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return host == "localhost"
    # To look a number up asks nobody.
    return address.is_loopback or not connecting


sys.addaudithook(_watch)


@pytest.fixture(autouse=True)
def nowhere_else() -> Iterator[list[str]]:
    """What a test tried to reach besides this machine: refused, and the test fails."""
    tried: list[str] = []
    _watched.append(tried)
    yield tried
    _watched.remove(tried)
    assert tried == []


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

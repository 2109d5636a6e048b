"""Every test of this domain has a Brave of its own, on this machine, and nothing of ours may reach any other place."""

import sys
from collections.abc import AsyncGenerator, Callable, Iterator
from typing import Any

import pytest

from rookery.domains.research.pace import pace_of
from tests.domains.research.desk import Desk
from tests.domains.research.fake_brave import KEY, serving
from tests.platform_fixtures import Fleet

OURS = ("127.0.0.1", "localhost", "::1")
_watching: list[list[str]] = []


def _watch(event: str, arguments: tuple[Any, ...]) -> None:
    """An audit hook of Python: it hears of every connection before it is made. It cannot be taken out again."""
    if not _watching or event not in ("socket.connect", "socket.getaddrinfo"):
        return
    place = arguments[1] if event == "socket.connect" else arguments[:1]
    host = place[0] if isinstance(place, tuple) else OURS[0]
    named = host.decode() if isinstance(host, bytes) else str(host)
    if named not in OURS:
        _watching[-1].append(named)
        raise PermissionError(f"{named} is not of this machine")


sys.addaudithook(_watch)


@pytest.fixture(autouse=True)
def elsewhere() -> Iterator[list[str]]:
    """What a test tried to reach besides this machine: refused, and the test fails unless it expected that."""
    tried: list[str] = []
    _watching.append(tried)
    yield tried
    _watching.remove(tried)
    assert tried == []


@pytest.fixture
async def desk(database_url: str, make_fleet: Callable[..., Fleet]) -> AsyncGenerator[Desk]:
    """The product's own tools, with a key, on SQLite and on PostgreSQL."""
    # A port may come again, and with it what was learnt about its server.
    pace_of.cache_clear()
    async with serving() as brave:

        def make(**settings: Any) -> Fleet:
            return make_fleet(database_url, extra={}, **{"search_api_key": KEY, "search_url": brave.url, **settings})

        yield Desk(make, brave)

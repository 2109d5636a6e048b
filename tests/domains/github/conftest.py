"""Every test of this domain has a GitHub of its own, on this machine, and nothing of ours may reach any other place."""

import sys
from collections.abc import AsyncGenerator, Callable, Iterator
from typing import Any

import pytest

from rookery.domains.github import posting
from tests.domains.github.desk import Desk
from tests.domains.github.fake_github import TOKEN, FakeGitHub
from tests.domains.github.fake_server import serving
from tests.platform_fixtures import Fleet

ALLOWED = ("127.0.0.1", "localhost", "::1")
_watched: list[list[str]] = []


def _watch(event: str, arguments: tuple[Any, ...]) -> None:
    """An audit hook of Python: it hears of every connection before it is made. It cannot be taken out again."""
    if not _watched or event not in ("socket.connect", "socket.getaddrinfo"):
        return
    place = arguments[1] if event == "socket.connect" else arguments[0]
    host = place[0] if isinstance(place, tuple) else place
    if isinstance(place, tuple) or event == "socket.getaddrinfo":
        host = host.decode() if isinstance(host, bytes) else str(host)
        if host not in ALLOWED:
            _watched[-1].append(host)
            raise PermissionError(f"{host} is not of this machine")


sys.addaudithook(_watch)


@pytest.fixture(autouse=True)
def nowhere_else() -> Iterator[list[str]]:
    """What a test tried to reach besides this machine: refused, and the test fails."""
    tried: list[str] = []
    _watched.append(tried)
    yield tried
    _watched.remove(tried)
    assert tried == []


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is late here is so because a test says so."""
    monkeypatch.setattr(posting, "LOOKS_S", (0.02, 0.05))
    monkeypatch.setattr(posting, "SETTLE_S", 0.1)


@pytest.fixture
async def desk(database_url: str, make_fleet: Callable[..., Fleet]) -> AsyncGenerator[Desk]:
    """The product's own tools, with a token, on SQLite and on PostgreSQL."""
    github = FakeGitHub()
    async with serving(github.answer) as server:

        def make(**settings: Any) -> Fleet:
            given = {"github_token": TOKEN, "github_api_url": server.url, **settings}
            return make_fleet(database_url, extra={}, **given)

        yield Desk(make, github, server)

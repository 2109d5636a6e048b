"""Every test of this domain has a GitHub of its own, on this machine, and nothing of ours may reach any other place."""

from collections.abc import AsyncGenerator, Callable
from typing import Any

import pytest

from rookery.domains.github import posting
from tests.domains.github.desk import Desk
from tests.domains.github.fake_github import TOKEN, FakeGitHub
from tests.domains.github.fake_server import serving
from tests.network_guard import nowhere_else
from tests.platform_fixtures import Fleet

__all__ = ["nowhere_else"]


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is late here is so because a test says so."""
    monkeypatch.setattr(posting, "LOOKS_S", (0.02, 0.05))
    monkeypatch.setattr(posting, "SETTLE_S", 0.0)


@pytest.fixture
async def desk(database_url: str, make_fleet: Callable[..., Fleet]) -> AsyncGenerator[Desk]:
    """The product's own tools, with a token, on SQLite and on PostgreSQL."""
    github = FakeGitHub()
    async with serving(github.answer) as server:

        def make(**settings: Any) -> Fleet:
            given = {"github_token": TOKEN, "github_api_url": server.url, **settings}
            return make_fleet(database_url, extra={}, **given)

        yield Desk(make, github, server)

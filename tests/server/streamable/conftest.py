"""Servers for the tests of the HTTP door."""

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import pytest

from tests.platform_fixtures import Fleet
from tests.platform_fixtures import prepared_database_url as database_url
from tests.server.streamable import probes, scripts
from tests.server.streamable.web import Web, serving

__all__ = ["database_url"]

MakeWeb = Callable[..., AbstractAsyncContextManager[Web]]
on_one_database = pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
"""For tests that need tokens but to which the database is all the same."""


@pytest.fixture
def make_web(tmp_path: Path, make_fleet: Callable[..., Fleet]) -> MakeWeb:
    """`async with make_web(auth_mode="none") as web`: a server with these settings, on SQLite unless told."""

    def make(database: str | None = None, **settings: Any) -> AbstractAsyncContextManager[Web]:
        url = database or f"sqlite:///{tmp_path / 'web.db'}"
        return serving(make_fleet(url, extra={"probes": probes, "scripts": scripts}, **settings))

    return make


@pytest.fixture
async def web(database_url: str, make_web: MakeWeb) -> AsyncIterator[Web]:
    """A server that needs tokens, on SQLite and on PostgreSQL."""
    async with make_web(database_url) as running:
        yield running


@pytest.fixture
async def trusting(make_web: MakeWeb) -> AsyncIterator[Web]:
    """A server that needs none, for tests that are not about identity."""
    async with make_web(auth_mode="none") as running:
        yield running

"""Authenticators that are closed after the test, and a server for keys."""

from collections.abc import AsyncIterator

import pytest

from tests.server.auth.issuer import KeyServer


@pytest.fixture
async def key_server() -> AsyncIterator[KeyServer]:
    async with KeyServer() as server:
        yield server

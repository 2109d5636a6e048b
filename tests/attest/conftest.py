"""Logs of attestations, on SQLite and on PostgreSQL."""

from collections.abc import Callable

import pytest

from tests.attest.notary import Notary
from tests.network_guard import nowhere_else
from tests.platform_fixtures import Fleet
from tests.platform_fixtures import prepared_database_url as database_url

__all__ = ["database_url", "nowhere_else"]


@pytest.fixture
def notary(database_url: str, make_fleet: Callable[..., Fleet]) -> Notary:
    return Notary(make_fleet(database_url, extra={}))

"""The workshop that every test of stored workflows works in."""

from collections.abc import Callable

import pytest

from tests.domains.workflows.workshop import Workshop
from tests.platform_fixtures import Fleet


@pytest.fixture
def workshop(database_url: str, make_fleet: Callable[..., Fleet]) -> Workshop:
    """The product's own tools alone, on SQLite and on PostgreSQL."""
    return Workshop(make_fleet(database_url, extra={}))

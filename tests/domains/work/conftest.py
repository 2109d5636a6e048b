"""The workshop of every test of work tasks."""

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.domains.work.workshop import Workshop
from tests.platform_fixtures import Fleet


@pytest.fixture
def workshop(database_url: str, make_fleet: Callable[..., Fleet], tmp_path: Path) -> Workshop:
    """The product's own tools alone, on SQLite and on PostgreSQL."""
    return Workshop(make_fleet(database_url, extra={}), tmp_path)

"""The desk that every test of the tracker works at."""

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.domains.tracker.desk import Desk
from tests.platform_fixtures import Fleet


@pytest.fixture
def desk(database_url: str, make_fleet: Callable[..., Fleet], tmp_path: Path) -> Desk:
    """The product's own tools alone, on SQLite and on PostgreSQL."""
    return Desk(make_fleet(database_url, extra={}), tmp_path)

"""The clinic of every test of codebase health."""

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.domains.health.clinic import Clinic
from tests.platform_fixtures import Fleet


@pytest.fixture
def clinic(prepared_database_url: str, make_fleet: Callable[..., Fleet], tmp_path: Path) -> Clinic:
    """The product's own tools alone, on SQLite and on PostgreSQL."""
    return Clinic(make_fleet(prepared_database_url, extra={}), tmp_path)

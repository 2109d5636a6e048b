"""The code that every test of the index works in."""

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.domains.code.codebase import Codebase
from tests.platform_fixtures import Fleet


@pytest.fixture
def codebase(database_url: str, make_fleet: Callable[..., Fleet], tmp_path: Path) -> Codebase:
    """A project with an empty folder, on SQLite and on PostgreSQL."""
    return Codebase(make_fleet(database_url, extra={}), tmp_path)

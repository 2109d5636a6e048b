"""What every test of the orchestrator starts with."""

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.engine.crew import Crew
from tests.platform_fixtures import Fleet
from tests.platform_fixtures import prepared_database_url as database_url

__all__ = ["database_url"]


@pytest.fixture
def crew(database_url: str, make_fleet: Callable[..., Fleet], tmp_path: Path) -> Crew:
    """A project that agents are dispatched to, with the product's own tools alone."""
    return Crew(make_fleet(database_url, extra={}), tmp_path)

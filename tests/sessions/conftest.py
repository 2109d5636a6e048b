"""The place where sessions are held."""

from collections.abc import Callable
from typing import Any

import pytest

from tests.platform_fixtures import Fleet
from tests.sessions.stage import Stage


@pytest.fixture
def make_stage(prepared_database_url: str, make_fleet: Callable[..., Fleet]) -> Callable[..., Stage]:
    """Builds such places with settings of their own, on SQLite and on PostgreSQL."""

    def make(**settings: Any) -> Stage:
        return Stage(make_fleet(prepared_database_url, **settings))

    return make


@pytest.fixture
def stage(make_stage: Callable[..., Stage]) -> Stage:
    return make_stage()

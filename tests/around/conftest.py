"""A fleet with the workload's tools."""

from collections.abc import Callable
from types import ModuleType

import pytest

from tests.around import workload
from tests.platform_fixtures import Fleet
from tests.platform_fixtures import prepared_database_url as database_url

__all__ = ["database_url"]


@pytest.fixture
def make_working(make_fleet: Callable[..., Fleet]) -> Callable[..., Fleet]:
    """Builds fleets that have the workload's tools."""

    def make(database_url: str, **settings: object) -> Fleet:
        extra: dict[str, ModuleType] = {"workload": workload}
        workload.REACHED.clear()
        return make_fleet(database_url, extra=extra, **settings)

    return make


@pytest.fixture
def working(database_url: str, make_working: Callable[..., Fleet]) -> Fleet:
    """A fleet with the workload's tools, on SQLite and on PostgreSQL."""
    return make_working(database_url)

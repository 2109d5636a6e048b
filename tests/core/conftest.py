"""Fleets for the tests of the permission model."""

from collections.abc import Callable
from types import ModuleType

import pytest

from tests import stand_ins
from tests.core import probe_tools
from tests.platform_fixtures import Fleet
from tests.platform_fixtures import prepared_database_url as database_url

__all__ = ["database_url"]


@pytest.fixture
def probe_fleet(database_url: str, make_fleet: Callable[..., Fleet]) -> Fleet:
    """A fleet with our tools, the stand-ins and tools that show or spoil what a handler is given."""
    return make_fleet(database_url, extra={"stand_ins": stand_ins, "probes": probe_tools})


@pytest.fixture
def served_fleet(database_url: str, make_fleet: Callable[..., Fleet]) -> Fleet:
    """A fleet of an installation that has the services which conditional tools wait for."""
    services = ModuleType("services")
    services.SERVICES = ("work_tasks", "code_index")  # pyright: ignore[reportAttributeAccessIssue]
    return make_fleet(database_url, extra={"stand_ins": stand_ins, "services": services})

"""A fleet with the product's own tools alone, on SQLite and on PostgreSQL. Nothing may reach another machine."""

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.domains.reputation.bench import Bench
from tests.domains.tracker.desk import Desk
from tests.domains.work.workshop import Workshop
from tests.network_guard import nowhere_else
from tests.platform_fixtures import Fleet

__all__ = ["nowhere_else"]


@pytest.fixture
def fleet(database_url: str, make_fleet: Callable[..., Fleet]) -> Fleet:
    return make_fleet(database_url, extra={})


@pytest.fixture
def bench(fleet: Fleet) -> Bench:
    return Bench(fleet)


@pytest.fixture
def workshop(fleet: Fleet, tmp_path: Path) -> Workshop:
    return Workshop(fleet, tmp_path)


@pytest.fixture
def desk(fleet: Fleet, tmp_path: Path) -> Desk:
    return Desk(fleet, tmp_path)

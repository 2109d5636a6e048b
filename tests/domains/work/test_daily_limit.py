"""The counter of a day's tasks by itself."""

from collections.abc import Callable

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rookery.core.errors import RateLimited
from rookery.db.tx import Tx
from rookery.domains.work.daily_limit import DAY_MS, count_one
from tests.platform_fixtures import Fleet

MIDNIGHT = 20_000 * DAY_MS


@pytest.fixture
def count(database_url: str, make_fleet: Callable[..., Fleet]) -> Callable[..., bool]:
    """Counts one task in a transaction of its own; whether there was room."""
    database = make_fleet(database_url, extra={}).platform.database

    def one(agent: str, at_ms: int, limit: int, tenant: str = "default") -> bool:
        def work(tx: Tx) -> bool:
            try:
                count_one(tx, tenant, agent, at_ms, limit)
            except RateLimited:
                return False
            return True

        return database.direct(work, write=True)

    return one


def test_a_limit_of_nothing_lets_nothing_pass(count: Callable[..., bool]) -> None:
    assert not count("ada", MIDNIGHT, 0)
    assert not count("ada", MIDNIGHT, -1)


def test_a_day_ends_at_midnight_in_utc(count: Callable[..., bool]) -> None:
    assert count("ada", MIDNIGHT - 1, 1)
    assert not count("ada", MIDNIGHT - 1, 1)
    assert count("ada", MIDNIGHT, 1)
    assert not count("ada", MIDNIGHT + DAY_MS - 1, 1)


def test_agents_and_tenants_are_counted_by_themselves(count: Callable[..., bool]) -> None:
    assert count("ada", MIDNIGHT, 1)
    assert count("eve", MIDNIGHT, 1)
    assert count("ada", MIDNIGHT, 1, tenant="other")
    assert not count("ada", MIDNIGHT, 1)


def test_whoever_began_before_midnight_and_comes_after_it_does_not_bring_the_day_back(
    count: Callable[..., bool],
) -> None:
    assert count("ada", MIDNIGHT, 2)
    assert count("ada", MIDNIGHT - 1, 2)
    assert not count("ada", MIDNIGHT, 2)


@settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)
@given(days=st.lists(st.integers(0, 3), max_size=30), limit=st.integers(1, 4))
def test_no_day_has_more_than_its_limit(count: Callable[..., bool], days: list[int], limit: int) -> None:
    agent = f"agent {days} {limit}"
    passed = [day for day in sorted(days) if count(agent, MIDNIGHT + day * DAY_MS, limit)]
    assert all(passed.count(day) == min(days.count(day), limit) for day in range(4))

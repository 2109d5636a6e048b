"""Rates: defaults, what the settings say, and what somebody has set."""

from collections.abc import Callable
from typing import Any

import pytest

from rookery.core.errors import ValidationFailed
from rookery.ledger.rates import DEFAULTS, KEYS, MAX_RATE, take_rates
from tests.ledger.books import Books
from tests.platform_fixtures import Fleet

SEEDED = {"credits_per_turn": 3, "free_credits_on_first_message": 0}


def rates(fleet: Fleet, tenant: str = "default") -> dict[str, int]:
    return Books(fleet.platform.database, tenant).do(lambda ledger: ledger.config())


def test_the_six_rates_have_the_defaults_of_the_seed(books: Books) -> None:
    assert DEFAULTS == {
        "credits_per_algo": 1000,
        "low_credit_threshold": 50,
        "reserve_per_group_message": 10,
        "credits_per_turn": 1,
        "credits_per_agent_message": 5,
        "free_credits_on_first_message": 100,
    }
    assert tuple(DEFAULTS) == KEYS
    assert books.do(lambda ledger: ledger.config()) == DEFAULTS


@pytest.mark.parametrize("value", [-1, 1.5, True, "5", None, MAX_RATE + 1, 2**70])
def test_a_rate_that_is_no_whole_number_is_refused(books: Books, value: Any) -> None:
    with pytest.raises(ValidationFailed, match="credits_per_turn"):
        books.do(lambda ledger: ledger.set_config("credits_per_turn", value))
    assert books.do(lambda ledger: ledger.config()) == DEFAULTS


def test_a_rate_that_does_not_exist_is_refused(books: Books) -> None:
    with pytest.raises(ValidationFailed, match="there is no rate credits_per_day"):
        books.do(lambda ledger: ledger.set_config("credits_per_day", 1))


def test_a_rate_counts_for_its_tenant_alone(books: Books) -> None:
    books.do(lambda ledger: ledger.set_config("credits_per_turn", 0))
    books.do(lambda ledger: ledger.set_config("credits_per_turn", 7))
    assert books.do(lambda ledger: ledger.config()) == DEFAULTS | {"credits_per_turn": 7}
    assert Books(books.database, "other").do(lambda ledger: ledger.config()) == DEFAULTS


def served(fleet: Fleet) -> Fleet:
    """The fleet, once its server has started."""
    take_rates(fleet.platform.database, fleet.platform.settings)
    return fleet


def test_the_settings_count_for_every_tenant_until_somebody_sets_another(
    database_url: str, make_fleet: Callable[..., Fleet]
) -> None:
    fleet = served(make_fleet(database_url, extra={}, **SEEDED))
    assert rates(fleet) == rates(fleet, "other") == DEFAULTS | SEEDED
    Books(fleet.platform.database).do(lambda ledger: ledger.set_config("credits_per_turn", 9))
    fleet.platform.close()
    again = served(make_fleet(database_url, extra={}, credits_per_turn=4))
    assert rates(again) == DEFAULTS | {"credits_per_turn": 9}
    assert rates(again, "other") == DEFAULTS | {"credits_per_turn": 4}
    again.platform.close()
    assert rates(served(make_fleet(database_url, extra={})), "other") == DEFAULTS


def test_a_command_with_settings_of_its_own_changes_no_rate(
    database_url: str, make_fleet: Callable[..., Fleet]
) -> None:
    served(make_fleet(database_url, extra={}, credits_per_turn=4)).platform.close()
    assert rates(make_fleet(database_url, extra={}, credits_per_turn=0)) == DEFAULTS | {"credits_per_turn": 4}

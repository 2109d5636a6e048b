"""A fleet with the product's own tools alone, and its books."""

from collections.abc import Callable

import pytest

from rookery.core.actor import Actor
from rookery.identity.store import IdentityStore
from tests.ledger.books import Books
from tests.platform_fixtures import Fleet


@pytest.fixture
def fleet(database_url: str, make_fleet: Callable[..., Fleet]) -> Fleet:
    return make_fleet(database_url, extra={})


@pytest.fixture
def books(fleet: Fleet) -> Books:
    return Books(fleet.platform.database)


@pytest.fixture
def stranger(fleet: Fleet) -> Actor:
    """The owner of another tenant."""
    fleet.platform.database.direct(lambda tx: IdentityStore(tx, "other").set_up(), write=True)
    return fleet.actor(tenant="other", as_owner=True)

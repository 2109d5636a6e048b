"""A fleet, and the owner of another tenant on the same database."""

import pytest

from rookery.core.actor import Actor
from rookery.identity.store import IdentityStore
from tests.platform_fixtures import Fleet
from tests.platform_fixtures import prepared_database_url as database_url

__all__ = ["database_url"]


@pytest.fixture
def stranger(fleet: Fleet) -> Actor:
    """The owner of another tenant."""
    fleet.platform.database.direct(lambda tx: IdentityStore(tx, "other").set_up(), write=True)
    return fleet.actor(tenant="other", as_owner=True)

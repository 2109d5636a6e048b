"""People with other roles, for pages that offer less to them."""

from rookery.identity.people import People
from tests.web.guest import Guest


def person(owner: Guest, role: str, name: str = "Vera") -> Guest:
    """Somebody with this role, signed in at the same console."""
    database = owner.fleet.platform.database
    database.direct(lambda tx: People(tx, "default").add(name, role, None), write=True)
    return owner.signed_in(name)

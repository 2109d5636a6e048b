"""What the tests of agents share: other people, another tenant, and tools that no list has."""

from typing import Any

from rookery.core.tool import Tool
from rookery.db.tx import Tx
from rookery.identity.people import People
from rookery.identity.store import IdentityStore
from tests.web.guest import Guest


def person(owner: Guest, role: str) -> Guest:
    """Somebody with this role, signed in."""
    database = owner.fleet.platform.database
    database.direct(lambda tx: People(tx, "default").add(f"pat the {role}", role, None), write=True)
    return owner.signed_in(f"pat the {role}")


def agent_elsewhere(owner: Guest) -> str:
    """The id of an agent of another tenant."""

    def make(tx: Tx) -> str:
        store = IdentityStore(tx, "other")
        store.set_up()
        return store.create_agent("mallory", None).id

    return owner.fleet.platform.database.direct(make, write=True)


async def asked(guest: Guest, tool: Tool, /, **arguments: Any) -> Any:
    """The structured answer of a tool that is in no list, called by the owner."""
    fleet = guest.fleet
    return (await fleet.platform.calls.run(fleet.owner, tool, arguments)).structured


async def call(guest: Guest, tool: str, /, **arguments: Any) -> Any:
    """The structured answer of a tool, called by the owner."""
    fleet = guest.fleet
    return (await fleet.platform.calls.call(fleet.owner, tool, arguments)).structured

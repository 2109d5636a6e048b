"""Two servers on one database agree, at once and also about sessions that are open already."""

import asyncio
import threading
import time
from collections.abc import Callable

import pytest

from rookery.core.errors import PermissionDenied, Unauthorized
from rookery.identity.resolve import Binding
from rookery.server.session import Session, open_session
from tests.identity.callers import own
from tests.platform_fixtures import Fleet

LIMIT_S = 10


@pytest.fixture
def pair(database_url: str, make_fleet: Callable[..., Fleet]) -> tuple[Fleet, Fleet]:
    return make_fleet(database_url), make_fleet(database_url)


async def test_what_is_granted_and_revoked_in_one_counts_in_the_other(pair: tuple[Fleet, Fleet]) -> None:
    here, there = pair
    made = await own(here, "grant_tool", agent="default", tool="grant_credits", without_approval=True)
    await there.call(there.actor(), "grant_credits", wallet_address="w", amount=1)
    await own(there, "revoke_grant", id=made.id)
    with pytest.raises(PermissionDenied):
        await here.call(here.actor(), "grant_credits")


async def test_what_is_made_in_one_is_known_in_the_other(pair: tuple[Fleet, Fleet]) -> None:
    here, there = pair
    await own(here, "create_agent", name="ada", permissions=["ping"])
    await own(there, "create_project", slug="shop")
    await own(there, "set_profile_tools", profile="judge", allowed=["ping"])
    assert there.names(there.actor(agent="ada")) == {"ping"}
    assert here.names(here.actor(project="shop", profile="judge")) == {"ping"}
    made = await own(here, "create_token", name="t", agent="ada")
    assert there.actor(token=made.secret).agent_name == "ada"
    await own(there, "revoke_token", id=made.id)
    with pytest.raises(Unauthorized):
        here.actor(token=made.secret)


async def has_it(session: Session, name: str, wanted: bool) -> None:
    """Wait until an open session of the other server sees the change; on PostgreSQL a notification is under way."""
    limit = time.monotonic() + LIMIT_S
    while (name in {tool.name for tool in await session.tools()}) != wanted:
        assert time.monotonic() < limit
        await asyncio.sleep(0.005)


async def test_an_open_session_of_the_other_server_follows(pair: tuple[Fleet, Fleet]) -> None:
    here, there = pair
    session = await open_session(there.platform, Binding())
    await has_it(session, "grant_credits", False)
    made = await own(here, "grant_tool", agent="default", tool="grant_credits", without_approval=True)
    await has_it(session, "grant_credits", True)
    await there.call(await session.actor(), "grant_credits", wallet_address="w", amount=1)
    await own(here, "revoke_grant", id=made.id)
    await has_it(session, "grant_credits", False)


def test_servers_that_start_at_once_on_an_empty_database_make_one_tenant(
    database_url: str, make_fleet: Callable[..., Fleet]
) -> None:
    made: list[Fleet] = []
    failed: list[BaseException] = []
    gate = threading.Barrier(4)

    def start() -> None:
        gate.wait(LIMIT_S)
        try:
            made.append(make_fleet(database_url))
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=start) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(LIMIT_S)
    assert failed == []
    assert len({fleet.owner.subject for fleet in made}) == 1
    assert len({fleet.actor().agent for fleet in made}) == 1

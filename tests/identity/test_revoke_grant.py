import asyncio

import pytest

from rookery.core.actor import Actor
from rookery.core.errors import NotFound, PermissionDenied
from rookery.identity.resolve import Binding
from rookery.server.session import open_session
from tests.identity.callers import agents_are_refused, fails_with, is_not_found, own
from tests.platform_fixtures import Fleet


async def test_an_agent_cannot_revoke_grants(fleet: Fleet) -> None:
    await agents_are_refused(fleet, "revoke_grant", id="grt-1")


async def test_the_grants_of_another_tenant_are_not_found(fleet: Fleet, stranger: Actor) -> None:
    theirs = await fleet.call(stranger, "grant_tool", agent="default", tool="grant_credits")
    await is_not_found(fleet, fleet.owner, "revoke_grant", id=theirs.id)
    assert "grant_credits" in fleet.names(fleet.actor(tenant="other"))


async def test_a_revoked_grant_counts_no_more_from_the_next_call_on(fleet: Fleet) -> None:
    made = await own(fleet, "grant_tool", agent="default", tool="grant_credits", without_approval=True)
    session = await open_session(fleet.platform, Binding())
    await fleet.call(await session.actor(), "grant_credits", wallet_address="w", amount=1)
    done = await own(fleet, "revoke_grant", id=made.id)
    assert (done.id, done.done) == (made.id, "revoked")
    with pytest.raises(PermissionDenied) as caught:
        await fleet.call(await session.actor(), "grant_credits")
    assert caught.value.layer == "role"
    assert "grant_credits" not in {tool.name for tool in await session.tools()}


async def test_of_two_grants_of_one_tool_the_other_stays(fleet: Fleet) -> None:
    first = await own(fleet, "grant_tool", agent="default", tool="grant_credits")
    await own(fleet, "grant_tool", agent="default", tool="grant_credits")
    await own(fleet, "revoke_grant", id=first.id)
    assert "grant_credits" in fleet.names(fleet.actor())


async def test_a_grant_is_revoked_once_also_by_many_at_once(fleet: Fleet) -> None:
    made, owner = await own(fleet, "grant_tool", agent="default", tool="ping"), fleet.owner
    calls = [fleet.call(owner, "revoke_grant", id=made.id) for _ in range(5)]
    ends = await asyncio.gather(*calls, return_exceptions=True)
    assert sorted(type(end).__name__ for end in ends) == ["Done"] + ["NotFound"] * 4
    await fails_with(NotFound, fleet, "revoke_grant", id=made.id)
    await fails_with(NotFound, fleet, "revoke_grant", id="grt-never")

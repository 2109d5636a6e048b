import asyncio
import time
from datetime import UTC, datetime, timedelta

import pytest

from rookery.core.actor import Actor
from rookery.core.errors import InvalidParams, NotFound, PermissionDenied
from rookery.identity.resolve import Binding
from rookery.server.session import open_session
from tests.identity.callers import agents_are_refused, fails_with, is_not_found, own
from tests.identity.rows import end_in_the_past
from tests.platform_fixtures import Fleet

LIMIT_S = 10


def in_ms(milliseconds: int) -> str:
    return (datetime.now(UTC) + timedelta(milliseconds=milliseconds)).isoformat()


async def test_an_agent_cannot_grant_anything(fleet: Fleet) -> None:
    await agents_are_refused(fleet, "grant_tool", agent="default", tool="grant_credits")
    assert "grant_credits" not in fleet.names(fleet.actor())


async def test_the_agents_of_another_tenant_are_not_found(fleet: Fleet, stranger: Actor) -> None:
    eve = await fleet.call(stranger, "create_agent", name="eve")
    await is_not_found(fleet, fleet.owner, "grant_tool", agent=eve.id, tool="grant_credits")
    assert fleet.actor(tenant="other", agent="eve").grants == frozenset()


async def test_a_tool_for_people_cannot_be_granted(fleet: Fleet) -> None:
    error = await fails_with(InvalidParams, fleet, "grant_tool", agent="default", tool="create_project")
    assert "create_project is for people" in error.message
    assert (await own(fleet, "list_grants")).grants == []


async def test_a_grant_opens_one_tool_for_one_agent_privileged_or_not(fleet: Fleet) -> None:
    await own(fleet, "create_agent", name="ada", permissions=["ping"])
    made = await own(
        fleet, "grant_tool", agent="ada", tool="corvid_grant_credits", reason="payday", without_approval=True
    )
    assert (made.tool, made.reason, made.expires_at, made.revoked) == ("grant_credits", "payday", None, False)
    assert (made.without_approval, made.standing) == (True, False)
    assert fleet.names(fleet.actor(agent="ada")) == {"ping", "grant_credits"}
    paid = await fleet.call(fleet.actor(agent="ada"), "grant_credits", wallet_address="w", amount=1)
    assert paid.available == 1
    assert "grant_credits" not in fleet.names(fleet.actor())
    await own(fleet, "grant_tool", agent="ada", tool="get_issue")
    assert "get_issue" in fleet.names(fleet.actor(agent="ada"))


async def test_a_grant_holds_under_a_profile_and_does_not_reach_beyond_a_scope_file(fleet: Fleet) -> None:
    await own(fleet, "grant_tool", agent="default", tool="grant_credits")
    assert "grant_credits" in fleet.names(fleet.actor(profile="judge"))
    assert "grant_credits" not in fleet.names(fleet.actor(scope_file=frozenset({"ping"})))
    assert "grant_credits" not in fleet.names(fleet.actor(scheduler=True))


async def test_a_grant_that_is_over_counts_no_more(fleet: Fleet) -> None:
    made = await own(fleet, "grant_tool", agent="default", tool="grant_credits", expires_at=in_ms(60_000))
    assert made.expires_at.endswith("+00:00")
    assert "grant_credits" in fleet.names(fleet.actor())
    end_in_the_past(fleet, "grants", made.id)
    assert "grant_credits" not in fleet.names(fleet.actor())
    with pytest.raises(PermissionDenied):
        await fleet.call(fleet.actor(), "grant_credits")


async def test_a_live_session_loses_the_tool_when_its_time_has_come(fleet: Fleet) -> None:
    await own(fleet, "grant_tool", agent="default", tool="grant_credits", expires_at=in_ms(1000))
    session = await open_session(fleet.platform, Binding())
    limit = time.monotonic() + LIMIT_S
    while "grant_credits" in {tool.name for tool in await session.tools()}:
        assert time.monotonic() < limit
        await asyncio.sleep(0.01)
    with pytest.raises(PermissionDenied):
        await fleet.call(await session.actor(), "grant_credits")


async def test_a_grant_needs_a_known_tool_a_known_agent_and_an_end_to_come(fleet: Fleet) -> None:
    await fails_with(NotFound, fleet, "grant_tool", agent="default", tool="nope")
    await fails_with(NotFound, fleet, "grant_tool", agent="nobody", tool="ping")
    await fails_with(InvalidParams, fleet, "grant_tool", agent="default", tool="ping", expires_at=in_ms(-1000))
    await fails_with(InvalidParams, fleet, "grant_tool", agent="default", tool="ping", expires_at="2999-01-01T00:00:00")
    await fails_with(InvalidParams, fleet, "grant_tool", agent="default", tool="ping", expires_at="tomorrow")
    assert (await own(fleet, "list_grants")).grants == []

import asyncio

import pytest

from rookery.core.actor import Actor
from rookery.core.errors import InvalidParams, PermissionDenied
from tests.identity.callers import agents_are_refused, fails_with, own
from tests.platform_fixtures import Fleet


async def test_an_agent_cannot_change_profiles(fleet: Fleet) -> None:
    await agents_are_refused(fleet, "set_profile_tools", profile="worker", disallowed=[])


async def test_allowed_narrows_and_never_adds(fleet: Fleet) -> None:
    worker = {"profile": "worker", "issue": await fleet.issue()}
    before = fleet.names(fleet.actor(**worker))
    await own(fleet, "set_profile_tools", profile="worker", allowed=["get_issue", "approve_phase", "web_search"])
    assert fleet.names(fleet.actor(**worker)) == before & {"get_issue", "approve_phase", "web_search"} == {"get_issue"}
    with pytest.raises(PermissionDenied) as caught:
        await fleet.call(fleet.actor(**worker), "ping")
    assert caught.value.layer == "allowed"
    await own(fleet, "set_profile_tools", profile="worker", allowed=[])
    assert fleet.names(fleet.actor(**worker)) == set()
    await own(fleet, "set_profile_tools", profile="worker", allowed="default")
    assert fleet.names(fleet.actor(**worker)) == before


async def test_disallowed_takes_from_every_agent_of_the_profile_even_what_was_granted(fleet: Fleet) -> None:
    await own(fleet, "grant_tool", agent="default", tool="ping")
    await own(fleet, "set_profile_tools", profile="worker", disallowed=["ping"])
    with pytest.raises(PermissionDenied) as caught:
        await fleet.call(fleet.actor(profile="worker"), "ping")
    assert caught.value.layer == "disallowed"
    assert "ping" in fleet.names(fleet.actor())
    assert "ping" in fleet.names(fleet.actor(profile="judge"))
    await own(fleet, "set_profile_tools", profile="worker", disallowed=[])
    assert "ping" in fleet.names(fleet.actor(profile="worker"))


async def test_losing_a_critical_tool_is_warned_of_in_either_way(fleet: Fleet) -> None:
    by_name = await own(fleet, "set_profile_tools", profile="judge", disallowed=["get_issue"])
    assert by_name.warnings == ["judge cannot do its work without get_issue"]
    by_omission = await own(fleet, "set_profile_tools", profile="judge", disallowed=[], allowed=["get_issue"])
    lost = sorted(fleet.platform.registry.critical("judge") - {"get_issue"})
    assert "approve_phase" in lost
    assert by_omission.warnings == [f"judge cannot do its work without {name}" for name in lost]
    mended = await own(fleet, "set_profile_tools", profile="judge", allowed="default")
    assert (mended.allowed, mended.disallowed, mended.warnings) == (None, None, [])


async def test_what_is_not_named_stays_also_when_two_people_change_a_profile_at_once(fleet: Fleet) -> None:
    owner = fleet.owner
    for kind in ("worker", "judge", "scanner", "planner"):
        await asyncio.gather(
            fleet.call(owner, "set_profile_tools", profile=kind, allowed=["ping"]),
            fleet.call(owner, "set_profile_tools", profile=kind, disallowed=["get_issue"]),
        )
    for profile in (await own(fleet, "list_profiles")).profiles:
        if profile.profile in ("worker", "judge", "scanner", "planner"):
            assert (profile.allowed, profile.disallowed) == (["ping"], ["get_issue"])


async def test_profiles_of_another_tenant_are_its_own(fleet: Fleet, stranger: Actor) -> None:
    await fleet.call(stranger, "set_profile_tools", profile="worker", allowed=[])
    assert "get_issue" in fleet.names(fleet.actor(profile="worker"))
    assert fleet.names(fleet.actor(tenant="other", profile="worker")) == set()


async def test_there_are_seven_profiles_and_no_eighth(fleet: Fleet) -> None:
    error = await fails_with(InvalidParams, fleet, "set_profile_tools", profile="boss", allowed=[])
    assert "worker" in (error.hint or "")
    await fails_with(InvalidParams, fleet, "set_profile_tools", profile="judge", allowed=["nope"])

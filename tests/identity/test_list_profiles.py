from rookery.core.actor import Actor
from rookery.core.tool import PROFILES
from tests.identity.callers import agents_are_refused, own
from tests.platform_fixtures import Fleet


async def test_an_agent_does_not_see_the_profiles(fleet: Fleet) -> None:
    await agents_are_refused(fleet, "list_profiles")


async def test_the_seven_profiles_are_listed_with_what_was_set(fleet: Fleet, stranger: Actor) -> None:
    await fleet.call(stranger, "set_profile_tools", profile="judge", allowed=[])
    await own(fleet, "set_profile_tools", profile="worker", disallowed=["corvid_delete_everything"])
    profiles = {profile.profile: profile for profile in (await own(fleet, "list_profiles")).profiles}
    assert list(profiles) == list(PROFILES.values())
    assert profiles["worker"].disallowed == ["delete_everything"]
    assert (profiles["judge"].allowed, profiles["judge"].disallowed, profiles["judge"].warnings) == (None, None, [])

from rookery.core.actor import Actor
from tests.identity.callers import agents_are_refused, own
from tests.platform_fixtures import Fleet


async def test_an_agent_does_not_see_the_settings_of_others(fleet: Fleet) -> None:
    await agents_are_refused(fleet, "list_agent_settings")


async def test_every_agent_of_the_tenant_is_listed_and_no_other(fleet: Fleet, stranger: Actor) -> None:
    await fleet.call(stranger, "create_agent", name="eve")
    await own(fleet, "create_agent", name="ada", permissions=["corvid_ping"])
    await own(fleet, "assign_bundle", bundle="devops", agent="ada")
    listed = {agent.name: agent for agent in (await own(fleet, "list_agent_settings")).agents}
    assert set(listed) == {"ada", "default"}
    assert (listed["ada"].permissions, listed["ada"].bundles) == (["ping"], ["preset-devops"])
    theirs = (await fleet.call(stranger, "list_agent_settings")).agents
    assert {agent.name for agent in theirs} == {"default", "eve"}

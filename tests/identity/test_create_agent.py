import asyncio

from rookery.core.actor import Actor
from rookery.core.errors import Conflict, InvalidParams
from tests.identity.callers import agents_are_refused, fails_with, own
from tests.platform_fixtures import Fleet


async def test_an_agent_cannot_create_agents(fleet: Fleet) -> None:
    await agents_are_refused(fleet, "create_agent", name="minion")
    assert "minion" not in {agent.name for agent in (await own(fleet, "list_agent_settings")).agents}


async def test_a_new_agent_has_the_default_set_and_no_limits(fleet: Fleet) -> None:
    ada = await own(fleet, "create_agent", name="ada")
    assert (ada.permissions, ada.bundles, ada.mode, ada.trust) == (None, [], "autonomy", None)
    assert ada.restrict_networking is False
    assert fleet.actor(agent="ada").agent == fleet.actor(agent=ada.id).agent == ada.id
    assert fleet.names(fleet.actor(agent="ada")) == fleet.names(fleet.actor())


async def test_a_name_is_taken_whatever_its_case_but_not_across_tenants(fleet: Fleet, stranger: Actor) -> None:
    await own(fleet, "create_agent", name="Ada")
    for name in ("Ada", "ada", "ADA"):
        await fails_with(Conflict, fleet, "create_agent", name=name)
    assert (await fleet.call(stranger, "create_agent", name="ada")).name == "ada"
    assert fleet.actor(agent="aDA").agent_name == "Ada"


async def test_of_many_who_want_the_same_name_at_once_one_gets_it(fleet: Fleet) -> None:
    owner, spellings = fleet.owner, ["ada", "Ada", "aDa", "adA", "ADa", "AdA", "aDA", "ADA"]
    calls = [fleet.call(owner, "create_agent", name=name) for name in spellings]
    ends = await asyncio.gather(*calls, return_exceptions=True)
    assert sorted(type(end).__name__ for end in ends) == ["AgentSettings"] + ["Conflict"] * 7
    found = [agent.name for agent in (await own(fleet, "list_agent_settings")).agents]
    assert len([name for name in found if name.lower() == "ada"]) == 1


async def test_a_name_must_be_one_and_so_must_the_tools(fleet: Fleet) -> None:
    for name in ("", " ", "-x", "a b", "ä", "a/b", "x" * 65, "a\n", "'; DROP TABLE agents"):
        await fails_with(InvalidParams, fleet, "create_agent", name=name)
    await fails_with(InvalidParams, fleet, "create_agent", name="ada", permissions=["no_such_tool"])
    await fails_with(InvalidParams, fleet, "create_agent", name="ada", role="owner")
    assert [agent.name for agent in (await own(fleet, "list_agent_settings")).agents] == ["default"]

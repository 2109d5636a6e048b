import asyncio

from rookery.core.actor import Actor
from rookery.core.errors import InvalidParams, NotFound
from tests.identity.callers import agents_are_refused, fails_with, is_not_found, own
from tests.platform_fixtures import Fleet


async def test_an_agent_cannot_give_itself_a_bundle(fleet: Fleet) -> None:
    await agents_are_refused(fleet, "assign_bundle", bundle="devops", agent="default")


async def test_bundles_agents_and_projects_of_another_tenant_are_not_found(fleet: Fleet, stranger: Actor) -> None:
    eve = await fleet.call(stranger, "create_agent", name="eve")
    shop = await fleet.call(stranger, "create_project", slug="shop")
    theirs = await fleet.call(stranger, "save_bundle", name="theirs", tools=["get_issue"])
    await is_not_found(fleet, fleet.owner, "assign_bundle", bundle="devops", agent=eve.id)
    await is_not_found(fleet, fleet.owner, "assign_bundle", bundle="devops", project=shop.id)
    await is_not_found(fleet, fleet.owner, "assign_bundle", bundle=theirs.id, agent="default")
    assert fleet.actor(tenant="other", agent="eve", project="shop").bundle_tools == frozenset()


async def test_a_bundle_adds_and_never_takes_the_default_set_away(fleet: Fleet) -> None:
    usual = fleet.names(fleet.actor())
    await own(fleet, "save_bundle", name="tracker", tools=["get_issue"])
    held = await own(fleet, "assign_bundle", bundle="tracker", agent="default")
    assert len(held.bundles) == 1
    assert fleet.names(fleet.actor()) == usual | {"get_issue"}
    await own(fleet, "assign_bundle", bundle="tracker", agent="default", remove=True)
    assert fleet.names(fleet.actor()) == usual


async def test_an_agents_bundle_counts_beside_its_list_and_its_profile(fleet: Fleet) -> None:
    await own(fleet, "create_agent", name="ada", permissions=["ping"])
    await own(fleet, "assign_bundle", bundle="Researcher", agent="ada")
    researching = {"web_search", "deep_research", "save_memory", "recall_memory"}
    assert fleet.names(fleet.actor(agent="ada")) == researching | {"ping"}
    await own(fleet, "update_agent", agent="ada", permissions=[])
    assert fleet.names(fleet.actor(agent="ada")) == researching
    judge = fleet.names(fleet.actor(profile="judge"))
    await own(fleet, "update_agent", agent="ada", permissions="default")
    assert fleet.names(fleet.actor(agent="ada", profile="judge")) == judge | researching


async def test_a_projects_bundle_reaches_its_agents_but_not_those_with_a_list(fleet: Fleet) -> None:
    await own(fleet, "create_project", slug="shop")
    await own(fleet, "create_agent", name="listed", permissions=["ping"])
    await own(fleet, "create_agent", name="barred", permissions=[])
    await own(fleet, "save_bundle", name="tracker", tools=["get_issue"], prompt="Read the issue first.")
    await own(fleet, "assign_bundle", bundle="tracker", project="shop")
    assert "get_issue" in fleet.names(fleet.actor(project="shop"))
    assert "get_issue" not in fleet.names(fleet.actor())
    assert fleet.names(fleet.actor(agent="listed", project="shop")) == {"ping"}
    assert fleet.names(fleet.actor(agent="barred", project="shop")) == set()
    assert fleet.actor(agent="listed", project="shop").prompt_additions == "Read the issue first."


async def test_prompts_come_in_the_order_in_which_the_bundles_were_given(fleet: Fleet) -> None:
    for name in ("one", "two", "three", "four"):
        await own(fleet, "save_bundle", name=name, tools=[], prompt=name)
    for name in ("one", "two", "three"):
        await own(fleet, "assign_bundle", bundle=name, agent="default")
    await own(fleet, "assign_bundle", bundle="one", agent="default", remove=True)
    for name in ("four", "one", "three"):
        await own(fleet, "assign_bundle", bundle=name, agent="default")
    await own(fleet, "assign_bundle", bundle="two", project="default")
    assert fleet.actor().prompt_additions == "two\n\nthree\n\nfour\n\none"


async def test_giving_twice_or_at_once_gives_once(fleet: Fleet) -> None:
    owner = fleet.owner
    names = ["devops", "preset-devops", "DevOps"] * 3
    given = await asyncio.gather(*(fleet.call(owner, "assign_bundle", bundle=name, agent="default") for name in names))
    assert all(held.bundles == ["preset-devops"] for held in given)


async def test_the_holder_is_an_agent_or_a_project_and_both_are_known(fleet: Fleet) -> None:
    await fails_with(InvalidParams, fleet, "assign_bundle", bundle="devops")
    await fails_with(InvalidParams, fleet, "assign_bundle", bundle="devops", agent="default", project="default")
    await fails_with(NotFound, fleet, "assign_bundle", bundle="devops", agent="nobody")
    await fails_with(NotFound, fleet, "assign_bundle", bundle="devops", project="nowhere")
    await fails_with(NotFound, fleet, "assign_bundle", bundle="no such bundle", agent="default")

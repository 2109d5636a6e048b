import asyncio

import pytest

from rookery.core.actor import Actor
from rookery.core.errors import InvalidParams, NotFound
from rookery.identity.resolve import Binding, TokenIdentity
from rookery.server.session import open_session
from tests.identity.callers import agents_are_refused, fails_with, is_not_found, own
from tests.platform_fixtures import Fleet


@pytest.fixture
async def shop(fleet: Fleet) -> str:
    """The id of a project that is open to everyone, beside the default one; there are ada and bob."""
    for name in ("ada", "bob"):
        await own(fleet, "create_agent", name=name)
    return (await own(fleet, "create_project", slug="shop")).id


def refused(fleet: Fleet, **binding: object) -> NotFound:
    with pytest.raises(NotFound) as caught:
        fleet.actor(**binding)
    return caught.value


async def members(fleet: Fleet, slug: str) -> list[str] | None:
    (found,) = [each for each in (await own(fleet, "list_projects")).projects if each.slug == slug]
    return found.members


async def test_an_agent_cannot_say_who_may_enter(fleet: Fleet) -> None:
    await agents_are_refused(fleet, "set_project_members", project="default", agents="everyone")


async def test_an_agent_without_a_role_is_told_what_it_would_be_told_of_a_project_that_never_was(
    fleet: Fleet, shop: str
) -> None:
    await own(fleet, "set_project_members", project="shop", agents=["ada"])
    for binding in ({"project": shop}, {"project": "shop"}, {"project_slug": "SHOP"}):
        closed = refused(fleet, agent="bob", **binding)
        (wanted,) = binding.values()
        never = refused(fleet, agent="bob", project="never")
        assert closed.message == never.message.replace("never", wanted) == f"there is no project {wanted}"
        assert closed.hint == never.hint == "known: default"
    assert "shop" in (refused(fleet, agent="ada", project="never").hint or "")
    assert fleet.actor(agent="ada", project="shop").project == shop


async def test_nothing_changes_when_a_project_or_agent_is_unknown(fleet: Fleet, shop: str, stranger: Actor) -> None:
    await own(fleet, "set_project_members", project="shop", agents=["ada"])
    eve = await fleet.call(stranger, "create_agent", name="eve")
    for agents in (["bob", "nobody"], ["bob", eve.id], ["bob", "eve"]):
        await is_not_found(fleet, fleet.owner, "set_project_members", project="shop", agents=agents)
    await fails_with(NotFound, fleet, "set_project_members", project="nowhere", agents="everyone")
    for wrong in ("ada", "", None, [""], ["a" * 101], [5], {"ada": 1}):
        await fails_with(InvalidParams, fleet, "set_project_members", project="shop", agents=wrong)
    await fails_with(InvalidParams, fleet, "set_project_members", project="shop")
    assert await members(fleet, "shop") == ["ada"]


async def test_projects_of_another_tenant_are_not_found_and_members_stay_apart(
    fleet: Fleet, shop: str, stranger: Actor
) -> None:
    theirs = await fleet.call(stranger, "create_project", slug="shop")
    await is_not_found(fleet, stranger, "set_project_members", project=shop, agents=[])
    await fleet.call(stranger, "set_project_members", project="shop", agents=[])
    assert await members(fleet, "shop") is None
    assert fleet.actor(agent="ada").closed == frozenset()
    assert fleet.actor(tenant="other").closed == {theirs.id}


async def test_a_project_is_open_until_it_is_closed_and_can_be_opened_again(fleet: Fleet, shop: str) -> None:
    assert (await members(fleet, "shop"), fleet.actor(agent="bob").closed) == (None, frozenset())
    ada = fleet.actor(agent="ada").subject
    closed = await own(fleet, "set_project_members", project=shop, agents=["bob", ada, "ADA"])
    assert closed.members == await members(fleet, "shop") == ["ada", "bob"]
    nobody = await own(fleet, "set_project_members", project="shop", agents=[])
    assert nobody.members == await members(fleet, "shop") == []
    assert fleet.actor(agent="ada").closed == {shop}
    opened = await own(fleet, "set_project_members", project="shop", agents="everyone")
    assert (opened.members, fleet.actor(agent="ada").closed) == (None, frozenset())
    assert fleet.actor(agent="ada", project="shop").project == shop


async def test_people_have_a_role_everywhere_and_outsiders_only_in_open_projects(fleet: Fleet, shop: str) -> None:
    token = TokenIdentity(tenant="default", client="cli", subject="remote", scopes=frozenset({"*"}), expires_ms=2**50)
    assert fleet.actor(identity=token, project="shop").closed == frozenset()
    await own(fleet, "set_project_members", project="shop", agents=["ada"])
    assert fleet.actor(as_owner=True, project="shop").closed == frozenset()
    assert fleet.actor(identity=token).closed == {shop}
    assert refused(fleet, identity=token, project="shop").hint == "known: default"


async def test_a_token_does_not_open_what_is_closed_to_its_agent(fleet: Fleet, shop: str) -> None:
    secret = (await own(fleet, "create_token", name="laptop", agent="bob")).secret
    await own(fleet, "set_project_members", project="shop", agents=["ada"])
    assert refused(fleet, token=secret, project="shop").message == "there is no project shop"
    assert fleet.actor(token=secret).closed == {shop}


async def test_whoever_names_no_project_needs_a_role_in_the_default_one(fleet: Fleet, shop: str) -> None:
    await own(fleet, "set_project_members", project="default", agents=["ada"])
    assert refused(fleet, agent="bob").message == "there is no project default"
    assert fleet.actor(agent="bob", project="shop").project == shop


async def test_a_live_session_loses_the_project_with_its_next_call_and_gets_it_back(fleet: Fleet, shop: str) -> None:
    here = await open_session(fleet.platform, Binding(agent="bob", project="shop"))
    elsewhere = await open_session(fleet.platform, Binding(agent="bob"))
    assert (await here.actor()).project == shop
    assert (await elsewhere.actor()).closed == frozenset()
    await own(fleet, "set_project_members", project="shop", agents=["ada"])
    for _ in range(2):
        with pytest.raises(NotFound, match="there is no project shop"):
            await here.actor()
    assert (await elsewhere.actor()).closed == {shop}
    await own(fleet, "set_project_members", project="shop", agents=["ada", "bob"])
    assert (await here.actor()).project == shop
    assert (await elsewhere.actor()).closed == frozenset()


async def test_of_two_people_who_close_a_project_at_once_one_wins_whole(fleet: Fleet, shop: str) -> None:
    owner = fleet.owner
    await asyncio.gather(
        fleet.call(owner, "set_project_members", project="shop", agents=["ada"]),
        fleet.call(owner, "set_project_members", project="shop", agents=["bob", "default"]),
    )
    assert await members(fleet, "shop") in (["ada"], ["bob", "default"])


async def test_an_explanation_tells_the_owner_that_the_agent_has_no_role(fleet: Fleet, shop: str) -> None:
    await own(fleet, "set_project_members", project="shop", agents=["ada"])
    error = await fails_with(NotFound, fleet, "explain_access", tool="ping", agent="bob", project="shop")
    assert (error.message, error.hint) == (
        "the agent bob has no role in the project shop",
        "set_project_members lets it in",
    )
    assert (await own(fleet, "explain_access", tool="ping", agent="ada", project="shop")).outcome == "allow"


async def test_names_that_no_database_can_hold_are_not_found(fleet: Fleet) -> None:
    for name in ("a\0b", "\udcff"):
        assert refused(fleet, project=name).hint == "known: default"
        assert refused(fleet, agent=name).hint == "known: default"

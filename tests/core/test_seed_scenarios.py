"""The scenarios and invariants of the first seed, spoken to the platform as an agent would."""

import itertools

import pytest

from rookery.core.actor import Actor
from rookery.core.errors import NotFound, PermissionDenied, RookeryError
from rookery.core.tool import PROFILES
from rookery.identity.resolve import Resolver
from tests.core.seed_names import ADDITIONS, CONDITIONAL, DEFAULT_SET, MATRIX, PRIVILEGED, SCHEDULER_BLOCKED, UNSERVED
from tests.platform_fixtures import Fleet


async def refusing_layer(fleet: Fleet, actor: Actor, name: str) -> str | None:
    """The layer that refuses the call, None if it is let through. Whether its arguments are right does not matter."""
    try:
        await fleet.call(actor, name)
    except PermissionDenied as error:
        return error.layer
    except NotFound as error:
        return error.layer
    except RookeryError:
        return None
    return None


async def test_a_default_agent_has_the_default_set_without_what_is_not_set_up(fleet: Fleet) -> None:
    agent = fleet.actor()
    assert agent.permissions is None
    assert fleet.names(agent) == (DEFAULT_SET - set(UNSERVED)) | ADDITIONS
    for name in PRIVILEGED:
        assert await refusing_layer(fleet, agent, name) == "role"


async def test_an_explicit_list_is_exactly_that_privileged_tools_included(fleet: Fleet) -> None:
    names = ["corvid_send_message", "corvid_grant_credits"]
    await fleet.call(fleet.owner, "create_agent", name="ada", permissions=names)
    ada = fleet.actor(agent="ada")
    assert fleet.names(ada) == {"send_message", "grant_credits"}
    assert await refusing_layer(fleet, ada, "grant_credits") is None
    assert await refusing_layer(fleet, ada, "ping") == "role"


async def test_an_empty_list_means_no_tools_at_all(fleet: Fleet) -> None:
    await fleet.call(fleet.owner, "create_agent", name="ada", permissions=[])
    ada = fleet.actor(agent="ada")
    assert fleet.names(ada) == set()
    assert await refusing_layer(fleet, ada, "ping") == "role"


async def test_a_scheduler_session_never_has_the_eight(fleet: Fleet) -> None:
    every = [tool.name for tool in fleet.platform.registry]
    await fleet.call(fleet.owner, "create_agent", name="ada", permissions=every)
    sessions = [
        {},
        {"agent": "ada"},
        {"agent": "ada", "source": "web"},
        {"as_owner": True},
        {"as_owner": True, "source": "web"},
    ]
    for session in sessions:
        actor = fleet.actor(scheduler=True, **session)
        assert fleet.names(actor) & SCHEDULER_BLOCKED == set(), session
        for name in SCHEDULER_BLOCKED:
            assert await refusing_layer(fleet, actor, name) in ("role", "scheduler"), (session, name)
    owner = fleet.actor(as_owner=True, source="web", scheduler=True)
    assert {await refusing_layer(fleet, owner, name) for name in SCHEDULER_BLOCKED} == {"scheduler"}


async def test_a_scheduler_session_loses_the_eight_and_nothing_else(fleet: Fleet) -> None:
    attended, scheduled = fleet.actor(), fleet.actor(scheduler=True)
    assert fleet.names(attended) - fleet.names(scheduled) == SCHEDULER_BLOCKED & fleet.names(attended)
    assert fleet.names(scheduled) <= fleet.names(attended)


async def test_a_person_at_the_web_has_every_tool_that_is_set_up(fleet: Fleet) -> None:
    every = {tool.name for tool in fleet.platform.registry}
    person = fleet.actor(as_owner=True, source="web", issue=await fleet.issue())
    assert person.source == "web"
    assert fleet.names(person) == every - set(UNSERVED)
    assert await refusing_layer(fleet, person, "grant_credits") is None


async def test_an_agent_that_claims_to_be_the_web_has_no_more_than_before(fleet: Fleet) -> None:
    claiming, honest = fleet.actor(source="web"), fleet.actor()
    assert claiming.source == "stdio"
    assert fleet.names(claiming) == fleet.names(honest)
    assert await refusing_layer(fleet, claiming, "grant_credits") == "role"
    made = await fleet.call(fleet.owner, "create_token", name="laptop", agent="default")
    assert fleet.actor(token=made.secret, source="web").source == "stdio"
    mine = await fleet.call(fleet.owner, "create_token", name="phone")
    assert fleet.actor(token=mine.secret, source="web").source == "web"


async def test_all_tools_need_a_person_whatever_the_session_leaves_out(fleet: Fleet) -> None:
    bare = fleet.actor()
    assert (bare.kind, bare.agent_name) == ("agent", "default")
    every = {tool.name for tool in fleet.platform.registry} - set(UNSERVED)
    assert fleet.names(bare) < every
    assert fleet.names(fleet.actor(as_owner=True, issue=await fleet.issue())) == every


async def test_a_conditional_tool_is_hidden_without_its_service(fleet: Fleet) -> None:
    fleet.platform.resolver = Resolver(fleet.platform.registry, frozenset())
    for actor, name in itertools.product((fleet.actor(), fleet.owner), CONDITIONAL):
        assert name not in fleet.names(actor)
        with pytest.raises(NotFound) as caught:
            await fleet.call(actor, name)
        assert caught.value.layer == "available"
        assert CONDITIONAL[name] in (caught.value.hint or "")


async def test_the_conditional_tools_are_there_with_their_services(served_fleet: Fleet) -> None:
    agent = served_fleet.actor()
    assert served_fleet.names(agent) == DEFAULT_SET | ADDITIONS
    for name in CONDITIONAL:
        assert await refusing_layer(served_fleet, agent, name) is None


async def test_a_call_out_of_scope_is_denied_with_layer_and_hint(fleet: Fleet) -> None:
    with pytest.raises(PermissionDenied) as caught:
        await fleet.call(fleet.actor(), "grant_credits")
    told = caught.value.as_dict()
    assert (told["code"], told["layer"]) == ("PERMISSION_DENIED", "role")
    assert "grant_tool" in str(told["hint"])


async def test_an_owner_grant_exposes_a_privileged_tool_and_the_default_never_does(fleet: Fleet) -> None:
    arguments = {"agent": "default", "tool": "corvid_grant_credits", "reason": "payday"}
    await fleet.platform.calls.call(fleet.owner, "grant_tool", arguments)
    agent = fleet.actor()
    assert "grant_credits" in fleet.names(agent)
    assert await refusing_layer(fleet, agent, "grant_credits") is None
    assert "credit_config" not in fleet.names(agent)
    await fleet.call(fleet.owner, "create_agent", name="ada")
    assert fleet.names(fleet.actor(agent="ada")) & PRIVILEGED == set()


async def test_a_profile_has_its_column_of_the_matrix_and_nothing_else(fleet: Fleet) -> None:
    registry, issue = fleet.platform.registry, await fleet.issue()
    for letter, profile in PROFILES.items():
        actor = fleet.actor(profile=profile, issue=issue)
        own = {tool.name for tool in registry if profile in tool.profiles and tool.tier != "privileged"}
        assert fleet.names(actor) == own - set(UNSERVED)
        known = {name: letters for name, letters in MATRIX.items() if name in registry}
        assert known
        assert set(known) & fleet.names(actor) == {name for name, letters in known.items() if letter in letters}
        for name in set(known) - own:
            assert await refusing_layer(fleet, actor, name) == "role"


async def test_listing_and_calling_never_disagree(fleet: Fleet) -> None:
    await fleet.call(fleet.owner, "create_agent", name="ada", permissions=["send_message", "grant_credits"])
    await fleet.call(fleet.owner, "update_agent", agent="ada", trust=1)
    actors = [
        fleet.actor(),
        fleet.actor(agent="ada"),
        fleet.actor(agent="ada", scheduler=True),
        fleet.actor(profile="judge", issue=await fleet.issue()),
        fleet.actor(profile="judge"),
        fleet.actor(depth=3),
        fleet.actor(scope_file=frozenset({"ping", "get_issue"})),
        fleet.owner,
    ]
    # Tools for people change things when they are called, so they are only tried by those who may not.
    for actor in actors:
        for tool in fleet.platform.registry:
            if tool.principals == "people" and actor.kind == "human":
                continue
            layer = await refusing_layer(fleet, actor, tool.name)
            assert (layer is None) == (tool.name in fleet.names(actor)), (tool.name, layer)

from collections.abc import Callable

from rookery.core.actor import Actor
from rookery.core.decide import LAYERS
from rookery.core.errors import InvalidParams, NotFound
from tests.core import probe_tools
from tests.identity.callers import agents_are_refused, fails_with, is_not_found, own
from tests.platform_fixtures import Fleet


async def test_an_agent_cannot_ask_about_access(fleet: Fleet) -> None:
    await agents_are_refused(fleet, "explain_access", tool="ping")


async def test_agents_and_projects_of_another_tenant_are_not_found(fleet: Fleet, stranger: Actor) -> None:
    eve = await fleet.call(stranger, "create_agent", name="eve")
    shop = await fleet.call(stranger, "create_project", slug="shop")
    await is_not_found(fleet, fleet.owner, "explain_access", tool="ping", agent=eve.id)
    await is_not_found(fleet, fleet.owner, "explain_access", tool="ping", project=shop.id)


async def test_every_layer_speaks_and_the_first_that_refuses_decides(fleet: Fleet) -> None:
    told = await own(fleet, "explain_access", tool="corvid_grant_credits", scheduler=True)
    assert [verdict.layer for verdict in told.layers] == [name for name, _ in LAYERS]
    assert (told.tool, told.outcome, told.layer) == ("grant_credits", "deny", "role")
    assert [verdict.layer for verdict in told.layers if verdict.outcome != "allow"] == ["role", "scheduler", "gate"]
    await own(fleet, "grant_tool", agent="default", tool="grant_credits")
    granted = await own(fleet, "explain_access", tool="grant_credits")
    assert (granted.outcome, granted.layer) == ("ask", "gate")
    assert {verdict.layer: verdict.reason for verdict in granted.layers}["role"] == "granted by the owner"


async def test_it_says_what_the_agent_would_really_get(fleet: Fleet) -> None:
    await own(fleet, "create_agent", name="ada", permissions=["ping"])
    await own(fleet, "update_agent", agent="ada", mode="ask")
    await own(fleet, "set_profile_tools", profile="judge", disallowed=["get_issue"])
    for agent, profile, scheduler in (("default", None, False), ("ada", None, True), ("default", "judge", False)):
        actor = fleet.actor(agent=agent, profile=profile, scheduler=scheduler)
        for tool in fleet.platform.registry:
            told = await own(
                fleet, "explain_access", tool=tool.name, agent=agent, agent_type=profile, scheduler=scheduler
            )
            assert (told.outcome in ("allow", "ask")) == (tool.name in fleet.names(actor)), tool.name


async def test_it_warns_of_critical_tools_that_the_session_lacks(fleet: Fleet) -> None:
    sound = await own(fleet, "explain_access", tool="ping", agent_type="judge")
    assert sound.warnings == (await own(fleet, "explain_access", tool="ping")).warnings == []
    await own(fleet, "set_profile_tools", profile="judge", disallowed=["approve_phase"])
    (warning,) = (await own(fleet, "explain_access", tool="ping", agent_type="judge")).warnings
    assert warning.startswith("judge cannot do its work without approve_phase: ")
    assert (await own(fleet, "explain_access", tool="ping", agent_type="worker")).warnings == []


async def test_what_the_installation_hides_is_explained_as_hidden(
    database_url: str, make_fleet: Callable[..., Fleet]
) -> None:
    for hiding, outcome in ((False, "allow"), (True, "hide")):
        fleet = make_fleet(database_url, extra={"probes": probe_tools}, hide_unavailable=hiding)
        told = await own(fleet, "explain_access", tool="send_mail")
        assert told.outcome == outcome
        assert ("send_mail" in fleet.names(fleet.actor())) == (not hiding)


async def test_what_is_unknown_is_said_to_be(fleet: Fleet) -> None:
    await fails_with(NotFound, fleet, "explain_access", tool="nope")
    await fails_with(NotFound, fleet, "explain_access", tool="ping", agent="nobody")
    await fails_with(InvalidParams, fleet, "explain_access", tool="ping", agent_type="boss")

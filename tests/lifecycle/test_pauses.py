"""What people pause is held, for as long as they want and for nobody else; agents have no say in it."""

import asyncio
from collections.abc import Callable

import pytest
import sqlalchemy as sa

from rookery.core.actor import Actor
from rookery.core.errors import InvalidParams, NotFound, PermissionDenied
from rookery.core.tool import Tool
from rookery.identity.store import IdentityStore
from rookery.lifecycle.pauses import Pauses
from rookery.lifecycle.pausing import list_pauses, pause_agents, resume_agents
from tests.lifecycle.pause_desk import REASON, PauseDesk
from tests.platform_fixtures import Fleet

pytestmark = pytest.mark.anyio


@pytest.fixture
def fleet(prepared_database_url: str, make_fleet: Callable[..., Fleet]) -> Fleet:
    return make_fleet(prepared_database_url)


@pytest.fixture
async def desk(fleet: Fleet) -> PauseDesk:
    for name in ("ada", "bob"):
        await fleet.call(fleet.owner, "create_agent", name=name)
        await fleet.call(fleet.owner, "create_project", slug=f"{name}s")
    return PauseDesk(fleet)


@pytest.mark.parametrize("tool", [pause_agents, resume_agents, list_pauses])
async def test_no_agent_pauses_resumes_or_looks_however_it_came_by_the_name(desk: PauseDesk, tool: Tool) -> None:
    fleet = desk.fleet
    await desk.pause(agent="bob")
    climber = await fleet.call(fleet.owner, "create_agent", name="climber", permissions=["ping"])
    given = frozenset({tool.name})
    for actor in (fleet.actor(agent="ada"), fleet.actor(agent=climber.id, scope_file=given, source="web")):
        with pytest.raises(PermissionDenied) as caught:
            await fleet.platform.calls.run(actor, tool, {})
        assert caught.value.layer == "principal"
        assert tool.name not in fleet.names(actor)
    assert await desk.listed() == [("agent", "bob", REASON)]


async def test_a_session_of_the_owner_that_nobody_attends_neither_pauses_nor_resumes(desk: PauseDesk) -> None:
    alone = desk.fleet.actor(as_owner=True, scheduler=True)
    for attempt in (desk.pause(alone), desk.resume(alone)):
        with pytest.raises(PermissionDenied):
            await attempt
    assert await desk.listed() == []


async def test_what_the_tenant_does_not_have_is_not_found(desk: PauseDesk) -> None:
    database = desk.fleet.platform.database
    database.direct(lambda tx: IdentityStore(tx, "eves").set_up(), write=True)
    theirs = database.direct(lambda tx: IdentityStore(tx, "eves").create_agent("eve", None), write=True).id
    project = database.direct(lambda tx: IdentityStore(tx, "eves").project("default")).id
    unknown = [{"agent": "nobody"}, {"project": "nowhere"}, {"agent": theirs}, {"project": project}]
    for named in unknown:
        for what in (desk.pause, desk.resume):
            with pytest.raises(NotFound):
                await what(**named)
    with pytest.raises(InvalidParams, match="not both"):
        await desk.pause(agent="ada", project="adas")
    with pytest.raises(InvalidParams):
        await desk.pause(reason="x" * 501)
    assert await desk.listed() == []
    await desk.pause()
    assert desk.holding(project, theirs, tenant="eves") is None, "another tenant's agents go on"


async def test_a_paused_agent_keeps_the_tools_that_observe_and_is_told_why(desk: PauseDesk) -> None:
    fleet = desk.fleet
    free = fleet.actor(agent="ada")
    kept = {tool.name for tool in fleet.platform.registry.listed(free) if tool.tier == "observe"}
    assert {"ping"} < kept < fleet.names(free)
    await desk.pause(agent="ada")
    ada = fleet.actor(agent="ada")
    assert fleet.names(ada) == kept
    await fleet.call(ada, "ping")
    with pytest.raises(PermissionDenied) as caught:
        await fleet.call(ada, "save_memory", key="k", content="c")
    assert (caught.value.layer, caught.value.message) == (
        "paused",
        f"the agent ada was paused by owner: {REASON}",
    )
    assert fleet.names(fleet.actor(agent="bob")) == fleet.names(free)
    assert fleet.names(fleet.owner) > fleet.names(free), "people are never paused"
    await desk.resume(agent="ada")
    assert fleet.names(fleet.actor(agent="ada")) == fleet.names(free)


async def test_a_project_is_paused_for_whoever_works_in_it_and_nowhere_else(desk: PauseDesk) -> None:
    await desk.pause(project="adas")
    assert [desk.scope_of(agent, project) for agent in ("ada", "bob") for project in ("adas", "bobs")] == [
        "project", None, "project", None,
    ]  # fmt: skip


async def test_callers_from_elsewhere_are_held_with_everything_and_with_their_project(desk: PauseDesk) -> None:
    project = desk.fleet.actor(project="adas").project
    await desk.pause(project="adas")
    assert desk.holding(project, None) is not None
    assert desk.holding(desk.fleet.actor(project="bobs").project, None) is None
    outsider = Actor(kind="external", tenant="default", subject="external:x", project=project)
    owner = desk.fleet.actor(as_owner=True, project="adas")
    held = [desk.fleet.platform.database.direct(lambda tx, who=who: Pauses(tx, "default").holding_actor(who))
            for who in (outsider, owner)]  # fmt: skip
    assert [each is not None for each in held] == [True, False]


async def test_whoever_is_under_several_waits_until_the_last_is_taken_back(desk: PauseDesk) -> None:
    await desk.pause(agent="ada")
    await desk.pause(project="adas")
    await desk.pause()
    assert [scope for scope, _, _ in await desk.listed()] == ["all", "project", "agent"]
    assert desk.scope_of("ada", "adas") == "all"
    left = await desk.resume()
    assert (left.changed, [each.scope for each in left.pauses]) == (True, ["project", "agent"])
    assert (desk.scope_of("ada", "adas"), desk.scope_of("bob", "adas")) == ("project", "project")
    await desk.resume(project="adas")
    assert (desk.scope_of("ada", "adas"), desk.scope_of("bob", "adas")) == ("agent", None)
    assert (await desk.resume(agent="ada")).pauses == []
    assert desk.scope_of("ada", "adas") is None


async def test_pausing_and_resuming_twice_changes_nothing_and_keeps_the_first_reason(desk: PauseDesk) -> None:
    assert (await desk.pause(agent="ADA")).changed
    again = await desk.pause(agent="ada", reason="another")
    assert (again.changed, [each.reason for each in again.pauses]) == (False, [REASON])
    assert (await desk.resume(agent="ada")).changed
    assert not (await desk.resume(agent="ada")).changed
    assert not (await desk.resume()).changed


async def test_of_many_who_pause_at_once_one_does(desk: PauseDesk) -> None:
    told = await asyncio.gather(*(desk.pause(reason=f"{number}") for number in range(8)))
    assert [each.changed for each in told].count(True) == 1
    assert len(await desk.listed()) == 1


async def test_a_pause_outlives_the_process_and_is_on_record(
    prepared_database_url: str, make_fleet: Callable[..., Fleet], desk: PauseDesk
) -> None:
    await desk.pause(project="adas")
    later = PauseDesk(make_fleet(prepared_database_url))
    assert await later.listed() == [("project", "adas", REASON)]
    assert later.scope_of("bob", "adas") == "project"
    await later.resume(project="adas")
    written = sa.text("SELECT tool, outcome, kind FROM audit_log WHERE tool LIKE '%_agents' ORDER BY id")
    rows = desk.fleet.platform.database.direct(lambda tx: [tuple(row) for row in tx.all(written)])
    assert rows == [("pause_agents", "done", "human"), ("resume_agents", "done", "human")]


async def test_why_a_tool_is_refused_names_the_pause(desk: PauseDesk) -> None:
    await desk.pause()
    told = await desk.fleet.call(desk.fleet.owner, "explain_access", tool="save_memory", agent="ada")
    assert (told.outcome, told.layer, told.reason) == ("deny", "paused", f"everything was paused by owner: {REASON}")

import pytest

from rookery.core.actor import Actor
from rookery.core.errors import InvalidParams, NotFound, PermissionDenied
from tests.domains.sessions.conftest import Desk, shut


async def count(desk: Desk, actor: Actor | None = None, **wanted: str) -> int:
    return (await desk.call("get_session_count", actor, **wanted)).count


async def test_an_agent_does_not_count_the_sessions_of_another(desk: Desk, ada: Actor) -> None:
    desk.opened("bob")
    with pytest.raises(PermissionDenied, match="only its own sessions"):
        await count(desk, ada, agent_id="bob")
    assert await count(desk, ada) == 0


async def test_agent_and_folder_together_are_refused(desk: Desk) -> None:
    with pytest.raises(InvalidParams, match="not both"):
        await count(desk, agent_id="ada", cwd="/work")


async def test_an_unknown_agent_is_not_found(desk: Desk) -> None:
    with pytest.raises(NotFound, match="nobody"):
        await count(desk, agent_id="nobody")


async def test_sessions_of_another_tenant_or_of_a_closed_project_are_not_counted(
    desk: Desk, ada: Actor, stranger: Actor
) -> None:
    desk.opened("ada")
    desk.opened("ada", project="secret")
    assert await count(desk, stranger) == 0
    assert await count(desk, ada) == 2
    await shut(desk)
    assert await count(desk, desk.fleet.actor(agent="ada")) == 1
    assert await count(desk) == 2


async def test_people_count_all_that_have_not_ended_by_agent_or_by_folder(desk: Desk, ada: Actor) -> None:
    desk.opened("ada", cwd="/srv/a")
    desk.opened("ada", cwd="/srv/b")
    over = desk.opened("bob", cwd="/srv/b")
    desk.opened("bob", cwd="/srv/b")
    desk.rows(lambda rows: rows.end(over))
    assert await count(desk) == 3
    assert await count(desk, agent_id="bob") == 1
    assert await count(desk, cwd="/srv/b") == 2
    assert await count(desk, ada, cwd="/srv/b") == 1
    assert await count(desk, ada, agent_id="ada") == 2


async def test_the_folder_is_told_with_the_count(desk: Desk) -> None:
    assert (await desk.call("get_session_count", cwd="/work")).model_dump() == {"count": 0, "cwd": "/work"}
    here = desk.fleet.actor(as_owner=True, cwd="/srv/here")
    assert (await desk.call("get_session_count", here)).cwd == "/srv/here"


async def test_every_agent_has_it_and_no_agent_has_the_tools_of_people(desk: Desk) -> None:
    theirs = {"start_session", "send_session_message", "change_session", "interrupt_session", "end_session"}
    for profile in (None, "worker", "judge", "planner"):
        names = desk.fleet.names(desk.fleet.actor(profile=profile))
        assert "get_session_count" in names
        assert names.isdisjoint(theirs)
    assert theirs < desk.fleet.names(desk.fleet.owner)

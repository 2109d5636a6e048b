from dataclasses import replace
from typing import Any

import pytest

from rookery.core.actor import Actor
from rookery.core.errors import InvalidParams, PermissionDenied
from rookery.core.pages import encode_cursor
from tests.domains.sessions.conftest import Desk, shut


async def listed(desk: Desk, actor: Actor | None = None, **wanted: Any) -> list[str]:
    return [session.id for session in (await desk.call("list_sessions", actor, **wanted)).sessions]


async def test_an_agent_without_the_tool_lists_nothing(desk: Desk) -> None:
    with pytest.raises(PermissionDenied):
        await listed(desk, desk.fleet.actor(agent="bob"))


async def test_an_agent_lists_its_own_and_nobody_elses(desk: Desk, ada: Actor) -> None:
    mine, _ = desk.opened("ada"), desk.opened("bob")
    assert await listed(desk, ada) == [mine]
    with pytest.raises(PermissionDenied, match="only its own sessions"):
        await listed(desk, ada, agent_id="bob")


async def test_a_caller_that_is_no_agent_and_no_person_has_no_sessions(desk: Desk) -> None:
    desk.opened("ada")
    outside = desk.fleet.actor()
    nobody = replace(outside, kind="external", agent=None, agent_name=None, scopes=frozenset({"sessions:read"}))
    assert await listed(desk, nobody) == []


async def test_another_tenant_and_a_closed_project_are_not_seen(desk: Desk, ada: Actor, stranger: Actor) -> None:
    kept = desk.opened("ada", project="secret")
    assert await listed(desk, stranger) == []
    await shut(desk)
    assert await listed(desk, desk.fleet.actor(agent="ada")) == []
    assert await listed(desk) == [kept]


@pytest.mark.parametrize(
    ("wanted", "told"),
    [
        ({"state": "asleep"}, "state"),
        ({"limit": 0}, "limit"),
        ({"limit": 201}, "limit"),
        ({"cursor": "nonsense"}, "cursor"),
        ({"cursor": encode_cursor("17")}, "cursor"),
        ({"cursor": encode_cursor("9999999999999999999 ses-1")}, "cursor"),
        ({"cursor": encode_cursor("1 \0")}, "cursor"),
    ],
)
async def test_a_question_that_makes_no_sense_is_told_so(desk: Desk, wanted: dict[str, Any], told: str) -> None:
    with pytest.raises(InvalidParams, match=told):
        await listed(desk, **wanted)


async def test_people_see_all_by_state_and_by_agent_those_active_last_first(desk: Desk) -> None:
    first, second, third = desk.opened("ada"), desk.opened("bob"), desk.opened("ada")
    desk.rows(lambda rows: rows.end(third))
    await desk.call("send_session_message", session_id=first, text="hello")
    found = await listed(desk)
    assert set(found) == {first, second, third}
    assert await listed(desk, state="ended") == [third]
    assert await listed(desk, agent_id="bob") == [second]


async def test_pages_follow_each_other_without_a_gap(desk: Desk) -> None:
    made = {desk.opened("ada") for _ in range(5)}
    found: list[str] = []
    cursor: str | None = None
    for _ in range(3):
        page = await desk.call("list_sessions", limit=2, **({"cursor": cursor} if cursor else {}))
        found += [session.id for session in page.sessions]
        cursor = page.next_cursor
    assert cursor is None
    assert (len(found), set(found)) == (5, made)


async def test_a_session_is_told_with_its_settings_and_nothing_that_is_secret(desk: Desk) -> None:
    servers = {"other": {"command": "x", "env": {"KEY": "a-secret"}}}
    session_id = desk.opened("ada", title="mend it", model="opus", cwd="/work", servers=servers)
    key = desk.rows(lambda rows: rows.new_pass(session_id))
    (shown,) = (await desk.call("list_sessions")).model_dump()["sessions"]
    wanted = {"id": session_id, "title": "mend it", "model": "opus", "cwd": "/work", "mode": "act", "state": "idle"}
    assert wanted.items() <= shown.items()
    assert (shown["agent_name"], shown["runtime"], shown["opened_by"]) == ("ada", "scripted", "me")
    assert not {"servers", "pass_hash", "binding"} & set(shown)
    assert "a-secret" not in str(shown)
    assert key not in str(shown)


async def test_the_mode_is_the_one_that_counts(desk: Desk) -> None:
    await desk.call("update_agent", agent="ada", mode="ask")
    desk.opened("ada", mode="autonomy")
    assert [session.mode for session in (await desk.call("list_sessions")).sessions] == ["ask"]

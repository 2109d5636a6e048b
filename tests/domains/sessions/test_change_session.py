from dataclasses import replace
from typing import Any

import pytest

from rookery.core.actor import Actor
from rookery.core.errors import Conflict, InvalidParams, NotFound, PermissionDenied
from rookery.sessions.store import binding_of
from tests.domains.sessions.conftest import Desk
from tests.waking import until, until_listening


async def change(desk: Desk, session_id: str, actor: Actor | None = None, **more: Any) -> dict[str, Any]:
    return (await desk.call("change_session", actor, session_id=session_id, **more)).model_dump()


async def test_an_agent_does_not_free_itself(desk: Desk, ada: Actor) -> None:
    session_id = desk.opened("ada", mode="ask")
    for actor in (ada, replace(desk.fleet.owner, unattended=True)):
        with pytest.raises(PermissionDenied):
            await change(desk, session_id, actor, mode="autonomy")
    assert desk.row(session_id).mode == "ask"


async def test_what_is_not_there_is_not_changed(desk: Desk, stranger: Actor) -> None:
    session_id = desk.opened("ada", project="secret")
    outside = replace(desk.fleet.owner, closed=frozenset({desk.row(session_id).project_id}))
    for actor, wanted in ((None, "ses-0"), (stranger, session_id), (outside, session_id)):
        with pytest.raises(NotFound, match=f"there is no session {wanted}"):
            await change(desk, wanted, actor, title="mine")
    desk.rows(lambda rows: rows.end(session_id))
    with pytest.raises(Conflict, match="has ended"):
        await change(desk, session_id, title="late")


@pytest.mark.parametrize("wanted", [{}, {"mode": "free"}, {"model": ""}, {"title": "x" * 201}, {"state": "idle"}])
async def test_what_makes_no_sense_is_refused(desk: Desk, wanted: dict[str, Any]) -> None:
    session_id = desk.opened("ada")
    with pytest.raises(InvalidParams):
        await change(desk, session_id, **wanted)


async def test_mode_model_and_title_are_changed_one_by_one_and_the_host_is_woken(desk: Desk) -> None:
    session_id = desk.opened("ada")
    heard: list[str] = []
    await until_listening(desk.fleet.platform.database)
    deaf = desk.fleet.platform.database.on_wake(heard.append)
    assert (await change(desk, session_id, mode="ask"))["mode"] == "ask"
    assert (await change(desk, session_id, model="opus"))["model"] == "opus"
    shown = await change(desk, session_id, title=" mend it ")
    await until(lambda: f"session:{session_id}" in heard)
    deaf()
    assert (shown["mode"], shown["model"], shown["title"]) == ("ask", "opus", "mend it")


async def test_no_mode_leads_beyond_what_the_session_was_given(desk: Desk) -> None:
    await desk.call("update_agent", agent="ada", mode="act")
    session_id = desk.opened("ada", mode="ask")
    assert (await change(desk, session_id, mode="autonomy"))["mode"] == "act"
    assert binding_of(desk.row(session_id)).mode == "act"
    strict = replace(desk.fleet.owner, mode="ask")
    assert (await change(desk, session_id, strict, mode="autonomy"))["mode"] == "ask"

from dataclasses import replace

import pytest

from rookery.core.actor import Actor
from rookery.core.errors import Conflict, NotFound, PermissionDenied
from rookery.core.events import Event
from rookery.sessions.store import of_pass
from tests.domains.sessions.conftest import Desk


async def test_an_agent_ends_no_session(desk: Desk, ada: Actor) -> None:
    session_id = desk.opened("ada")
    with pytest.raises(PermissionDenied):
        await desk.call("end_session", ada, session_id=session_id)
    assert desk.row(session_id).state == "idle"


async def test_what_is_not_there_is_not_ended(desk: Desk, stranger: Actor) -> None:
    session_id = desk.opened("ada", project="secret")
    outside = replace(desk.fleet.owner, closed=frozenset({desk.row(session_id).project_id}))
    for actor, wanted in ((None, "ses-0"), (stranger, session_id), (outside, session_id)):
        with pytest.raises(NotFound, match=f"there is no session {wanted}"):
            await desk.call("end_session", actor, session_id=wanted)


async def test_a_session_ends_once_with_all_that_waits_and_its_key(desk: Desk) -> None:
    session_id = desk.opened("ada")
    key = desk.rows(lambda rows: rows.new_pass(session_id))
    for text in ("one", "two"):
        await desk.call("send_session_message", session_id=session_id, text=text)
    told: list[Event] = []
    desk.fleet.platform.events.subscribe(told.append)
    shown = await desk.call("end_session", session_id=session_id)
    assert (shown.state, shown.id) == ("ended", session_id)
    assert shown.ended_ms is not None
    assert [message.state for message in desk.rows(lambda rows: rows.messages(session_id))] == ["dropped", "dropped"]
    assert desk.fleet.platform.database.direct(lambda tx: of_pass(tx, key)) is None
    assert [(event.name, event.subject) for event in told] == [("SessionEnded", session_id)]
    with pytest.raises(Conflict, match="has ended"):
        await desk.call("end_session", session_id=session_id)

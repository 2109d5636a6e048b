from dataclasses import replace

import pytest

from rookery.core.actor import Actor
from rookery.core.errors import Conflict, NotFound, PermissionDenied
from tests.domains.sessions.conftest import Desk
from tests.waking import until, until_listening


async def test_an_agent_interrupts_nobody(desk: Desk, ada: Actor) -> None:
    session_id = desk.opened("ada")
    with pytest.raises(PermissionDenied):
        await desk.call("interrupt_session", ada, session_id=session_id)
    assert desk.row(session_id).interrupts == 0


async def test_what_is_not_there_is_not_interrupted(desk: Desk, stranger: Actor) -> None:
    session_id = desk.opened("ada", project="secret")
    outside = replace(desk.fleet.owner, closed=frozenset({desk.row(session_id).project_id}))
    for actor, wanted in ((None, "ses-0"), (stranger, session_id), (outside, session_id)):
        with pytest.raises(NotFound, match=f"there is no session {wanted}"):
            await desk.call("interrupt_session", actor, session_id=wanted)
    desk.rows(lambda rows: rows.end(session_id))
    with pytest.raises(Conflict, match="has ended"):
        await desk.call("interrupt_session", session_id=session_id)


async def test_each_wish_is_counted_and_what_is_queued_stays(desk: Desk) -> None:
    session_id = desk.opened("ada")
    await desk.call("send_session_message", session_id=session_id, text="hello")
    heard: list[str] = []
    await until_listening(desk.fleet.platform.database)
    deaf = desk.fleet.platform.database.on_wake(heard.append)
    for _ in range(2):
        await desk.call("interrupt_session", session_id=session_id)
    await until(lambda: f"session:{session_id}" in heard)
    deaf()
    assert desk.row(session_id).interrupts == 2
    assert [message.state for message in desk.rows(lambda rows: rows.messages(session_id))] == ["queued"]

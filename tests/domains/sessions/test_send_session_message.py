from dataclasses import replace
from typing import Any

import pytest

from rookery.core.actor import Actor
from rookery.core.errors import Conflict, InvalidParams, NotFound, PermissionDenied, ValidationFailed
from rookery.jobs.store import Jobs
from tests.domains.sessions.conftest import Desk


async def send(desk: Desk, session_id: str, text: str, actor: Actor | None = None, **more: str) -> dict[str, Any]:
    return (await desk.call("send_session_message", actor, session_id=session_id, text=text, **more)).model_dump()


async def test_an_agent_and_a_session_that_nobody_attends_send_nothing(desk: Desk, ada: Actor) -> None:
    session_id = desk.opened("ada")
    for actor in (ada, replace(desk.fleet.owner, unattended=True), desk.fleet.actor(as_owner=True, scheduler=True)):
        with pytest.raises(PermissionDenied):
            await send(desk, session_id, "hello", actor)


@pytest.mark.parametrize("session_id", ["ses-0", "ses_\ud800", "'; drop table agent_sessions", "x" * 100])
async def test_an_unknown_session_is_not_found(desk: Desk, session_id: str) -> None:
    with pytest.raises((NotFound, InvalidParams)):
        await send(desk, session_id, "hello")


async def test_a_session_of_another_tenant_or_of_a_closed_project_is_as_unknown(desk: Desk, stranger: Actor) -> None:
    session_id = desk.opened("ada", project="secret")
    secret = desk.row(session_id).project_id
    for actor in (stranger, replace(desk.fleet.owner, closed=frozenset({secret}))):
        with pytest.raises(NotFound, match=f"there is no session {session_id}"):
            await send(desk, session_id, "hello", actor)


@pytest.mark.parametrize("text", ["", "  \n", "x" * 1_000_001, "a\0b", "\ud800"])
async def test_a_message_that_is_empty_too_long_or_cannot_be_kept_is_refused(desk: Desk, text: str) -> None:
    session_id = desk.opened("ada")
    with pytest.raises((ValidationFailed, InvalidParams)):
        await send(desk, session_id, text)
    assert desk.rows(lambda rows: rows.messages(session_id)) == []


async def test_a_session_that_has_ended_takes_no_message(desk: Desk) -> None:
    session_id = desk.opened("ada")
    desk.rows(lambda rows: rows.end(session_id))
    with pytest.raises(Conflict, match="has ended"):
        await send(desk, session_id, "hello")


async def test_the_id_of_a_message_to_another_session_is_refused(desk: Desk) -> None:
    first, second = desk.opened("ada"), desk.opened("ada")
    await send(desk, first, "hello", message_id="mine-1")
    with pytest.raises(Conflict, match="another session"):
        await send(desk, second, "hello", message_id="mine-1")


async def test_messages_are_queued_in_their_order_and_each_is_a_job(desk: Desk) -> None:
    session_id = desk.opened("ada")
    sent = [await send(desk, session_id, text) for text in ("one", "two", "x" * 1_000_000)]
    assert [each["queue_position"] for each in sent] == [0, 1, 2]
    assert {each["state"] for each in sent} == {"queued"}
    kept = desk.rows(lambda rows: rows.messages(session_id))
    assert [message.id for message in kept] == [each["message_id"] for each in sent]
    page = desk.fleet.platform.database.direct(lambda tx: Jobs(tx, "default").page(kind="sessions.turn", limit=10))
    assert {job.args["message_id"] for job in page} == {each["message_id"] for each in sent}


async def test_the_same_id_again_sends_nothing_more(desk: Desk) -> None:
    session_id = desk.opened("ada")
    first = await send(desk, session_id, "hello", message_id="mine-1")
    assert await send(desk, session_id, "hello", message_id="mine-1") == first
    assert len(desk.rows(lambda rows: rows.messages(session_id))) == 1


async def test_the_id_of_the_runtime_leads_to_the_session_too(desk: Desk) -> None:
    session_id = desk.opened("ada")
    desk.rows(lambda rows: rows.note(session_id, native_id="0a1b2c3d"))
    assert (await send(desk, "0a1b2c3d", "hello"))["session_id"] == session_id

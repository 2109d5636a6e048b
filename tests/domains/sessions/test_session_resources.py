import json
from dataclasses import replace
from typing import Any

import pytest

from rookery.asks.store import Asks, NewAsk
from rookery.core.actor import Actor
from rookery.core.errors import NotFound, PermissionDenied
from rookery.domains.sessions.resources import LAST
from rookery.sessions.events import SessionEvent
from tests.domains.sessions.conftest import Desk, shut


async def read(desk: Desk, uri: str, actor: Actor | None = None) -> str:
    (part,) = await desk.fleet.platform.calls.read(actor or desk.fleet.owner, uri)
    assert isinstance(part.text, str)
    return part.text


async def session(desk: Desk, session_id: str, actor: Actor | None = None) -> dict[str, Any]:
    return json.loads(await read(desk, f"session://{session_id}", actor))


async def events(desk: Desk, session_id: str, actor: Actor | None = None) -> list[dict[str, Any]]:
    text = await read(desk, f"session://{session_id}/events", actor)
    return [json.loads(line) for line in text.split("\n")[:-1]]


async def test_an_agent_without_the_right_reads_no_session(desk: Desk) -> None:
    session_id, bob = desk.opened("bob"), desk.fleet.actor(agent="bob")
    for look in (session, events):
        with pytest.raises(PermissionDenied):
            await look(desk, session_id, bob)


async def test_what_is_anothers_closed_or_of_another_tenant_is_as_absent_as_what_never_was(
    desk: Desk, ada: Actor, stranger: Actor
) -> None:
    bobs, hers = desk.opened("bob"), desk.opened("ada", project="secret")
    await shut(desk)
    ada = desk.fleet.actor(agent="ada")
    for actor, wanted in ((ada, bobs), (ada, hers), (stranger, bobs), (None, "ses-0")):
        for look in (session, events):
            with pytest.raises(NotFound, match=f"there is no session {wanted}"):
                await look(desk, wanted, actor)


async def test_a_session_is_read_with_its_settings_queue_and_conversation(desk: Desk, ada: Actor) -> None:
    session_id = desk.opened("ada", title="mend it", servers={"x": {"env": {"KEY": "a-secret"}}})
    await desk.call("send_session_message", session_id=session_id, text="and then?")
    await desk.happened(
        session_id,
        [
            SessionEvent("turn_input", {"message_id": "msg-1", "text": "hello", "from": "me"}),
            SessionEvent("text_delta", {"text": "good "}),
            SessionEvent("text_delta", {"text": "morning"}),
            SessionEvent("task_update", {"tasks": [{"id": "1", "text": "greet", "status": "completed"}]}),
            SessionEvent("done", {"reason": "completed"}),
        ],
    )
    for actor in (desk.fleet.owner, ada):
        found = await session(desk, session_id, actor)
        assert (found["id"], found["title"], found["state"], found["event_count"]) == (session_id, "mend it", "idle", 4)
        assert [message["parts"][0]["text"] for message in found["messages"]] == ["hello", "good morning"]
        assert [(each["text"], each["state"]) for each in found["queue"]] == [("and then?", "queued")]
        assert found["tasks"] == [{"id": "1", "text": "greet", "status": "completed"}]
        assert "a-secret" not in json.dumps(found)


async def test_of_a_long_message_that_waits_the_beginning_is_shown(desk: Desk) -> None:
    session_id = desk.opened("ada")
    await desk.call("send_session_message", session_id=session_id, text="x" * 1_000_000)
    (queued,) = (await session(desk, session_id))["queue"]
    assert queued["text"] == "x" * 4000 + "…"


async def test_what_its_agent_asks_is_shown_until_it_is_answered(desk: Desk) -> None:
    session_id = desk.opened("ada")
    other = desk.opened("ada")
    agent = desk.row(session_id).agent

    def ask(where: str, **more: Any) -> str:
        new = NewAsk(kind="question", agent_id=agent, question="red or blue?", session=where, **more)
        opened = desk.fleet.platform.database.direct(lambda tx: Asks(tx, "default").open(new), write=True)
        return opened[0].id

    ask_id = ask(session_id, options=["red", "blue"], context="for the door")
    ask(other)
    ask(session_id, open_for_ms=-1, context="too late")
    (shown,) = (await session(desk, session_id))["asks"]
    assert (shown["ask_id"], shown["question"], shown["options"]) == (ask_id, "red or blue?", ["red", "blue"])
    assert shown["context"] == "for the door"
    await desk.call("answer_ask", ask_id=ask_id, answer="1")
    assert (await session(desk, session_id))["asks"] == []


async def test_the_last_events_are_read_line_by_line(desk: Desk) -> None:
    session_id = desk.opened("ada")
    run = await desk.happened(session_id, [SessionEvent("system", {"text": str(number)}) for number in range(LAST + 7)])
    found = await events(desk, session_id)
    assert [each["number"] for each in found] == list(range(8, LAST + 8))
    assert found[0] == {**found[0], "event": "system", "data": {"text": "7"}, "run_id": run}


async def test_what_is_read_at_once_fits_into_a_megabyte(desk: Desk) -> None:
    session_id = desk.opened("ada")
    long = [SessionEvent("tool_result", {"call_id": str(number), "text": "x" * 50_000}) for number in range(30)]
    await desk.happened(session_id, long)
    numbers = [each["number"] for each in await events(desk, session_id)]
    assert numbers == list(range(numbers[0], 31))
    assert 19 <= len(numbers) <= 22
    assert len((await session(desk, session_id))["messages"][0]["parts"]) == len(numbers)


async def test_sessions_are_listed_and_completed_for_whoever_sees_them(desk: Desk, ada: Actor) -> None:
    hers, bobs = desk.opened("ada", title="mend it"), desk.opened("bob")
    calls = desk.fleet.platform.calls
    found = desk.fleet.platform.registry.find_resource(f"session://{hers}")
    assert found is not None
    declared = found[0]
    assert declared.entries is not None
    listed = await calls.look_up(ada, declared, "entries", declared.entries, {})
    assert [(entry.uri, entry.title) for entry in listed] == [(f"session://{hers}", "mend it (idle)")]
    listed = await calls.look_up(desk.fleet.owner, declared, "entries", declared.entries, {})
    assert {entry.name for entry in listed} == {hers, bobs}
    closed = replace(desk.fleet.owner, closed=frozenset({desk.row(hers).project_id}))
    assert await calls.look_up(closed, declared, "entries", declared.entries, {}) == []

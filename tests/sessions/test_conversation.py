"""Events of a session as a conversation."""

from typing import Any

from rookery.sessions.conversation import Talk
from rookery.sessions.events import EventName
from rookery.sessions.writing import Kept


def talk(*events: tuple[EventName, dict[str, Any]]) -> Talk:
    return Talk(Kept(number, name, data, 1000 + number, "run-1") for number, (name, data) in enumerate(events, 1))


def parts(*events: tuple[EventName, dict[str, Any]]) -> list[dict[str, Any]]:
    return [part for message in talk(*events).messages for part in message["parts"]]


def test_what_is_said_in_a_turn_is_one_message_with_its_end() -> None:
    found = talk(
        ("turn_input", {"message_id": "msg-1", "text": "mend it", "from": "me"}),
        ("session_status", {"model": "opus"}),
        ("thinking_delta", {"text": "where "}),
        ("thinking_delta", {"text": "is it?"}),
        ("text_delta", {"text": "I "}),
        ("text_delta", {"text": "look"}),
        ("done", {"reason": "completed", "output": "I look"}),
        ("turn_input", {"message_id": "msg-2", "text": "and?", "from": "me"}),
        ("text_delta", {"text": "done"}),
    ).messages
    said = {"type": "text", "text": "mend it"}
    assert found[0] == {"role": "user", "message_id": "msg-1", "from": "me", "at_ms": 1001, "parts": [said]}
    assert found[1] == {
        "role": "agent",
        "run_id": "run-1",
        "at_ms": 1003,
        "parts": [{"type": "thinking", "text": "where is it?"}, {"type": "text", "text": "I look"}],
        "done": {"reason": "completed", "output": "I look"},
    }
    assert [message["role"] for message in found] == ["user", "agent", "user", "agent"]
    assert "done" not in found[3]


def test_a_tool_call_has_its_input_and_its_result_whatever_came_between() -> None:
    found = parts(
        ("tool_call_start", {"call_id": "c1", "tool": "Read"}),
        ("tool_call_delta", {"call_id": "c1", "text": '{"file'}),
        ("text_delta", {"text": "meanwhile"}),
        ("tool_call_end", {"call_id": "c1", "tool": "Read", "input": {"file_path": "a"}}),
        ("tool_status", {"call_id": "c1", "text": "reading"}),
        ("tool_result", {"call_id": "c1", "text": "content", "is_error": True}),
    )
    call = {"type": "tool", "call_id": "c1", "tool": "Read", "input": {"file_path": "a"}}
    assert found == [{**call, "result": "content", "is_error": True}, {"type": "text", "text": "meanwhile"}]


def test_a_result_whose_call_lies_before_the_first_event_stands_alone() -> None:
    (found,) = parts(("tool_result", {"call_id": "c1", "text": "content", "is_error": False}))
    assert (found["call_id"], found["tool"], found["input"], found["result"]) == ("c1", None, None, "content")


def test_what_was_asked_shows_how_it_was_decided() -> None:
    asked = {"ask_id": "a1", "call_id": "c1", "tool": "Bash", "input": {"command": "make"}, "title": "Run make"}
    found = parts(
        ("approval_required", asked),
        ("question_prompt", {"ask_id": "a2", "call_id": "c2", "questions": []}),
        ("interaction_resolved", {"ask_id": "a1", "call_id": "c1", "how": "denied", "reason": "not now"}),
        ("interaction_resolved", {"ask_id": "of another turn", "how": "approved"}),
    )
    assert found[0] == {"type": "approval", **asked, "how": "denied", "decided": "not now"}
    assert (found[1]["type"], found[1]["how"]) == ("question", None)


def test_tasks_are_as_they_were_told_last_and_errors_are_shown() -> None:
    tasks = [{"id": "1", "text": "read", "status": "completed"}]
    found = talk(("task_update", {"tasks": []}), ("task_update", {"tasks": tasks}), ("error", {"message": "no model"}))
    assert found.tasks == tasks
    assert found.messages[0]["parts"] == [{"type": "error", "text": "no model"}]

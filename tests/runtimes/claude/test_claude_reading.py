"""What messages of the SDK mean that no scripted model makes Claude Code send."""

from typing import Any

import pytest

pytest.importorskip("claude_agent_sdk", reason="the extra is not installed: pip install 'rookery[claude]'")

from claude_agent_sdk import (
    AssistantMessage,
    ConversationResetMessage,
    RateLimitEvent,
    RateLimitInfo,
    ServerToolResultBlock,
    ServerToolUseBlock,
    StreamEvent,
    SystemMessage,
    TaskNotificationMessage,
    TaskStartedMessage,
    TextBlock,
    ThinkingBlock,
    ToolResultBlock,
    ToolUseBlock,
    UserMessage,
)

from rookery.runtimes.claude_events import LONGEST_LINE, Reading
from rookery.runtimes.claude_failures import of_end, of_service

MODEL = "claude-test"


def told(*messages: object) -> list[tuple[str, dict[str, Any]]]:
    reading = Reading()
    return [(event.name, dict(event.data)) for message in messages for event in reading.events(message)]


def said(*blocks: Any, **how: Any) -> AssistantMessage:
    return AssistantMessage(content=list(blocks), model=MODEL, **how)


def piece(event: dict[str, Any], below: str | None = None) -> StreamEvent:
    return StreamEvent(uuid="u", session_id="s", event=event, parent_tool_use_id=below)


def pieces(message_id: str, text: str, below: str | None = None) -> list[StreamEvent]:
    """The beginning of an answer, and its words."""
    delta = {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": text}}
    usage = {"input_tokens": 3}
    begun = {"type": "message_start", "message": {"id": message_id, "usage": usage}}
    return [piece(begun, below), piece(delta, below)]


def test_what_was_told_in_pieces_is_not_told_again() -> None:
    whole = said(TextBlock("hello"), message_id="m1")
    assert told(*pieces("m1", "hello"), whole) == [("text_delta", {"text": "hello"})]


def test_a_helper_that_speaks_in_pieces_is_not_the_agent_and_does_not_make_it_say_things_twice() -> None:
    start = {"type": "tool_use", "id": "c2", "name": "Read"}
    below = [
        *pieces("m2", "thinking aloud", "c1"),
        piece({"type": "content_block_start", "index": 1, "content_block": start}, "c1"),
        said(ToolUseBlock("c2", "Read", {"file": "a"}), parent_tool_use_id="c1", message_id="m2"),
    ]
    whole = said(TextBlock("hello"), message_id="m1")
    assert told(*pieces("m1", "hello"), *below, whole) == [
        ("text_delta", {"text": "hello"}),
        ("tool_call_start", {"call_id": "c2", "tool": "Read", "parent_call_id": "c1"}),
        ("tool_call_end", {"call_id": "c2", "tool": "Read", "input": {"file": "a"}}),
    ]


def test_what_a_helper_uses_is_used() -> None:
    reading = Reading()
    for each in (*pieces("m1", "hello"), *pieces("m2", "thinking aloud", "c1")):
        list(reading.events(each))
    assert reading.input_tokens == 6


def test_what_came_in_one_piece_is_told_at_once() -> None:
    assert told(said(ThinkingBlock("hm", "signed"), TextBlock("hello"), message_id="m2")) == [
        ("thinking_delta", {"text": "hm"}),
        ("text_delta", {"text": "hello"}),
    ]


def test_an_error_of_the_service_is_not_the_agents_word() -> None:
    assert told(said(TextBlock("API Error: 500"), error="server_error")) == []


def test_a_helper_of_the_agent_is_seen_by_the_tools_that_it_uses() -> None:
    below = said(TextBlock("thinking aloud"), ToolUseBlock("c2", "Read", {"file": "a"}), parent_tool_use_id="c1")
    assert told(below) == [
        ("tool_call_start", {"call_id": "c2", "tool": "Read", "parent_call_id": "c1"}),
        ("tool_call_end", {"call_id": "c2", "tool": "Read", "input": {"file": "a"}}),
    ]


def test_a_tool_of_the_service_itself_is_a_tool() -> None:
    used = ServerToolUseBlock("c1", "web_search", {"query": "herons"})
    result = ServerToolResultBlock("c1", {"type": "text", "text": "long legs"})
    assert [name for name, _ in told(said(used, result))] == ["tool_call_start", "tool_call_end", "tool_result"]


def test_a_list_of_todos_is_a_list_of_tasks() -> None:
    todos = {"todos": [{"content": "look", "status": "completed"}, {"content": "leap", "status": "pending"}]}
    (*_, (name, data)) = told(said(ToolUseBlock("c1", "TodoWrite", todos)))
    assert name == "task_update"
    assert data["tasks"] == [
        {"id": "1", "text": "look", "status": "completed"},
        {"id": "2", "text": "leap", "status": "pending"},
    ]


def test_tasks_that_were_listed_or_deleted_are_the_tasks() -> None:
    def used(tool: str, result: dict[str, Any], call: str) -> list[object]:
        came_back = UserMessage(content=[ToolResultBlock(call, "done")], tool_use_result=result)
        return [said(ToolUseBlock(call, tool, {})), came_back]

    listed = {"tasks": [{"id": "1", "subject": "look", "status": "pending"}, {"id": "2", "subject": "leap"}]}
    gone = {"taskId": "1", "statusChange": {"from": "pending", "to": "deleted"}}
    updates = [
        data
        for name, data in told(*used("TaskList", listed, "a"), *used("TaskUpdate", gone, "b"))
        if name == "task_update"
    ]
    assert [[task["id"] for task in update["tasks"]] for update in updates] == [["1", "2"], ["2"]]


def test_a_helper_is_a_task_until_it_is_done() -> None:
    begun = TaskStartedMessage(
        subtype="task_started", data={}, task_id="t1", description="look around", uuid="u", session_id="s"
    )
    ended = TaskNotificationMessage(
        subtype="task_notification", data={}, task_id="t1", status="completed", output_file="", summary="seen",
        uuid="u", session_id="s",
    )  # fmt: skip
    assert [data["tasks"] for _, data in told(begun, ended)] == [
        [{"id": "t1", "text": "look around", "status": "in_progress"}],
        [{"id": "t1", "text": "look around", "status": "completed"}],
    ]


def test_a_broken_picture_is_counted_as_nothing() -> None:
    picture = {"type": "image", "source": {"media_type": "image/png", "data": "abc"}}
    ((_, data),) = told(UserMessage(content=[ToolResultBlock("c1", [picture, {"type": "text", "text": "look"}])]))
    assert data["images"] == [{"mime_type": "image/png", "bytes": 0}]
    assert data["text"] == "look"


def test_what_is_said_of_limits_and_room_is_told_in_words() -> None:
    limit = RateLimitEvent(RateLimitInfo(status="rejected"), uuid="u", session_id="s")
    room = SystemMessage(subtype="compact_boundary", data={})
    assert all(name == "system" and data["text"] for name, data in told(limit, room))
    assert told(RateLimitEvent(RateLimitInfo(status="allowed"), uuid="u", session_id="s")) == []


def test_what_is_not_known_is_kept_as_a_line_and_not_too_much_of_it() -> None:
    ((name, data),) = told(SystemMessage(subtype="brand_new", data={"news": "n" * 10_000}))
    assert name == "system"
    assert len(data["line"]) == LONGEST_LINE
    assert told(SystemMessage(subtype="status", data={}), UserMessage(content="hello"), object()) == []


def test_a_conversation_that_begins_anew_has_another_id() -> None:
    reading = Reading()
    reset = ConversationResetMessage(new_conversation_id="another", uuid="u", session_id="s")
    assert list(reading.events(reset)) == []
    assert reading.native_id == "another"


@pytest.mark.parametrize(
    ("status", "text", "code"),
    [
        (403, "forbidden", "model_auth"),
        (413, "too long", "model_request"),
        (429, "slow down", "model_busy"),
        (503, "down", "model_error"),
        (418, "a teapot", "model_request"),
        (None, "fetch failed", "network"),
        (None, "something else", "failed"),
    ],
)
def test_each_answer_of_the_service_has_its_sentence(status: int | None, text: str, code: str) -> None:
    failure = of_service(status, text)
    assert failure.code == code
    assert status is None or str(status) in failure.message


def test_how_the_program_ended_is_said() -> None:
    assert of_end(-15, "").message == "Claude Code was ended by SIGTERM in the middle of the turn."
    assert "signal 99" in of_end(-99, "").message
    assert of_end(3, "first\nno licence").message.endswith("with code 3 in the middle of the turn: no licence")
    assert of_end(None, "").code == "crashed"

"""Lines of a transcript as a conversation."""

import json
from typing import Any

import pytest

from rookery.sessions.transcript_files import object_in
from rookery.sessions.transcript_parser import Conversation
from tests.sessions.transcript_folder import MODEL, assistant, result, said, use, user

STDOUT = "<local-command-stdout>\x1b[1mnow\x1b[22m\nopus</local-command-stdout>"
COMMAND = (
    "<command-message>review</command-message>\n<command-name>/review</command-name>\n<command-args>12</command-args>"
)


def kinds(*lines: dict[str, Any]) -> list[tuple[str, str, str]]:
    return [(message.role, message.kind, message.text) for message in Conversation(lines).messages]


def parts(*lines: dict[str, Any]) -> list[dict[str, Any]]:
    return [part for message in Conversation(lines).messages for part in message.parts]


@pytest.mark.parametrize(
    "line",
    [
        {},
        {"type": "user"},
        {"type": "user", "message": "hello"},
        {"type": "user", "message": {"content": None}},
        {"type": "user", "message": {"content": [7, None, "x", {"type": "text"}, {"type": "text", "text": 7}]}},
        {"type": "assistant", "message": {"content": {"type": "text"}}},
        {"type": "assistant", "message": {"content": [{"type": "text", "text": "  "}, {"type": "redacted_thinking"}]}},
        {"type": "system", "message": {"content": "compacted"}},
        {"type": "queue-operation", "content": "hello"},
        user("hello", isMeta=True),
        user("hello", isSidechain=True),
        user("<task-notification>done</task-notification>"),
        user("<system-reminder>remember</system-reminder>"),
        user(STDOUT),
    ],
)
def test_what_is_no_part_of_the_conversation_is_passed_over(line: dict[str, Any]) -> None:
    assert Conversation([line]).messages == []


def test_reminders_are_taken_out_and_one_without_an_end_stays() -> None:
    text = "<system-reminder>a</system-reminder>hello<system-reminder>b\nc</system-reminder> there"
    assert kinds(user(text)) == [("user", "text", "hello there")]
    assert kinds(user("hello <system-reminder>b")) == [("user", "text", "hello <system-reminder>b")]


def test_many_reminders_without_an_end_take_no_time() -> None:
    text = "<system-reminder>" * 200_000
    assert kinds(user(text)) == [("user", "text", text)]


def test_a_slash_command_is_what_was_typed_and_not_what_it_stands_for() -> None:
    lines = [user(COMMAND), user([said("Review the pull request. First …")]), assistant(said("done"))]
    assert kinds(*lines) == [("user", "command", "/review 12"), ("assistant", "text", "done")]
    meta = [user(COMMAND), user("Review the pull request.", isMeta=True), user("and now?")]
    assert kinds(*meta) == [("user", "command", "/review 12"), ("user", "text", "and now?")]
    assert kinds(user("<command-message>init</command-message>")) == [("user", "command", "/init")]


def test_what_a_command_printed_belongs_to_it() -> None:
    lines = [user("<command-name>/model</command-name>"), user(STDOUT), user("go on")]
    told = Conversation(lines).messages
    assert [message.kind for message in told] == ["command", "text"]
    assert told[0].parts[1] == {"type": "output", "text": "now\nopus"}
    shell = [user("<bash-input>ls -l</bash-input>"), user("<bash-stdout>a</bash-stdout><bash-stderr>b</bash-stderr>")]
    assert parts(*shell) == [{"type": "text", "text": "! ls -l"}, {"type": "output", "text": "a\nb"}]


def test_a_continuation_is_a_compaction() -> None:
    text = "This session is being continued from a previous conversation."
    assert kinds(user(text)) == [("user", "compaction", text)]
    assert kinds(user("Summary", isCompactSummary=True)) == [("user", "compaction", "Summary")]


def test_the_blocks_of_one_answer_are_one_message_with_the_results_of_its_calls() -> None:
    thought = {"type": "thinking", "thinking": "a or b?", "signature": "…"}
    lines = [
        user("look"),
        assistant(thought),
        assistant(use("c1", "Read", file_path="a")),
        assistant(use("c2", "Read", file_path="b")),
        user([result("c2", [said("content of b"), {"type": "image", "source": {}}])]),
        user([result("c1", "there is no a", is_error=True)]),
        assistant(said("seen"), message_id="msg_2"),
    ]
    told = Conversation(lines).messages
    assert [(message.role, message.id) for message in told] == [
        ("user", "u-1"),
        ("assistant", "msg_1"),
        ("assistant", "msg_2"),
    ]
    assert told[1].model == MODEL
    assert told[1].at_ms == 1_794_830_401_000
    call = {"type": "tool", "tool": "Read", "is_error": False}
    assert told[1].parts == [
        {"type": "thinking", "text": "a or b?"},
        {**call, "call_id": "c1", "input": {"file_path": "a"}, "result": "there is no a", "is_error": True},
        {**call, "call_id": "c2", "input": {"file_path": "b"}, "result": "content of b\n[image]"},
    ]


def test_a_call_that_stands_there_twice_is_one() -> None:
    lines = [assistant(use("c1", "Read")), assistant(use("c1", "Read")), user([result("c1", "x")])]
    assert [part["result"] for part in parts(*lines)] == ["x"]


def test_an_image_of_a_person_is_named() -> None:
    image = {"type": "image", "source": {"type": "base64", "data": "QUJD"}}
    assert parts(user([said("see"), image])) == [{"type": "text", "text": "see"}, {"type": "image"}]


def test_answers_of_a_person_are_read_from_what_was_kept_or_from_the_text() -> None:
    asked = assistant(use("c1", "AskUserQuestion", questions=[{"question": "Which colour?"}]))
    text = 'User has answered your questions: "Which colour?"="red", "How big?"="". You can go on.'
    kept = user([result("c1", text)], toolUseResult={"answers": {"Which colour?": "green"}})
    assert parts(asked, kept)[0]["answers"] == {"Which colour?": "green"}
    for other in (user([result("c1", text)]), user([result("c1", text)], toolUseResult="ok")):
        assert parts(asked, other)[0]["answers"] == {"Which colour?": "red", "How big?": ""}


def tasks(*lines: dict[str, Any]) -> list[tuple[str, str, str]]:
    return [(task["id"], task["text"], task["status"]) for task in Conversation(lines).tasks.listed]


def test_the_last_todo_list_is_the_list_of_tasks() -> None:
    first = [{"content": "a", "status": "in_progress"}, {"content": "b", "status": "pending"}, 7]
    second = [{"content": "a", "status": "completed"}]
    assert tasks(assistant(use("c1", "TodoWrite", todos=first))) == [("1", "a", "in_progress"), ("2", "b", "pending")]
    lines = [assistant(use("c1", "TodoWrite", todos=first)), assistant(use("c2", "TodoWrite", todos=second))]
    assert tasks(*lines) == [("1", "a", "completed")]
    assert tasks(*lines, assistant(use("c3", "TodoWrite", todos="all"))) == [("1", "a", "completed")]


def test_tasks_are_created_under_the_number_that_was_returned_updated_and_deleted() -> None:
    lines = [
        assistant(use("c1", "TaskCreate", subject="read"), use("c2", "TaskCreate", subject="write")),
        user([result("c1", "Task #7 created successfully: read")]),
        user([result("c2", "created")], toolUseResult={"task": {"id": "8", "subject": "write"}}),
        assistant(use("c3", "TaskUpdate", taskId="7", status="in_progress"), message_id="msg_2"),
        assistant(use("c4", "TaskUpdate", taskId="9", status="completed"), message_id="msg_3"),
    ]
    assert tasks(*lines) == [("7", "read", "in_progress"), ("8", "write", "pending")]
    more = assistant(
        use("c5", "TaskUpdate", taskId="8", subject="write more"),
        use("c6", "TaskUpdate", taskId="7", status="deleted"),
        message_id="msg_4",
    )
    assert tasks(*lines, more) == [("8", "write more", "pending")]


def test_half_a_surrogate_pair_and_what_is_no_number_can_be_passed_on() -> None:
    found = object_in(b'{"a": "\\ud83d\\ude00 \\ud800", "b": NaN, "c": "\xff"}')
    assert found == {"a": "😀 ?", "b": None, "c": "\ufffd"}
    assert object_in(b'{"a": Infinity}') == {"a": None}


def test_what_is_nested_too_deeply_is_no_line() -> None:
    assert object_in(b'{"a":' + b"[" * 120 + b"]" * 120 + b"}") is None
    flat = json.dumps({"a": [[] for _ in range(500)]}).encode()
    assert object_in(flat) == json.loads(flat)


@pytest.mark.parametrize("time", ["yesterday", None, 7, ""])
def test_what_is_no_time_is_none(time: Any) -> None:
    told = Conversation([user("hello", timestamp=time)]).messages
    assert told[0].at_ms is None

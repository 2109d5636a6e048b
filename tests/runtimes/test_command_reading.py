"""What clients print becomes what happens in a session: tool calls, their results, cost, errors.

The `_tools`, `_resumed` and `_error` fixtures were recorded with the real programs against a scripted model; the
`_other` ones are written after their documentation, for what a scripted model does not make them print.
"""

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rookery.runtimes.command_claude_reading import ClaudeReader
from rookery.runtimes.command_codex import CodexReader
from rookery.runtimes.command_failures import of_end, of_words
from rookery.runtimes.command_gemini import GeminiReader
from rookery.runtimes.command_lines import KEPT_OF_CUT, Lines
from rookery.runtimes.command_opencode import OpencodeReader
from rookery.runtimes.command_own import OwnReader
from rookery.runtimes.command_reading import Reader
from rookery.sessions.events import SessionEvent

FIXTURES = Path(__file__).parent / "fixtures"
READERS: dict[str, type[Reader]] = {
    "claude": ClaudeReader,
    "codex": CodexReader,
    "gemini": GeminiReader,
    "opencode": OpencodeReader,
}
PING, INFO = "mcp__rookery__ping", "mcp__rookery__get_server_info"


def read(name: str, **how: Any) -> tuple[Reader, list[SessionEvent]]:
    reader = READERS[name.partition("_")[0]](["rookery"], **how)
    lines = (FIXTURES / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()
    return reader, [event for line in lines for event in reader.read(line)]


def of(events: list[SessionEvent], name: str, key: str, *more: str) -> list[Any]:
    """What the events of this name say: one value each, or as many as keys are named."""
    found = [event.data for event in events if event.name == name]
    return [tuple(data.get(each) for each in (key, *more)) if more else data.get(key) for data in found]


@pytest.mark.parametrize("client", READERS)
def test_a_turn_with_tools_is_told_call_by_call(client: str) -> None:
    reader, events = read(f"{client}_tools")
    assert of(events, "tool_call_start", "tool")[:2] == [PING, INFO]
    assert of(events, "tool_call_end", "tool", "input")[:2] == [(PING, {}), (INFO, {"include_uptime": 7})]
    results = of(events, "tool_result", "tool", "is_error", "text")
    assert results[0][:2] == (PING, False)
    assert json.loads(results[0][2])["status"] == "pong"
    assert results[1][:2] == (INFO, True)
    assert "include_uptime" in results[1][2]
    starts, ends = of(events, "tool_call_start", "call_id"), of(events, "tool_call_end", "call_id")
    assert starts == ends == of(events, "tool_result", "call_id")
    assert len(set(starts)) == len(starts)
    assert reader.tally.native_id
    assert not reader.tally.error
    assert "".join(of(events, "text_delta", "text")) == reader.tally.said
    assert reader.tally.input_tokens > 0
    assert reader.tally.output_tokens > 0


@pytest.mark.parametrize("client", READERS)
def test_an_error_of_the_model_is_understood(client: str) -> None:
    reader, events = read(f"{client}_error")
    assert "overloaded" in reader.tally.error
    assert of(events, "text_delta", "text") == []
    told = of_words("The client", reader.tally.error, reader.tally.status)
    assert (told.code, "(400)" in told.message) == ("model_request", True)


def test_claude_tells_texts_and_calls_piece_by_piece_and_not_twice() -> None:
    reader, events = read("claude_tools")
    assert of(events, "tool_call_delta", "call_id", "text")[1] == ("toolu_1_0", '{"include_uptime": 7}')
    assert len(of(events, "text_delta", "text")) == 1
    assert of(events, "tool_result", "structured")[0]["status"] == "pong"
    [servers, *_] = of(events, "session_status", "servers")
    assert servers == [{"name": "rookery", "status": "connected"}]
    ended = of(events, "session_status", "cost_usd", "context_max_tokens")[-1]
    assert ended == (pytest.approx(0.00012), 1_000_000)
    assert (reader.tally.cost_usd, reader.tally.turns, reader.tally.over) == (pytest.approx(0.00012), 5, True)
    assert of(events, "system", "line") == []


def test_a_helper_of_claude_that_speaks_in_pieces_is_not_the_agent() -> None:
    def piece(event: dict[str, Any], below: str | None = None) -> str:
        return json.dumps({"type": "stream_event", "event": event, "parent_tool_use_id": below})

    def pieces(message_id: str, words: str, below: str | None = None) -> list[str]:
        delta = {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": words}}
        return [piece({"type": "message_start", "message": {"id": message_id}}, below), piece(delta, below)]

    whole = {"id": "m1", "content": [{"type": "text", "text": "hello"}]}
    lines = [*pieces("m1", "hello"), *pieces("m2", "thinking aloud", "c1")]
    lines.append(json.dumps({"type": "assistant", "message": whole}))
    reader = ClaudeReader()
    events = [event for line in lines for event in reader.read(line)]
    assert [(event.name, event.data) for event in events] == [("text_delta", {"text": "hello"})]


def test_claude_asks_before_it_uses_a_tool() -> None:
    reader, _ = read("claude_tools")
    asked = [(wanted.use.tool, wanted.use.call_id) for wanted in reader.tally.wanted]
    assert asked == [(PING, "toolu_0_0"), (INFO, "toolu_1_0"), ("Bash", "toolu_2_0"), ("AskUserQuestion", "toolu_3_0")]
    assert len({wanted.request for wanted in reader.tally.wanted}) == 4


def test_other_lines_of_claude() -> None:
    reader, events = read("claude_other")
    assert of(events, "session_status", "servers")[0] == [{"name": "rookery", "status": "failed"}]
    assert of(events, "thinking_delta", "text") == ["hm"]
    assert of(events, "text_delta", "text") == ["I begin."]
    assert of(events, "task_update", "tasks") == [[{"id": "1", "text": "read", "status": "in_progress"}]]
    assert of(events, "tool_result", "text", "images") == [("kept", [{"mime_type": "image/png", "bytes": 5}])]
    assert of(events, "tool_call_start", "tool", "parent_call_id")[1] == ("Read", "toolu_1")
    assert [json.loads(line)["type"] for line in of(events, "system", "line") if line] == ["system", "tool_progress"]
    assert (reader.tally.code, reader.tally.cost_usd) == ("max_turns", 0.25)


def test_a_resumed_session_of_codex_counts_what_the_turn_has_used() -> None:
    assert read("codex_resumed", before=(480, 44))[0].tally.input_tokens == 480
    assert read("codex_resumed", before=(480, 44))[0].tally.total == (960, 88)
    unknown = read("codex_resumed", before=None)[0].tally
    assert (unknown.input_tokens, unknown.output_tokens, unknown.total) == (0, 0, (960, 88))


def test_calls_of_codex_have_other_ids_in_each_turn() -> None:
    first, later = (set(of(read("codex_tools", prefix=prefix)[1], "tool_result", "call_id")) for prefix in ("a-", "b-"))
    assert first & later == set()


def test_other_lines_of_codex() -> None:
    reader, events = read("codex_other")
    results = of(events, "tool_result", "tool", "is_error", "text")
    assert results == [
        ("web_search", False, ""),
        ("apply_patch", False, ""),
        ("apply_patch", True, ""),
        ("shell", True, ""),
        ("mcp__rookery__create_issue", True, "user rejected MCP tool call"),
    ]
    assert of(events, "task_update", "tasks")[-1][0] == {"id": "1", "text": "read the code", "status": "completed"}
    told = of(events, "system", "line", "text")
    assert [json.loads(line)["type"] for line, _ in told if line] == ["item.completed", "item.plan.delta"]
    assert [text for _, text in told if text] == ["Reconnecting... 1/5"]
    assert (reader.tally.input_tokens, reader.tally.output_tokens) == (24763, 122)


def test_other_lines_of_gemini() -> None:
    reader, events = read("gemini_other")
    assert of(events, "tool_result", "tool", "is_error", "text") == [("run_shell_command", True, "denied by policy")]
    assert of(events, "system", "text", "line")[0][0] == "Loop detected, stopping execution"
    assert json.loads(of(events, "system", "line")[1])["type"] == "thought"
    assert (reader.tally.said, reader.tally.input_tokens, reader.tally.over) == ("I may not.", 50, True)


def test_other_lines_of_opencode() -> None:
    reader, events = read("opencode_other")
    assert of(events, "thinking_delta", "text") == ["hm"]
    assert [task["status"] for task in of(events, "task_update", "tasks")[0]] == ["completed", "pending"]
    assert of(events, "tool_call_start", "tool")[1] == "other_do_it"
    assert json.loads(of(events, "system", "line")[0])["type"] == "snapshot"
    tally = reader.tally
    assert (tally.cost_usd, tally.input_tokens, tally.output_tokens, tally.turns) == (0.5, 40, 5, 1)


@pytest.mark.parametrize("client", READERS)
@pytest.mark.parametrize(
    "line", ["no JSON", "[1]", '"text"', "{", '{"type": 5}', "{}", "[" * 100_000, '{"a":1}x', "\x00"]
)
def test_what_is_no_line_of_the_client_is_told_as_it_is(client: str, line: str) -> None:
    [event] = READERS[client]().read(line)
    assert (event.name, event.data["line"]) == ("system", line[:2000])
    assert READERS[client]().read("  \r") == []


ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)


def changed(value: Any, path: list[int], to: Any) -> Any:
    """The value with one part of it, found by the path, replaced."""
    if not path or not isinstance(value, dict | list) or not value:
        return to
    keys: list[Any] = list(value) if isinstance(value, dict) else list(range(len(value)))
    key = keys[path[0] % len(keys)]
    copy = dict(value) if isinstance(value, dict) else list(value)
    copy[key] = changed(value[key], path[1:], to)
    return copy


@pytest.mark.parametrize("client", READERS)
@settings(max_examples=150, deadline=None)
@given(st.data())
def test_a_line_in_a_shape_that_no_version_has_breaks_nothing(client: str, data: st.DataObject) -> None:
    names = sorted(path for path in FIXTURES.glob(f"{client}_*.jsonl"))
    lines = [line for path in names for line in path.read_text(encoding="utf-8").splitlines()]
    reader = READERS[client](["rookery"])
    for line in data.draw(st.lists(st.sampled_from(lines), min_size=1, max_size=6)):
        path = data.draw(st.lists(st.integers(0, 20), max_size=5))
        events = reader.read(json.dumps(changed(json.loads(line), path, data.draw(ANYTHING))))
        json.dumps([dict(event.data) for event in events])
    assert min(reader.tally.outcome().counts) >= 0


def test_every_line_of_an_own_program_is_what_its_agent_says() -> None:
    reader = OwnReader()
    lines = ["one\r", "", '{"type":"result"}']
    assert [event.data["text"] for line in lines for event in reader.read(line)] == [
        "one\n",
        "\n",
        '{"type":"result"}\n',
    ]
    assert reader.tally.said == 'one\n\n{"type":"result"}\n'


def test_a_line_that_is_too_long_is_cut_and_the_next_is_whole() -> None:
    lines = Lines(longest=5000)
    found = [line for chunk in (b"a" * 3000, b"a" * 3000, b"a" * 10, b"\nnext\nrest") for line in lines.feed(chunk)]
    assert [(line.text, line.size, line.cut) for line in found] == [("a" * KEPT_OF_CUT, 6010, True), ("next", 4, False)]
    assert [line.text for line in lines.rest()] == ["rest"]
    assert list(lines.rest()) == []


@settings(max_examples=100, deadline=None)
@given(st.lists(st.binary(max_size=20), max_size=10))
def test_lines_are_the_same_however_they_are_cut_into_pieces(chunks: list[bytes]) -> None:
    lines = Lines()
    found = [line.text for chunk in chunks for line in lines.feed(chunk)] + [line.text for line in lines.rest()]
    parts = b"".join(chunks).split(b"\n")
    whole = parts if parts[-1] else parts[:-1]
    assert Counter(found) == Counter(part.decode(errors="replace") for part in whole)


@pytest.mark.parametrize(
    ("code", "errors", "told"),
    [
        (3, "\x1b[91mError:\x1b[0m no such model\n", ("Codex ended with code 3: Error: no such model", "crashed")),
        (-9, "", ("Codex was ended by SIGKILL in the middle of the turn.", "killed")),
        (0, "", ("Codex ended before the turn was over.", "crashed")),
        (1, "no rollout found for thread id 1", ("Codex does not have this session any more.", "lost")),
        (1, "x" * 9999, ("Codex ended with code 1: … xxx", "crashed")),
    ],
)
def test_how_a_program_ended_is_told_in_words(code: int, errors: str, told: tuple[str, str]) -> None:
    failure = of_end("Codex", code, errors)
    assert failure.message.startswith(told[0])
    assert failure.code == told[1]
    assert len(failure.message) < 600


@pytest.mark.parametrize(
    ("said", "code"),
    [
        ("API Error: 401 invalid x-api-key", "model_auth"),
        ('{"error":{"code":429,"message":"quota"}}', "model_busy"),
        ("API Error: 503 unavailable", "model_error"),
        ("stream disconnected before completion: error sending request", "network"),
        ("No conversation found with session ID: 1", "lost"),
        ("something else", "failed"),
    ],
)
def test_what_a_program_says_of_its_failure_is_sorted(said: str, code: str) -> None:
    assert of_words("Codex", said).code == code

"""Lines of every size, and the end of input: whatever came in whole is answered, and nothing else is touched."""

import json
import subprocess
import sys

import pytest

from tests.server.conftest import Place
from tests.server.processes import Client, outcome

MEGABYTE = 1024 * 1024


def tool_call(request_id: int | str, name: str, **arguments: object) -> bytes:
    params = {"name": name, "arguments": arguments}
    message = {"jsonrpc": "2.0", "id": request_id, "method": "tools/call", "params": params}
    return json.dumps(message).encode() + b"\n"


def test_calls_under_way_are_answered_after_the_end_of_input(shared: Place, direct: bool) -> None:
    client = shared.session(direct=direct)
    names = ["count_slowly", "save_note", "spin_writing", "count_in_thread", "ping", "list_notes", "spin_reading"]
    arguments = {"count_slowly": {"steps": 20}, "count_in_thread": {"steps": 3}}
    arguments |= {"save_note": {"text": "last words"}, "spin_writing": {"text": "spun"}}
    asked = {client.ask_tool(name, **arguments.get(name, {})): name for name in names}
    code, rest, _ = client.end()
    answers = {asked[message["id"]]: outcome(message) for message in rest if "method" not in message}
    assert code == 0
    assert set(answers) == set(names)
    assert answers["count_slowly"] == {"done": "20"}
    assert answers["save_note"] == {"done": "last words"}
    assert answers["spin_reading"]["error"]["code"] == "TIMEOUT"
    assert len([message for message in rest if message.get("id")]) == len(names), "each once"


def test_the_newest_revision_is_answered_after_the_end_of_input(shared: Place, direct: bool) -> None:
    client = shared.client(direct=direct).be_modern()
    asked = client.ask_tool("count_slowly", steps=10)
    client.ask("subscriptions/listen", notifications={"toolsListChanged": True})
    code, rest, _ = client.end()
    assert code == 0
    assert [outcome(message) for message in rest if message.get("id") == asked] == [{"done": "10"}]


@pytest.mark.parametrize(("asked", "cancelled"), [(7, 7), ("7", 7)], ids=["same", "digits"])
def test_a_cancelled_call_does_not_keep_the_session_open(
    shared: Place, direct: bool, asked: int | str, cancelled: int | str
) -> None:
    client = shared.session(direct=direct)
    # Numbers and their digits are one id to the SDK, so they have to be one to whoever counts what is open.
    client.send(tool_call(asked, "spin_until_cancelled", text="open"))
    client.until("notifications/message")
    client.notify("notifications/cancelled", requestId=cancelled)
    code, rest, _ = client.end()
    assert code == 0
    assert [message for message in rest if message.get("id") == asked] == []


def test_a_cancellation_of_something_else_leaves_the_call_alone(shared: Place, direct: bool) -> None:
    client = shared.session(direct=direct)
    asked = client.ask_tool("count_slowly", steps=20)
    for odd in (True, 1.0, None, [asked], {}, "", asked + 1, float("nan"), 10**400):
        client.notify("notifications/cancelled", requestId=odd)
    _, rest, _ = client.end()
    assert [outcome(message) for message in rest if message.get("id") == asked] == [{"done": "20"}]


def test_the_last_line_needs_no_newline(shared: Place, direct: bool) -> None:
    client = shared.session(direct=direct)
    client.send(tool_call("last", "ping").rstrip(b"\n"))
    _, rest, _ = client.end()
    assert [message["id"] for message in rest] == ["last"]


def test_half_a_line_at_the_end_is_one_error(shared: Place, direct: bool) -> None:
    client = shared.session(direct=direct)
    client.send(tool_call("whole", "ping"), tool_call("half", "ping")[:40])
    _, rest, _ = client.end()
    assert {message["id"]: message.get("error", {}).get("code") for message in rest} == {"whole": None, None: -32700}


def test_a_session_that_says_nothing_ends_quietly(shared: Place, direct: bool) -> None:
    assert shared.client(direct=direct).end()[:2] == (0, [])


def test_ten_megabytes_are_a_line_like_any_other(client: Client) -> None:
    text = "x" * 10 * MEGABYTE
    sending = client.meanwhile(
        tool_call("refused", "save_note", text=text),
        tool_call("measured", "measure_text", text=text),
        tool_call("ping", "ping"),
    )
    answers = {message["id"]: message for message in (client.next() for _ in range(3))}
    sending.join()
    assert answers["refused"]["result"]["_meta"]["rookery/error"]["code"] == "INVALID_PARAMS"
    assert len(json.dumps(answers["refused"])) < 10_000, "what is refused is not sent back"
    assert outcome(answers["measured"]) == {"length": len(text)}
    assert outcome(answers["ping"])["status"] == "pong"


def test_a_name_of_ten_megabytes_is_refused_in_few_words(client: Client) -> None:
    sending = client.meanwhile(tool_call("named", "n" * 10 * MEGABYTE))
    answer = client.answer_to("named")
    sending.join()
    assert answer["error"]["code"] == -32602
    assert len(json.dumps(answer)) < 10_000


@pytest.mark.parametrize("size", [33 * MEGABYTE, 40 * MEGABYTE])
def test_a_line_that_is_too_long_costs_one_error(client: Client, size: int) -> None:
    sending = client.meanwhile(
        tool_call("before", "ping"),
        tool_call("too long", "measure_text", text="x" * size),
        tool_call("after", "ping"),
    )
    answers = [client.next() for _ in range(3)]
    sending.join()
    by_id = {message["id"]: message for message in answers}
    assert set(by_id) == {"before", "too long", "after"}, "its edges tell which call it was"
    assert by_id["too long"]["error"]["code"] == -32600
    assert "at most" in by_id["too long"]["error"]["message"]
    assert outcome(by_id["after"])["status"] == "pong"
    assert client.call("ping")["status"] == "pong"


def test_a_line_that_is_too_long_and_never_ends_is_one_error(shared: Place, direct: bool) -> None:
    client = shared.session(direct=direct)
    sending = client.meanwhile(b"x" * 40 * MEGABYTE)
    sending.join()
    code, rest, _ = client.end()
    assert (code, [message["error"]["code"] for message in rest]) == (0, [-32600])


def test_an_answer_that_nobody_reads_for_long_arrives_whole(shared: Place, direct: bool) -> None:
    client = shared.session("--as-owner", direct=direct)
    listed = [client.ask("tools/list") for _ in range(20)]
    client.stdin.close()  # more than a pipe holds is still to come
    answers = [client.next() for _ in range(20)]
    assert [message["id"] for message in answers] == listed
    assert len({json.dumps(message["result"]) for message in answers}) == 1
    assert client.lines.raw() == b""
    assert client.process.wait(20) == 0


def test_files_will_do_for_input_and_output(shared: Place, direct: bool) -> None:
    said, heard = shared.home / "said.jsonl", shared.home / "heard.jsonl"
    hello = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
    first = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello}
    said.write_bytes(json.dumps(first).encode() + b"\n" + tool_call(2, "count_slowly", steps=5))
    command = [sys.executable, "-m", "rookery.entry", "stdio", *(["--direct"] if direct else [])]
    with said.open("rb") as stdin, heard.open("wb") as stdout:
        subprocess.run(command, stdin=stdin, stdout=stdout, env=shared.environment(), timeout=20, check=True)
    answers = [json.loads(line) for line in heard.read_text().splitlines()]
    assert [answer["id"] for answer in answers if "id" in answer] == [1, 2]
    assert outcome(answers[-1]) == {"done": "5"}

"""Bodies that are JSON, or nearly, and no message that can be served: each gets an answer of the right class."""

import json
from collections.abc import AsyncIterator
from typing import Any

import pytest

from tests.server.streamable.raw import Answer, Raw, post
from tests.server.streamable.web import LEGACY, Web, call, initialize, modern

PARSE_ERROR, INVALID_REQUEST, METHOD_NOT_FOUND, INVALID_PARAMS = -32700, -32600, -32601, -32602


class Line:
    """One connection with a session on it."""

    def __init__(self, raw: Raw, session: str) -> None:
        self.raw, self.session = raw, session

    async def ask(self, message: Any, **headers: str | None) -> Answer:
        chosen = {"mcp_session_id": self.session, "mcp_protocol_version": LEGACY} | headers
        return await self.raw.ask(post(message, **chosen))


def faults(caplog: pytest.LogCaptureFixture) -> list[str]:
    """What the test made the log say with a traceback."""
    return [record.getMessage() for record in caplog.get_records("call") if record.exc_info]


@pytest.fixture
async def line(trusting: Web, caplog: pytest.LogCaptureFixture) -> AsyncIterator[Line]:
    """After every test the session still serves, and the log has no traceback."""
    async with Raw(trusting.port) as raw:
        one = Line(raw, await trusting.initialize())
        yield one
        assert (await one.ask(call("ping"))).json["result"]["structuredContent"]["status"] == "pong"
    assert not faults(caplog)


def text(**changes: str) -> bytes:
    """A call of `say_again` whose parts are written as given."""
    parts = {"jsonrpc": '"2.0"', "id": "1", "method": '"tools/call"', "params": '{"name":"say_again","arguments":{}}'}
    return ("{" + ",".join(f'"{key}":{value}' for key, value in (parts | changes).items()) + "}").encode()


def said(value: str) -> str:
    return '{"name":"say_again","arguments":{"name":' + value + "}}"


async def test_what_is_no_json_is_a_parse_error(line: Line) -> None:
    deep = "[" * 5000 + "]" * 5000
    for body in (
        b"",
        b" ",
        b"{",
        b"nonsense",
        b"{'jsonrpc': '2.0'}",
        text() + b"x",
        text() + text(),
        text(id="01"),
        text(id="9" * 5000),
        text(params=said("NaN")),
        text(params=said("Infinity")),
        text(params=said("-Infinity")),
        text(params=said('"\\ud800"')),
        text(params=said('"\\udc00\\ud800"')),
        text(params=said('"\\x41"')),
        text(params=said('"a\nb"')),
        text(params=said(deep)),
        text(params='{"a":' * 5000 + "1" + "}" * 5000),
        text().replace(b"say_again", b"say\xffagain"),
        text().replace(b"say_again", b"\xed\xa0\x80"),
        text().replace(b"say_again", b"\xc0\xaf"),
        b"\xef\xbb\xbf" + text(),
        text().decode().encode("utf-16"),
        text().decode().encode("utf-32-le"),
        b"[" * 200_000,
        b"\0" * 1000,
    ):
        answer = await line.ask(body)
        assert (answer.status, answer.error["code"]) == (400, PARSE_ERROR), body[:80]
        assert answer.json["id"] is None


async def test_what_is_no_message_is_an_invalid_request(line: Line) -> None:
    for value in (
        None,
        True,
        7,
        1.5,
        "ping",
        {},
        {"jsonrpc": "2.0"},
        {"jsonrpc": "1.0", "id": 1, "method": "ping"},
        {"jsonrpc": 2.0, "id": 1, "method": "ping"},
        {"id": 1, "method": "ping"},
        {"jsonrpc": "2.0", "id": 1, "method": None},
        {"jsonrpc": "2.0", "id": 1, "method": 5},
        {"jsonrpc": "2.0", "id": 1, "method": ["ping"]},
        {"jsonrpc": "2.0", "id": 1, "method": "ping", "params": []},
        {"jsonrpc": "2.0", "id": 1, "method": "ping", "params": [1]},
        {"jsonrpc": "2.0", "id": 1, "method": "ping", "params": "x"},
        {"jsonrpc": "2.0", "id": 1, "method": "ping", "params": 0},
        {"jsonrpc": "2.0", "id": 1, "method": "ping", "params": False},
        {"jsonrpc": "2.0", "id": 1, "result": {}, "error": {"code": 1, "message": "m"}},
        {"jsonrpc": "2.0", "id": 1, "result": "done"},
        {"jsonrpc": "2.0", "id": 1, "result": None},
        {"jsonrpc": "2.0", "id": 1, "error": "bad"},
        {"jsonrpc": "2.0", "id": 1, "result": {}, "params": [1]},
    ):
        answer = await line.ask(value)
        assert (answer.status, answer.error["code"]) == (400, INVALID_REQUEST), value
        known = value.get("id") if isinstance(value, dict) else None
        assert answer.json["id"] == known, value


async def test_batches_are_refused_whatever_they_hold(line: Line) -> None:
    for batch in ([], [call("ping")], [call("ping")] * 3, [1, 2], [[]], [initialize()]):
        answer = await line.ask(batch)
        assert (answer.status, answer.error["code"]) == (400, INVALID_REQUEST)
        assert "batches" in answer.error["message"]


async def test_ids_of_the_wrong_kind_are_refused(line: Line) -> None:
    for wrong in ("null", "true", "1.5", "1e3", "[]", "[1]", "{}", '{"a":1}', "1e400", "-0.0"):
        for method in ('"ping"', '"tools/call"', '"initialize"'):
            answer = await line.ask(text(id=wrong, method=method))
            assert (answer.status, answer.error["code"]) == (400, INVALID_REQUEST), wrong
            assert answer.json["id"] is None


async def test_ids_of_the_right_kind_come_back_as_they_were(line: Line) -> None:
    for right in (0, -1, 10**30, -(10**400), "", "7", "ü\u2028\x00", "i" * 100_000):
        answer = await line.ask({"jsonrpc": "2.0", "id": right, "method": "ping"})
        assert (answer.status, answer.json) == (200, {"jsonrpc": "2.0", "id": right, "result": {}})


async def test_unknown_methods_and_odd_params_are_errors_of_the_protocol(line: Line) -> None:
    for method in (
        "no/such",
        "",
        " ",
        "tools/call ",
        "TOOLS/CALL",
        "__init__",
        "x" * 100_000,
        "notifications/progress",
    ):
        answer = await line.ask({"jsonrpc": "2.0", "id": 1, "method": method})
        assert (answer.status, answer.error["code"]) == (200, METHOD_NOT_FOUND), method[:50]
    odd: list[Any] = [None, True, 0, 1.5, "", [], {}, "x" * 5000]
    for params in (
        *({"name": value, "arguments": {}} for value in odd),
        *({"name": "say_again", "arguments": value} for value in (True, 0, "", [], "x")),
        *({"name": "say_again", "arguments": {"name": "x"}, "_meta": value} for value in (True, 0, "", [])),
        {"arguments": {}},
    ):
        answer = await line.ask({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params})
        assert (answer.status, answer.error["code"]) == (200, INVALID_PARAMS), params


async def test_odd_arguments_are_errors_of_the_tool_that_name_the_field(line: Line) -> None:
    for value in (None, True, 7, 1.5, [], {}, [[]], 10**400):
        answer = await line.ask(call("say_again", name=value))
        assert answer.status == 200
        error = answer.json["result"]["_meta"]["rookery/error"]
        assert (error["code"], "name" in error["message"]) == ("INVALID_PARAMS", True), value
    answer = await line.ask(call("say_again", name="x", **{"other" * 100: 1}))
    assert answer.json["result"]["isError"]


async def test_deep_but_readable_arguments_are_answered(line: Line) -> None:
    for depth in (50, 150, 190):
        answer = await line.ask(text(params=said("[" * depth + "]" * depth)))
        assert answer.status == 200
        assert answer.json["result"]["isError"]


async def test_all_of_unicode_that_can_be_said_comes_back(line: Line) -> None:
    for value in ("ü", "\u2028\u2029", "\x01\x1f", "\U0001f680", "\uffff\ufffe", '"\\/', "‮abc", "a" * 1_000_000):
        answer = await line.ask(call("say_again", name=value))
        assert answer.json["result"]["structuredContent"] == {"text": value}
    answer = await line.ask(text(params=said('"\\ud83d\\ude80"')))
    assert answer.json["result"]["structuredContent"] == {"text": "\U0001f680"}


async def test_a_nul_which_no_database_keeps_is_refused_by_the_name_of_its_field(line: Line) -> None:
    answer = await line.ask(text(params=said('"a\\u0000b"')))
    assert answer.status == 200
    error = answer.json["result"]["_meta"]["rookery/error"]
    assert (error["code"], "name: contains" in error["message"]) == ("INVALID_PARAMS", True)


async def test_the_last_of_two_members_of_one_name_counts_as_at_every_door(line: Line) -> None:
    answer = await line.ask(b'{"method":"no/such",' + text()[1:-1] + b',"id":2,"method":"ping","params":{}}')
    assert (answer.status, answer.json) == (200, {"jsonrpc": "2.0", "id": 2, "result": {}})


async def test_notifications_are_taken_without_an_answer(line: Line) -> None:
    for method in ("initialized", "progress", "cancelled", "roots/list_changed", "no/such", "message"):
        for params in (None, {}, {"requestId": 1}, {"requestId": [1]}, {"requestId": None}, {"progressToken": {}}):
            message = {"jsonrpc": "2.0", "method": f"notifications/{method}"}
            answer = await line.ask(message if params is None else {**message, "params": params})
            assert (answer.status, answer.body) == (202, b""), (method, params)


async def test_a_request_without_an_id_is_taken_for_a_notification_and_does_nothing(line: Line) -> None:
    for method in ("tools/call", "initialize", "ping", "no/such"):
        answer = await line.ask({"jsonrpc": "2.0", "method": method, "params": {"name": "ping", "arguments": {}}})
        assert (answer.status, answer.body) == (202, b"")


async def test_answers_that_nobody_asked_for_are_dropped(line: Line) -> None:
    for request in (1, "1", 0, "", None, "x" * 10_000, 10**30, "a1b2c3d4-1"):
        for body in ({"result": {}}, {"result": {"a": [1]}}, {"error": {"code": 1, "message": "m"}}, {"error": {}}):
            answer = await line.ask({"jsonrpc": "2.0", "id": request, **body})
            assert (answer.status, answer.body) == (202, b""), (request, body)


async def test_a_second_handshake_on_a_session_is_an_error_or_the_same_again(line: Line, trusting: Web) -> None:
    answer = await line.ask(initialize())
    assert answer.status == 200
    assert len(trusting.endpoint.table) == 1


async def test_a_handshake_that_says_too_little_opens_nothing(trusting: Web) -> None:
    for params in (None, {}, {"protocolVersion": 5}, {"protocolVersion": "2025-11-25"}, {"clientInfo": {}}):
        message = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params}
        answer = await trusting.post(message)
        assert answer.status_code == 200
        assert answer.json()["error"]["code"] == INVALID_PARAMS
        assert "mcp-session-id" not in answer.headers
    assert len(trusting.endpoint.table) == 0


# The same in the era without a handshake.


async def test_the_newest_revision_refuses_headers_that_do_not_say_what_the_body_says(trusting: Web) -> None:
    message, headers = modern("tools/call", name="ping", arguments={})
    for change in (
        {"mcp_method": "tools/list"},
        {"mcp_method": None},
        {"mcp_method": ""},
        {"mcp_name": "say_again"},
        {"mcp_name": None},
        {"mcp_name": "PING"},
        {"mcp_name": "=?base64?cGluZw?="},
        {"mcp_name": "=?base64?****?="},
    ):
        answer = await trusting.post(message, None, **{**headers, **change})
        assert answer.status_code == 400, change
        assert answer.json()["id"] == 7
    assert (await trusting.post(message, None, **headers)).status_code == 200


async def test_the_newest_revision_takes_no_answers_and_no_incomplete_envelope(trusting: Web) -> None:
    message, headers = modern("tools/list")
    assert (await trusting.post({"jsonrpc": "2.0", "id": 1, "result": {}}, None, **headers)).status_code == 400
    meta = message["params"]["_meta"]
    for key in meta:
        less = {name: value for name, value in meta.items() if name != key}
        broken = {**message, "params": {"_meta": less}}
        answer = await trusting.post(broken, None, **headers)
        assert answer.status_code == (400 if not key.endswith("clientInfo") else answer.status_code), key
    for odd in (None, [], "x", 5, {"io.modelcontextprotocol/protocolVersion": 5}):
        answer = await trusting.post({**message, "params": {"_meta": odd}}, None, **headers)
        assert answer.status_code == 400, odd


async def test_the_newest_revision_says_what_is_missing_by_its_status(trusting: Web) -> None:
    assert (await trusting.modern("no/such")).status_code == 404
    unknown = await trusting.modern("tools/call", name="no_such_tool", arguments={})
    assert (unknown.status_code, unknown.json()["error"]["code"]) == (400, INVALID_PARAMS)
    odd = await trusting.modern("tools/call", name="say_again", arguments={"name": 5})
    assert (odd.status_code, odd.json()["result"]["isError"]) == (200, True)


async def test_a_fault_of_ours_is_told_without_its_text(trusting: Web) -> None:
    answer = await trusting.call(await trusting.initialize(), "fail_badly")
    assert answer.status_code == 200
    assert answer.json()["result"]["isError"]
    assert "secret" not in answer.text
    assert "Traceback" not in answer.text


def test_the_text_of_a_call_is_one() -> None:
    assert json.loads(text(params=said('"x"')))["params"]["arguments"] == {"name": "x"}

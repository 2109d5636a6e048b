"""Random bodies and headers: always an answer of the right class, never a fault, and the next request is served."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.server.streamable.raw import Answer, Raw, request, usual
from tests.server.streamable.web import LEGACY, MODERN, Web, call, modern

MANY = settings(
    max_examples=250, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)
PING = json.dumps(call("ping")).encode()
MODERN_PING, MODERN_HEADERS = modern("tools/call", name="ping", arguments={})

# Bodies.

SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20)
JSON: st.SearchStrategy[Any] = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=10,
)
NAMES = st.sampled_from(["tools/call", "tools/list", "ping", "initialize", "prompts/get", "resources/read", "no/such"])
NOTIFICATIONS = st.sampled_from(["initialized", "cancelled", "progress", "roots/list_changed"])
METHODS = NAMES | NOTIFICATIONS.map("notifications/{}".format) | st.text(max_size=12) | JSON
PARAMS = st.dictionaries(
    st.sampled_from(["name", "arguments", "_meta", "uri", "cursor", "requestId", "protocolVersion", "capabilities"]),
    JSON | st.sampled_from(["ping", "say_again", {"name": "x"}, {"name": 5}, {"progressToken": 1}]),
    max_size=4,
)
MEMBERS = {
    "id": st.integers() | st.text(max_size=8) | JSON,
    "method": METHODS,
    "params": PARAMS | JSON,
    "result": JSON,
    "error": JSON,
}
MESSAGES = st.fixed_dictionaries({"jsonrpc": st.just("2.0")}, optional=MEMBERS)
ODD_MESSAGES = st.fixed_dictionaries({"jsonrpc": JSON}, optional=MEMBERS)
TEXTS = (MESSAGES | ODD_MESSAGES | JSON | st.lists(MESSAGES, max_size=3)).map(lambda value: json.dumps(value).encode())


@st.composite
def broken(draw: st.DrawFn) -> bytes:
    """A body with a few bytes changed, cut off or added."""
    body = bytearray(draw(TEXTS))
    for _ in range(draw(st.integers(1, 3))):
        place = draw(st.integers(0, len(body)))
        body[place : place + draw(st.integers(0, 3))] = draw(st.binary(max_size=3))
    return bytes(body)


BODIES = st.binary(max_size=60) | TEXTS | broken()


def owed(body: bytes) -> set[int]:
    """The statuses that a body of the handshake era may get, by a reading of our own."""
    try:
        value = json.loads(body.decode(), parse_constant=_no_number)
        json.dumps(value, ensure_ascii=False).encode()
    except ValueError:
        return {400}
    if not isinstance(value, dict) or value.get("jsonrpc") != "2.0":
        return {400}
    has_id, usable = "id" in value, isinstance(value.get("id"), int | str) and not isinstance(value["id"], bool)
    params = value.get("params")
    if params is not None and not isinstance(params, dict):
        return {400}
    if "method" in value:
        if not isinstance(value["method"], str) or (has_id and not usable):
            return {400}
        return {200} if has_id else {202}
    parts = [value[name] for name in ("result", "error") if name in value]
    answers = len(parts) == 1 and isinstance(parts[0], dict) and (usable or value.get("id") is None)
    return {202} if answers else {400}


def _no_number(text: str) -> Any:
    raise ValueError(text)


# Headers.

NAMES_OF_HEADERS = st.sampled_from(
    [
        *("accept", "authorization", "connection", "content-encoding", "content-type", "expect", "host"),
        *("last-event-id", "mcp-method", "mcp-name", "mcp-param-x", "mcp-protocol-version", "mcp-session-id"),
        *("origin", "te", "traceparent", "transfer-encoding", "upgrade", "x-y"),
    ]
)
KNOWN_VALUES = st.sampled_from(
    [
        *("", "*", "*/*", "application/json", "text/event-stream", "text/html", "gzip", "chunked", "trailers"),
        *("close", "keep-alive", "h2c", "100-continue", "localhost", "evil.example", "null", "Bearer x", "0-1"),
        *("http://localhost", "https://evil.example", "tools/call", "ping", LEGACY, MODERN),
        f"00-{'a' * 32}-{'b' * 16}-01",
    ]
)
LETTERS = st.characters(min_codepoint=32, max_codepoint=255, exclude_characters="\x7f")
VALUES = KNOWN_VALUES | st.text(LETTERS, max_size=30)
CHANGES = st.lists(st.tuples(NAMES_OF_HEADERS, VALUES), max_size=3)
KNOWN = {200, 202, 204, 400, 403, 404, 405, 406, 408, 415, 421, 501}


class Client:
    """A connection that is opened again when the server has closed it."""

    def __init__(self, web: Web, session: str) -> None:
        self.web, self.session = web, session

    async def served(self, data: bytes) -> Answer:
        """The answer to some bytes, and then to a request in good order, on the same connection or the next."""
        async with Raw(self.web.port) as raw:
            raw_answer = await raw.ask(data)
        assert raw_answer.status < 500 or raw_answer.status == 501, raw_answer
        assert b"Traceback" not in raw_answer.body
        async with Raw(self.web.port) as raw:
            headers = usual(PING, mcp_session_id=self.session, mcp_protocol_version=LEGACY)
            after = await raw.ask(request("POST", "/mcp", headers, PING))
        assert after.status == 200
        return raw_answer


@pytest.fixture(autouse=True)
def no_traceback(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    yield
    assert not [record.getMessage() for record in caplog.get_records("call") if record.exc_info]


async def client(web: Web) -> Client:
    """The one client of a test, kept over its examples."""
    found = getattr(web, "fuzzing", None)
    if found is None:
        found = Client(web, await web.initialize())
        vars(web)["fuzzing"] = found
    return found


@MANY
@given(body=BODIES)
async def test_random_bodies_get_what_they_are_owed(trusting: Web, body: bytes) -> None:
    one = await client(trusting)
    headers = usual(body, mcp_session_id=one.session, mcp_protocol_version=LEGACY)
    answer = await one.served(request("POST", "/mcp", headers, body))
    assert {answer.status} <= owed(body), (body, answer)
    if answer.status != 202:
        told = answer.json
        assert ("result" in told) != ("error" in told)
        assert told.get("error", {}).get("code") != 0, "the text of an exception"


@MANY
@given(body=BODIES)
async def test_random_bodies_of_the_newest_revision_are_answered(trusting: Web, body: bytes) -> None:
    one = await client(trusting)
    headers = usual(body, mcp_protocol_version=MODERN, mcp_method="tools/call", mcp_name="ping")
    answer = await one.served(request("POST", "/mcp", headers, body))
    assert answer.status in ({202, 400} if owed(body) == {202} else {400}), (body, answer)


@MANY
@given(method=st.sampled_from(["POST", "GET", "DELETE", "OPTIONS", "PUT"]), changes=CHANGES, newest=st.booleans())
async def test_random_headers_are_answered(
    trusting: Web, method: str, changes: list[tuple[str, str]], newest: bool
) -> None:
    one = await client(trusting)
    body = json.dumps(MODERN_PING).encode() if newest else PING
    base = usual(body, **MODERN_HEADERS) if newest else usual(body, mcp_session_id=one.session)
    if method == "GET":
        # A stream in good order would not end.
        base = [pair for pair in base if pair[0] not in ("accept", "mcp-session-id")]
    if method == "DELETE":
        base = [pair for pair in base if pair[0] != "mcp-session-id"]
    answer = await one.served(request(method, "/mcp", [*base, *changes, ("connection", "close")], body))
    assert answer.status in KNOWN, answer

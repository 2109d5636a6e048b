"""Heads of requests that are huge, endless, malformed or odd: a 4xx or a closed connection, and the server goes on."""

import asyncio
import json
from collections.abc import AsyncIterator

import psutil
import pytest

from rookery.server import heads
from tests.server.streamable import probes
from tests.server.streamable.conftest import MakeWeb
from tests.server.streamable.raw import Answer, Raw, post, request, usual
from tests.server.streamable.tap import Tap
from tests.server.streamable.web import Web, call, head, initialize, until

HOST = ("host", "localhost")
PING = json.dumps(call("ping")).encode()
LARGE = 60 << 20


@pytest.fixture(autouse=True)
async def nothing_breaks(trusting: Web, caplog: pytest.LogCaptureFixture) -> AsyncIterator[None]:
    """After every test the server serves, and its log has no traceback."""
    yield
    assert (await trusting.post(initialize())).status_code == 200
    assert not [record.getMessage() for record in caplog.get_records("call") if record.exc_info]


async def outcome(web: Web, *parts: bytes) -> int | None:
    """The status of the answer, or None if the server hangs up instead."""
    async with Raw(web.port) as raw:
        try:
            return (await raw.ask(*parts)).status
        except EOFError:
            return None


def memory() -> int:
    return psutil.Process().memory_info().rss


# Too much.


async def test_one_huge_header_is_refused(trusting: Web) -> None:
    for size in (heads.MAX_HEAD_BYTES, 10 << 20):
        assert await outcome(trusting, request("GET", "/mcp", [HOST, ("x", "y" * size)])) in (431, None), size
    assert await outcome(trusting, request("GET", "/mcp", [HOST, ("x", "y" * 60_000)])) == 200


async def test_too_many_headers_are_refused(trusting: Web) -> None:
    for count in (heads.MAX_HEADERS, 100_000):
        many = [(f"x{number}", "y") for number in range(count)]
        assert await outcome(trusting, request("GET", "/mcp", [HOST, *many])) in (431, None), count
    few = [(f"x{number}", "y") for number in range(heads.MAX_HEADERS - 1)]
    assert await outcome(trusting, request("GET", "/mcp", [HOST, *few])) == 200


async def test_a_huge_target_is_refused(trusting: Web) -> None:
    for size in (heads.MAX_HEAD_BYTES, 10 << 20):
        assert await outcome(trusting, request("GET", "/mcp?" + "x" * size, [HOST])) in (400, 431, None), size


POST = b"POST /mcp HTTP/1.1\r\nhost: localhost\r\ntransfer-encoding: chunked\r\n\r\n"
ENDLESS = {
    "one header": (b"GET /mcp HTTP/1.1\r\nhost: localhost\r\nx: ", b"x" * 65536),
    "headers": (b"GET /mcp HTTP/1.1\r\nhost: localhost\r\n", b"x: y\r\n" * 10_000),
    "a target": (b"GET /", b"x" * 65536),
    "empty lines": (b"", b"\r\n" * 32768),
    "one header after the body": (POST + b"0\r\nx: ", b"x" * 65536),
    "headers after the body": (POST + b"0\r\n", b"x: y\r\n" * 10_000),
    "the size of a chunk": (POST + b"1;", b"x" * 65536),
}


@pytest.mark.parametrize("what", ENDLESS)
async def test_a_head_without_end_costs_little(trusting: Web, what: str) -> None:
    start, pieces = ENDLESS[what]
    before = memory()
    async with Raw(trusting.port) as raw:
        await raw.send(start, *[pieces] * (LARGE // len(pieces)))
        assert memory() - before < LARGE / 2


async def test_who_does_not_say_what_it_wants_is_not_waited_for(trusting: Web, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(heads, "PATIENCE_S", 0.05)
    for start in (b"", b"G", b"GET /mcp HTTP/1.1\r\nhost: local"):
        async with Raw(trusting.port) as raw:
            await raw.send(start)
            assert await raw.hung_up()


async def test_a_head_that_drips_is_not_waited_for_either(trusting: Web, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(heads, "PATIENCE_S", 0.3)
    async with Raw(trusting.port) as raw:
        await raw.send(b"GET /mcp HTTP/1.1\r\nhost: localhost\r\nx: ")
        waiting = asyncio.ensure_future(raw.hung_up())
        while not waiting.done():
            await raw.send(b"y")
            await asyncio.wait((waiting,), timeout=0.02)
        assert await waiting


async def test_the_rest_of_a_refused_body_is_not_waited_for_without_end(
    trusting: Web, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(heads, "PATIENCE_S", 0.2)
    async with Raw(trusting.port) as raw:
        answer = await raw.ask(request("POST", "/mcp", usual(content_length="9000000")), b"x" * 100)
        assert answer.status == 413
        waiting = asyncio.ensure_future(raw.hung_up())
        while not waiting.done():
            await raw.send(b"x")
            await asyncio.wait((waiting,), timeout=0.02)


async def test_a_long_answer_is_not_cut_off_by_a_head_that_does_not_come(
    trusting: Web, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(heads, "PATIENCE_S", 0.05)
    session = await trusting.initialize()
    async with Raw(trusting.port) as raw:
        await raw.send(post(call("wait_for", name="no head"), mcp_session_id=session), b"GET /mc")
        held = await until(lambda: probes.waiting.get("no head"), "the call runs")
        asyncio.get_running_loop().call_later(0.2, held.set)
        assert (await raw.answer()).status == 200


# Malformed.


async def test_a_malformed_head_is_refused_and_the_connection_closed(trusting: Web) -> None:
    for wrong in (
        b"GET /mcp HTTP/1.1\r\nhost: localhost\r\nno colon\r\n\r\n",
        b"GET /mcp HTTP/1.1\r\nhost: localhost\r\nx: a\0b\r\n\r\n",
        b"GET /mcp HTTP/1.1\r\nhost: localhost\r\nx: folded\r\n  line\r\n\r\n",
        b"GET /mcp HTTP/1.1\r\nhost : localhost\r\n\r\n",
        b"GET /mcp HTTP/1.1\r\n: localhost\r\n\r\n",
        b"GET /mcp HTTP/1.1\nhost: localhost\n\n",
        b"GET /mcp HTTP/1.1\r\nhost: localhost\rx: y\r\n\r\n",
        b"GET /mcp HTTP/9.9\r\nhost: localhost\r\n\r\n",
        b"GET /mcp HTTQ/1.1\r\nhost: localhost\r\n\r\n",
        b"get /mcp HTTP/1.1\r\nhost: localhost\r\n\r\n",
        b"FLY /mcp HTTP/1.1\r\nhost: localhost\r\n\r\n",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        b"\xff\xfe\x00\r\n\r\n",
        b'{"jsonrpc":"2.0","id":1,"method":"ping"}\r\n\r\n',
    ):
        async with Raw(trusting.port) as raw:
            assert (await raw.ask(wrong)).status == 400, wrong
            assert await raw.hung_up()


async def test_a_session_or_token_in_odd_letters_is_refused_like_any_other(trusting: Web) -> None:
    async with Raw(trusting.port) as raw:
        for odd in ("\xe9\xff", "\x80", "%00", "' OR 1=1", "a" * 10_000, "../../x"):
            assert (await raw.ask(post(PING, mcp_session_id=odd))).status == 404, odd
            assert (await raw.ask(post(PING, mcp_protocol_version=odd))).status == 400, odd


# Targets and methods.


async def test_no_trick_with_the_path_leads_around_the_checks(trusting: Web) -> None:
    tricks = ["//mcp", "/mcp/../mcp", "/./mcp", "/mcp%00", "/mcp;x", "/MCP", "/mcp//", "/mcp%2f..", "/mcp%20", "/mcp/x"]
    tricks += ["/mcp\\", "/%", "/%zz", "/%ff", "/../../etc/passwd", "/%2e%2e/rookery.db", "/healthz/../mcp", "/..;/mcp"]
    async with Raw(trusting.port) as raw:
        for path in tricks:
            for method in ("POST", "GET", "DELETE"):
                answer = await raw.ask(request(method, path, usual(PING), PING))
                assert answer.status == 404, (method, path)
    for path in ("mcp", "/m\xe9cp", "http:/mcp"):
        assert await outcome(trusting, request("GET", path, [HOST])) == 400, path


async def test_other_spellings_of_the_path_meet_the_same_checks(make_web: MakeWeb) -> None:
    async with make_web() as web:
        for path in ("/mcp/", "/%6dcp", "/%6D%63%70", "/mcp%2f", "/mcp?token=x", "/mcp#x", "http://localhost/mcp"):
            assert await outcome(web, request("POST", path, usual(PING), PING)) == 401, path


async def test_odd_methods_are_refused(trusting: Web) -> None:
    for method in ("TRACE", "PATCH", "PUT", "PROPFIND", "MKCOL", "QUERY", "CONNECT", "UNLOCK", "PURGE"):
        assert await outcome(trusting, request(method, "/mcp", [HOST])) == 405, method
    assert await outcome(trusting, request("CONNECT", "example.org:443", [("host", "example.org:443")])) == 400
    assert await outcome(trusting, request("OPTIONS", "*", [HOST])) == 404
    answer = await trusting.http.request("TRACE", "/mcp", headers=head(x_secret="forty-two"))
    assert "forty-two" not in answer.text


async def test_a_head_alone_can_be_asked_for(trusting: Web) -> None:
    answer = await trusting.http.head("/mcp", headers={"accept": "text/event-stream"})
    assert (answer.status_code, answer.content) == (200, b"")
    assert answer.headers["content-type"] == "application/json"


# Versions of HTTP, and several requests at once.


async def test_an_old_client_is_answered_and_not_kept(trusting: Web) -> None:
    session = await trusting.initialize()
    async with Raw(trusting.port) as raw:
        old = post(PING, mcp_session_id=session).replace(b"HTTP/1.1", b"HTTP/1.0", 1)
        answer = await raw.ask(old)
        assert (answer.status, answer.headers["connection"]) == (200, "close")
        assert await raw.hung_up()
    assert await outcome(trusting, b"GET /mcp HTTP/1.0\r\n\r\n") == 421


async def test_another_protocol_is_not_switched_to(trusting: Web, caplog: pytest.LogCaptureFixture) -> None:
    for protocol in ("websocket", "h2c", "TLS/1.2"):
        async with Raw(trusting.port) as raw:
            switch = [HOST, ("connection", "Upgrade, HTTP2-Settings"), ("upgrade", protocol), ("http2-settings", "A")]
            assert (await raw.ask(request("GET", "/healthz", switch))).status == 200
            assert (await raw.ask(request("GET", "/healthz", [HOST]))).status == 200
            answer = await raw.ask(request("POST", "/mcp", [*usual(PING), *switch[1:]], PING))
            assert answer.status == 400
            assert "without Upgrade" in answer.error["message"]
            assert await raw.hung_up()
    assert not [record for record in caplog.records if record.name == "uvicorn.error"]


async def test_requests_in_a_row_are_answered_in_their_order(trusting: Web) -> None:
    session = await trusting.initialize()
    sent = [{**call("say_again", name=f"name {number}"), "id": number} for number in range(50)]
    async with Raw(trusting.port) as raw:
        await raw.send(b"".join(post(message, mcp_session_id=session) for message in sent))
        answers = [await raw.answer() for _ in sent]
        assert [answer.json["id"] for answer in answers] == list(range(50))


async def test_a_bad_request_in_a_row_ends_the_row(trusting: Web) -> None:
    session = await trusting.initialize()
    good = post(PING, mcp_session_id=session)
    async with Raw(trusting.port) as raw:
        assert (await raw.ask(good)).status == 200
        await raw.send(b"NONSENSE\r\n\r\n" + good)
        assert (await raw.answer()).status == 400
        assert await raw.hung_up()


async def test_a_client_that_leaves_streams_in_a_row_leaves_none_behind(trusting: Web) -> None:
    session = await trusting.initialize()
    listen = request("GET", "/mcp", [HOST, ("accept", "text/event-stream"), ("mcp-session-id", session)])
    found = next(iter(trusting.endpoint.table._open.values()))
    async with Raw(trusting.port) as raw:
        await raw.send(listen + request("GET", "/healthz", [HOST]))
        assert (await raw.head())[0] == 200
        assert found.busy == 1
    await until(lambda: found.busy == 0, "the stream ends with its connection")


async def test_a_stream_is_not_garbled_by_nonsense_behind_it(trusting: Web) -> None:
    session = await trusting.initialize()
    async with Tap(trusting.port) as tap:
        await tap.ask(None, None, method="GET", accept="text/event-stream", mcp_session_id=session)
        assert tap.status == 200
        await tap.send(b"NONSENSE\r\n\r\n")
        with pytest.raises((EOFError, OSError)):
            await tap.rest()


# Headers that may stand only once.


@pytest.mark.parametrize(
    "name",
    [
        "authorization",
        "content-type",
        "content-encoding",
        "host",
        "last-event-id",
        "mcp-method",
        "mcp-name",
        "mcp-protocol-version",
        "mcp-session-id",
        "mcp-param-region",
        "origin",
    ],
)
async def test_a_header_that_decides_may_stand_only_once(trusting: Web, name: str) -> None:
    both: list[Answer] = []
    async with Raw(trusting.port) as raw:
        for other in (name, name.upper(), name.title()):
            twice = [(key, value) for key, value in usual(PING) if key != name] + [(name, "localhost"), (other, "x")]
            both.append(await raw.ask(request("POST", "/mcp", twice, PING)))
            both.append(await raw.ask(request("GET", "/mcp", twice[:1] + twice[-2:])))
    assert {answer.status for answer in both} == {400}
    assert all(f"header {name} appears more than once" in answer.error["message"] for answer in both)

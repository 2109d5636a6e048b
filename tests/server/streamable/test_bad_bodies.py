"""Bodies that are of the wrong kind, too large, packed, without end, or not what their headers say."""

import asyncio
import gzip
import json
import zlib

import pytest

from rookery.server.streamable import requests
from tests.server.streamable.conftest import MakeWeb
from tests.server.streamable.raw import Raw, post, request, usual
from tests.server.streamable.web import Web, call, head, initialize, until

BODY = json.dumps(call("ping")).encode()
LIMIT = 64 * 1024
CHUNKED = {"content_length": None, "transfer_encoding": "chunked"}


def chunk(data: bytes) -> bytes:
    return b"%x\r\n%s\r\n" % (len(data), data)


async def serves(web: Web) -> bool:
    """Whether the server is still itself."""
    return (await web.modern("tools/call", name="ping", arguments={})).status_code == 200


async def test_only_json_is_taken(trusting: Web) -> None:
    session = await trusting.initialize()
    wrong = ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", "application/jsonp")
    for kind in (*wrong, "application/json-rpc", "", "json", "text/json", None):
        answer = await trusting.post(BODY, content_type=kind, mcp_session_id=session)
        assert answer.status_code == 415, kind
    for kind in ("application/json; charset=utf-8", "Application/JSON", "application/json;charset=UTF-8;x=y"):
        answer = await trusting.post(BODY, content_type=kind, mcp_session_id=session)
        assert answer.status_code == 200, kind


async def test_a_client_has_to_take_an_answer_of_a_kind_that_there_is(trusting: Web) -> None:
    session = await trusting.initialize()
    async with Raw(trusting.port) as raw:
        for accept in (None, "", "text/html", "application/xml, image/*", "application", "json"):
            answer = await raw.ask(post(BODY, accept=accept, mcp_session_id=session))
            assert answer.status == 406, accept
        for accept in ("*/*", "application/json", "APPLICATION/JSON;q=0.5", "text/html, application/*"):
            answer = await raw.ask(post(BODY, accept=accept, mcp_session_id=session))
            assert (answer.status, answer.headers["content-type"]) == (200, "application/json"), accept
        answer = await raw.ask(post(BODY, accept="text/event-stream", mcp_session_id=session))
        assert (answer.status, answer.headers["content-type"]) == (200, "text/event-stream")


async def test_what_a_client_takes_may_be_said_in_several_headers(trusting: Web) -> None:
    session = await trusting.initialize()
    headers = [*usual(BODY, accept="text/event-stream", mcp_session_id=session), ("accept", "application/json")]
    async with Raw(trusting.port) as raw:
        assert (await raw.ask(request("POST", "/mcp", headers, BODY))).headers["content-type"] == "application/json"


async def test_packed_bodies_are_not_unpacked(trusting: Web) -> None:
    bomb = gzip.compress(b" " * 50_000_000)
    for coding, body in {
        "gzip": gzip.compress(BODY),
        "GZIP": bomb,
        "deflate": zlib.compress(BODY),
        "br": BODY,
        "zstd": BODY,
        "identity, gzip": bomb,
        "x": BODY,
    }.items():
        answer = await trusting.post(body, content_encoding=coding)
        assert answer.status_code == 415, coding
        assert answer.headers["accept-encoding"] == "identity"
    assert (await trusting.post(bomb)).status_code == 400, "what is packed and does not say so is no JSON"
    assert (await trusting.post(initialize(), content_encoding="identity")).status_code == 200


async def test_a_packed_transfer_is_not_taken_either(trusting: Web) -> None:
    for coding in ("gzip, chunked", "chunked, chunked", "x, chunked"):
        headers = usual(b"", content_length=None, transfer_encoding=coding)
        async with Raw(trusting.port) as raw:
            answer = await raw.ask(request("POST", "/mcp", headers, chunk(BODY) + chunk(b"")))
            assert answer.status in (400, 501), coding
    assert await serves(trusting)


async def test_a_body_that_is_said_to_be_too_large_is_refused_unread(make_web: MakeWeb) -> None:
    async with make_web(auth_mode="none", http_max_body_bytes=LIMIT) as web, Raw(web.port) as raw:
        for length in (LIMIT + 1, 10**12):
            async with Raw(web.port) as other:
                assert (await other.ask(request("POST", "/mcp", usual(content_length=str(length))))).status == 413
        whole = b" " * LIMIT
        assert (await raw.ask(post(whole[:-1] + b"1"))).status == 400, "what is just small enough is read"


async def test_a_body_that_turns_out_too_large_is_refused(make_web: MakeWeb) -> None:
    async with make_web(auth_mode="none", http_max_body_bytes=LIMIT) as web, Raw(web.port) as raw:
        head = request("POST", "/mcp", usual(**CHUNKED))
        answer = await raw.ask(head, *[chunk(b" " * 1000)] * 70)
        assert answer.status == 413
        await raw.send(*[chunk(b" " * 1000)] * 1000, chunk(b""))
        next_answer = await raw.ask(request("GET", "/healthz", [("host", "localhost")]))
        assert next_answer.json == {"status": "ok"}, "the rest was read and thrown away"


@pytest.mark.parametrize("megabytes", [5, 30])
async def test_a_client_that_sends_too_much_sees_the_answer(trusting: Web, megabytes: int) -> None:
    async def pieces() -> object:
        for _ in range(megabytes * 16):
            yield b" " * 65536

    for body in (b" " * (megabytes << 20), pieces()):
        answer = await trusting.http.post("/mcp", content=body, headers=head())  # type: ignore[arg-type]
        assert answer.status_code == 413
        assert "at most 4194304 bytes" in answer.json()["error"]["message"]


async def test_a_stranger_may_not_make_the_server_keep_a_body(make_web: MakeWeb) -> None:
    async with make_web() as web:
        answer = await web.http.post("/mcp", content=b" " * (30 << 20), headers=head("rk_" + "a" * 43))
        assert answer.status_code == 401


@pytest.mark.parametrize("start", [b"", chunk(b" "), chunk(BODY), b"5;" + b"x" * 1000])
async def test_a_body_without_end_is_given_up(trusting: Web, monkeypatch: pytest.MonkeyPatch, start: bytes) -> None:
    monkeypatch.setattr(requests, "BODY_S", 0.05)
    async with Raw(trusting.port) as raw:
        answer = await raw.ask(request("POST", "/mcp", usual(**CHUNKED)), start)
        assert (answer.status, answer.headers["connection"]) == (408, "close")
        assert await raw.hung_up()
    assert await serves(trusting)


async def test_a_body_that_drips_is_given_up_too(trusting: Web, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(requests, "BODY_S", 0.3)
    async with Raw(trusting.port) as raw:
        await raw.send(request("POST", "/mcp", usual(content_length="100000")))
        waiting = asyncio.ensure_future(raw.answer())
        while not waiting.done():
            await raw.send(b" ")
            await asyncio.wait((waiting,), timeout=0.02)
        assert (await waiting).status == 408


async def test_a_body_shorter_than_it_says_is_given_up_and_a_longer_one_is_no_second_message(
    trusting: Web, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(requests, "BODY_S", 0.05)
    async with Raw(trusting.port) as raw:
        headers = usual(content_length=str(len(BODY) + 2))
        assert (await raw.ask(request("POST", "/mcp", headers, BODY))).status == 408
    async with Raw(trusting.port) as raw:
        headers = usual(content_length=str(len(BODY) - 2))
        assert (await raw.ask(request("POST", "/mcp", headers, BODY))).status == 400
        assert await raw.hung_up()
    assert await serves(trusting)


async def test_lengths_that_are_none_or_contradict_each_other_are_refused(trusting: Web) -> None:
    length = str(len(BODY))
    for wrong in ("-5", "+5", "5.0", "0x5", "five", "", "9" * 30, f"{length}, {length}", f"{length} {length}"):
        async with Raw(trusting.port) as raw:
            answer = await raw.ask(request("POST", "/mcp", usual(content_length=wrong), BODY))
            assert answer.status == 400, wrong
            assert await raw.hung_up()
    for more in (("content-length", length), ("content-length", "1"), ("transfer-encoding", "chunked")):
        async with Raw(trusting.port) as raw:
            answer = await raw.ask(request("POST", "/mcp", [*usual(BODY), more], chunk(BODY) + chunk(b"")))
            assert answer.status == 400, more
            assert await raw.hung_up()


async def test_chunks_that_are_none_are_refused(trusting: Web) -> None:
    for wrong in (b"zz\r\n", b"-1\r\n", b"ffffffffffffffffff\r\n", b"5\r\nabcdefgh\r\n", b"5\nabcde\n", b"\r\n\r\n"):
        async with Raw(trusting.port) as raw:
            answer = await raw.ask(request("POST", "/mcp", usual(**CHUNKED), wrong))
            assert answer.status == 400, wrong
    assert await serves(trusting)


async def test_headers_after_a_body_change_nothing_and_are_not_kept(trusting: Web) -> None:
    session = await trusting.initialize()
    after = b"0\r\nmcp-session-id: x\r\nhost: evil.example\r\ncontent-type: text/html\r\n\r\n"
    async with Raw(trusting.port) as raw:
        answer = await raw.ask(request("POST", "/mcp", usual(mcp_session_id=session, **CHUNKED), chunk(BODY) + after))
        assert answer.status == 200


async def test_a_client_that_leaves_in_the_middle_of_a_body_leaves_nothing_behind(
    trusting: Web, caplog: pytest.LogCaptureFixture
) -> None:
    for start in (b"", BODY[:5]):
        async with Raw(trusting.port) as raw:
            await raw.send(request("POST", "/mcp", usual(BODY), start))
    await until(lambda: not trusting.endpoint.exchanges, "nothing runs")
    assert await serves(trusting)
    assert "Traceback" not in caplog.text


async def test_a_body_that_asks_first_is_told_to_come_only_if_its_sender_is_known(make_web: MakeWeb) -> None:
    async with make_web() as web:
        token = await web.token()
        message = json.dumps(initialize()).encode()
        async with Raw(web.port) as raw:
            await raw.send(request("POST", "/mcp", usual(message, token, expect="100-continue")))
            assert (await raw.head())[0] == 100
            assert (await raw.ask(message)).status == 200
        async with Raw(web.port) as raw:
            await raw.send(request("POST", "/mcp", usual(message, "rk_" + "a" * 43, expect="100-continue")))
            assert (await raw.head())[0] == 401

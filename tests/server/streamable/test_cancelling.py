"""Calls that a client gives up: what was begun is undone, and the record says so."""

import threading
from typing import Any

import pytest

from rookery.core.context import Context
from rookery.server.streamable import exchange, streams
from tests.server.streamable import probes
from tests.server.streamable.conftest import on_one_database
from tests.server.streamable.scripts import writes
from tests.server.streamable.tap import Tap, request
from tests.server.streamable.web import LEGACY, Web, call, modern, until


class Writing:
    """A call that has written something and goes on until it is stopped or let go."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.started = threading.Event()
        self.go_on = threading.Event()
        writes[name] = self._play

    def _play(self, ctx: Context) -> str:
        ctx.storage.set(self.name, "written")
        self.started.set()
        while not self.go_on.wait(0.005):
            ctx.check()
        return "done"


async def recalled(web: Web, name: str, token: str) -> str:
    answer = await web.modern("tools/call", token, name="recall_text", arguments={"name": name})
    return answer.json()["result"]["structuredContent"]["text"]


async def outcomes(web: Web, tool: str) -> list[str]:
    """What the audit log says of the calls of a tool, the newest first."""
    found = await web.fleet.call(web.fleet.owner, "list_audit_records", tool=tool)
    return [record.outcome for record in found.records]


async def until_recorded(web: Web, tool: str, *expected: str) -> None:
    for _ in range(200):
        if await outcomes(web, tool) == list(expected):
            return
    assert await outcomes(web, tool) == list(expected)


def on(session: str) -> dict[str, str]:
    return {"mcp_session_id": session, "mcp_protocol_version": LEGACY}


def giving_up(request_id: Any) -> dict[str, Any]:
    params = {"requestId": request_id, "reason": "enough"}
    return {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params}


async def test_a_cancelled_write_leaves_nothing_behind(web: Web) -> None:
    token = await web.token()
    session = await web.initialize(token)
    writing = Writing("cancelled")
    async with Tap(web.port) as caller:
        await caller.send(request(call("play_write", name="cancelled"), token, **on(session)))
        await until(writing.started.is_set, "the write has begun")
        assert (await web.post(giving_up(7), token, **on(session))).status_code == 202
        await caller.head()
        answer = await caller.json()
    assert answer["error"]["message"] == "Request cancelled"
    assert await recalled(web, "cancelled", token) == "nothing"
    await until_recorded(web, "play_write", "cancelled")


async def test_in_2026_07_28_a_client_cancels_by_going(web: Web) -> None:
    token = await web.token()
    message, headers = modern("tools/call", name="play_write", arguments={"name": "left"})
    writing = Writing("left")
    async with Tap(web.port) as caller:
        await caller.send(request(message, token, **headers))
        await until(writing.started.is_set, "the write has begun")
    await until(lambda: not web.endpoint.exchanges, "the call is ended")
    assert await recalled(web, "left", token) == "nothing"
    await until_recorded(web, "play_write", "cancelled")


@pytest.mark.parametrize("accept", ["application/json", "text/event-stream", "application/json, text/event-stream"])
async def test_going_cancels_whatever_kind_of_answer_was_to_come(trusting: Web, accept: str) -> None:
    message, headers = modern("tools/call", name="wait_for", arguments={"name": accept})
    async with Tap(trusting.port) as caller:
        await caller.send(request(message, **headers, accept=accept))
        await until(lambda: accept in probes.waiting, "the call runs")
    await until(lambda: probes.ended.get(accept) == "cancelled", "the handler is told")


async def test_going_cancels_also_when_more_requests_wait_behind_the_call(
    trusting: Web, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Nothing is read from such a client, so it is missed when something is said to it.
    monkeypatch.setattr(exchange, "SILENCE_S", 0.1)
    monkeypatch.setattr(streams, "PING_S", 0.05)
    message, headers = modern("tools/call", name="wait_for", arguments={"name": "piped"})
    async with Tap(trusting.port) as caller:
        await caller.send(request(message, **headers))
        await until(lambda: "piped" in probes.waiting, "the call runs")
        await caller.head()
        await caller.send(request(message, **headers) * 2)
        assert (await trusting.http.get("/healthz")).status_code == 200
    await until(lambda: probes.ended.get("piped") == "cancelled", "the handler is told")
    await until(lambda: not trusting.endpoint.exchanges, "nothing is left")


@on_one_database
async def test_in_the_handshake_era_a_lost_connection_cancels_nothing(web: Web) -> None:
    token = await web.token()
    session = await web.initialize(token)
    writing = Writing("lost")
    async with Tap(web.port) as caller:
        await caller.send(request(call("play_write", name="lost"), token, **on(session)))
        await until(writing.started.is_set, "the write has begun")
    assert (await web.http.get("/healthz")).status_code == 200
    writing.go_on.set()
    await until(lambda: not web.endpoint.exchanges, "the call ends by itself")
    assert await recalled(web, "lost", token) == "written"
    await until_recorded(web, "play_write", "done")


async def test_only_the_call_that_is_named_is_cancelled(trusting: Web) -> None:
    session, other = await trusting.initialize(), await trusting.initialize()
    waits: dict[str, tuple[str, Any]] = {
        "named": (session, 7),
        "another": (session, 8),
        "text": (session, "seven"),
        "elsewhere": (other, 7),
    }
    async with Tap(trusting.port) as a, Tap(trusting.port) as b, Tap(trusting.port) as c, Tap(trusting.port) as d:
        for (name, (where, number)), tap in zip(waits.items(), (a, b, c, d), strict=True):
            await tap.send(request(call("wait_for", name=name) | {"id": number}, **on(where)))
        await until(lambda: waits.keys() <= probes.waiting.keys(), "all calls run")
        for strange in (None, True, [7], {"id": 7}, 99, "nobody", 7.5):
            assert (await trusting.post(giving_up(strange), **on(session))).status_code == 202
        assert waits.keys() <= probes.waiting.keys()
        await trusting.post(giving_up(7), **on(session))
        await until(lambda: probes.ended["named"] == "cancelled", "the handler is told")
        for name in ("another", "text", "elsewhere"):
            probes.waiting[name].set()
        for tap in (b, c, d):
            await tap.head()
            assert "result" in await tap.json()


@on_one_database
async def test_another_identity_cannot_cancel(web: Web) -> None:
    ada, bob = await web.token(), await web.token(None)
    session, other = await web.initialize(ada), await web.initialize(bob)
    async with Tap(web.port) as caller:
        await caller.send(request(call("wait_for", name="hers"), ada, **on(session)))
        await until(lambda: "hers" in probes.waiting, "the call runs")
        assert (await web.post(giving_up(7), bob, **on(session))).status_code == 404
        assert (await web.post(giving_up(7), bob, **on(other))).status_code == 202
        assert probes.ended["hers"] == "running"
        probes.waiting["hers"].set()
        await caller.head()
        assert "result" in await caller.json()


async def test_a_call_that_is_over_cannot_be_cancelled_any_more(trusting: Web) -> None:
    session = await trusting.initialize()
    for _ in range(3):
        assert "result" in (await trusting.call(session, "ping")).json()
        assert (await trusting.post(giving_up(7), **on(session))).status_code == 202
    assert "result" in (await trusting.call(session, "ping")).json(), "and its number can be used again"

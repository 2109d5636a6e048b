"""Clients that do not read, or take for ever to say what they want: they lose their place, and nobody else theirs."""

import asyncio
import contextlib
from collections.abc import AsyncIterator

import pytest
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from rookery.core.context import Context
from rookery.server import heads, readers
from rookery.server.streamable import requests, streams
from rookery.server.streamable.session_table import SessionTable
from tests.server.streamable.census import Census, held
from tests.server.streamable.scripts import scripts
from tests.server.streamable.tap import Tap, request
from tests.server.streamable.web import LEGACY, Web, modern, until

CLIENTS = 5
PIECE = "x" * 20_000
ENOUGH = 1000
"""Pieces that fill every buffer between a handler and a client."""


async def pour(ctx: Context) -> str:
    for number in range(ENOUGH):
        ctx.log("error", f"{number} {PIECE}")
        await asyncio.sleep(0)
    await asyncio.Event().wait()
    return "never"


@contextlib.asynccontextmanager
async def several(web: Web, *, narrow: bool = True) -> AsyncIterator[list[Tap]]:
    """Clients that have connected and do not read."""
    async with contextlib.AsyncExitStack() as stack:
        yield [await stack.enter_async_context(Tap(web.port, narrow=narrow)) for _ in range(CLIENTS)]


def on(session: str) -> dict[str, str]:
    return {"mcp_session_id": session, "mcp_protocol_version": LEGACY}


async def still_serving(web: Web) -> None:
    """Somebody else is served, and leaves."""
    answer = await web.modern("tools/call", name="say_again", arguments={"name": "on"})
    assert answer.json()["result"]["structuredContent"]["text"] == "on"
    await web.http.aclose()


async def let_go() -> None:
    """Their connections are gone though they are still there themselves."""
    await until(lambda: not held(HttpToolsProtocol), "the connections are let go")


async def test_a_call_of_2026_07_28_ends_when_nobody_reads_what_it_says(
    trusting: Web, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(readers, "LOOK_S", 0.2)
    scripts["pour"] = pour
    meta = {"io.modelcontextprotocol/logLevel": "debug"}
    message, headers = modern("tools/call", name="play_script", arguments={"name": "pour"}, _meta=meta)
    async with Census(trusting), several(trusting) as clients:
        for client in clients:
            await client.send(request(message, **headers))
        await until(lambda: len(trusting.endpoint.exchanges) == CLIENTS, "the calls run")
        await still_serving(trusting)
        await until(lambda: not trusting.endpoint.exchanges, "the calls are ended")
        await let_go()


async def test_a_listener_that_does_not_read_loses_its_connection(
    trusting: Web, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(readers, "LOOK_S", 0.2)
    async with Census(trusting), several(trusting) as clients:
        for client in clients:
            session = await trusting.initialize()
            await client.send(request(None, method="GET", accept="text/event-stream", content_type=None, **on(session)))
        await trusting.http.aclose()
        await flood(trusting.endpoint.table)
        await let_go()
        await trusting.endpoint.table.end(list(trusting.endpoint.table._open.values()), "client")


async def flood(table: SessionTable) -> None:
    """Tell every session more than its connection holds, and wait until none is written to any more."""
    sessions = list(table._open.values())
    await until(lambda: all(session.busy for session in sessions), "all listen")
    for number in range(ENOUGH):
        for session in sessions:
            await session.notify("notifications/message", {"level": "info", "data": f"{number} {PIECE}"})
        await asyncio.sleep(0)
    await until(lambda: not any(session.busy for session in sessions), "they are not waited for")
    # What they could still come back for is kept, but not without end.
    assert all(session.standalone.size <= streams.KEPT_BYTES + 2 * len(PIECE) for session in sessions)


async def test_answers_that_nobody_reads_are_not_kept_for_ever(trusting: Web, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(readers, "LOOK_S", 0.2)
    message, headers = modern("tools/call", name="say_again", arguments={"name": "x" * 1_000_000})
    async with Census(trusting), several(trusting) as clients:
        for client in clients:
            await client.send(request(message, **headers) * 3)
        await still_serving(trusting)
        await let_go()


async def test_a_client_that_reads_slowly_gets_everything(trusting: Web, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(readers, "LOOK_S", 0.5)
    message, headers = modern("tools/call", name="say_again", arguments={"name": "x" * 1_000_000})
    async with Tap(trusting.port, narrow=True) as client:
        await client.ask(message, **headers)
        left = int(client.headers["content-length"])
        while left:
            # Slowly: less than a look's worth each time.
            left -= len(await client.some(100_000))
            await asyncio.sleep(0.05)


async def test_bodies_that_come_byte_by_byte_are_taken_while_they_come_and_refused_when_they_do_not_end(
    trusting: Web, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(requests, "BODY_S", 0.6)
    message, headers = modern("tools/call", name="say_again", arguments={"name": "slow"})
    whole = request(message, **headers)
    async with Census(trusting), several(trusting, narrow=False) as clients:
        patient, *stuck = clients
        for number in range(0, len(whole), 16):
            await patient.send(whole[number : number + 16])
            for client in stuck:
                await client.send(whole[number : number + 16][: len(whole) - 1 - number])
            await asyncio.sleep(0)
        await patient.head()
        assert (await patient.json())["result"]["structuredContent"]["text"] == "slow"
        await still_serving(trusting)
        for client in stuck:
            await client.head()
            assert client.status == 408


async def test_connections_that_never_say_what_they_want_are_closed(
    trusting: Web, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(heads, "PATIENCE_S", 0.3)
    async with Census(trusting), several(trusting, narrow=False) as clients:
        for number, client in enumerate(clients):
            await client.send(b"POST /mcp HTTP/1.1\r\nhost: 127.0.0.1\r\nx: "[: number * 11])
        await still_serving(trusting)
        await let_go()

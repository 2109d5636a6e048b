"""Clients that do not read, or take for ever to say what they want: they lose their place, and nobody else theirs."""

import asyncio
import contextlib
from collections.abc import AsyncIterator

import pytest
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from rookery.core.context import Context
from rookery.server import readers
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
async def deaf(web: Web) -> AsyncIterator[list[Tap]]:
    """Clients that have connected and do not read."""
    async with contextlib.AsyncExitStack() as stack:
        yield [await stack.enter_async_context(Tap(web.port, narrow=True)) for _ in range(CLIENTS)]


def on(session: str) -> dict[str, str]:
    return {"mcp_session_id": session, "mcp_protocol_version": LEGACY}


async def still_serving(web: Web) -> None:
    answer = await web.modern("tools/call", name="say_again", arguments={"name": "on"})
    assert answer.json()["result"]["structuredContent"]["text"] == "on"


async def test_a_call_of_2026_07_28_ends_when_nobody_reads_what_it_says(
    trusting: Web, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(readers, "LOOK_S", 0.3)
    scripts["pour"] = pour
    await still_serving(trusting)
    census = Census(trusting)
    await census.take()
    meta = {"io.modelcontextprotocol/logLevel": "debug"}
    message, headers = modern("tools/call", name="play_script", arguments={"name": "pour"}, _meta=meta)
    async with deaf(trusting) as clients:
        for client in clients:
            await client.send(request(message, **headers))
        await until(lambda: len(trusting.endpoint.exchanges) == CLIENTS, "the calls run")
        await still_serving(trusting)
        await until(lambda: not trusting.endpoint.exchanges, "the calls are ended")
        await trusting.http.aclose()
        await until(lambda: held(HttpToolsProtocol) <= census.before["LimitedPatience"], "the connections are let go")
    await census.compare()


async def test_a_listener_that_does_not_read_loses_its_connection(
    trusting: Web, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(readers, "LOOK_S", 0.3)
    await still_serving(trusting)
    census = Census(trusting)
    await census.take()
    async with deaf(trusting) as clients:
        for client in clients:
            listen = {"method": "GET", "accept": "text/event-stream", "content_type": None}
            await client.send(request(None, **listen, **on(await trusting.initialize())))
        sessions = list(trusting.endpoint.table._open.values())
        await until(lambda: all(session.busy for session in sessions), "all listen")
        for number in range(ENOUGH):
            for session in sessions:
                await session.notify("notifications/message", {"level": "info", "data": f"{number} {PIECE}"})
            await asyncio.sleep(0)
        await until(lambda: not any(session.busy for session in sessions), "they are not waited for")
        await trusting.http.aclose()
        await until(lambda: held(HttpToolsProtocol) <= census.before["LimitedPatience"], "the connections are let go")
        for session in sessions:
            assert session.standalone.size <= streams.KEPT_BYTES + 2 * len(PIECE)
        await trusting.endpoint.table.end(sessions, "test")
    await census.compare()


async def test_answers_that_nobody_reads_are_not_kept_for_ever(trusting: Web, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(readers, "LOOK_S", 0.3)
    await still_serving(trusting)
    census = Census(trusting)
    await census.take()
    message, headers = modern("tools/call", name="say_again", arguments={"name": "x" * 1_000_000})
    async with deaf(trusting) as clients:
        for client in clients:
            await client.send(request(message, **headers) * 2)
        await still_serving(trusting)
        await until(lambda: not trusting.endpoint.exchanges, "the calls are ended")
        await trusting.http.aclose()
        await until(lambda: held(HttpToolsProtocol) <= census.before["LimitedPatience"], "the connections are let go")
    await census.compare()

"""Many sessions, cancelled calls and lost connections: afterwards the server holds no more than before."""

import asyncio
import gc
from collections import Counter
from collections.abc import Awaitable, Callable
from typing import Any

import sqlalchemy as sa

from rookery.core.context import Context
from rookery.identity.client_sessions import client_sessions
from tests.server.streamable import probes
from tests.server.streamable.census import Census, resident_kb
from tests.server.streamable.conftest import MakeWeb
from tests.server.streamable.scripts import scripts
from tests.server.streamable.tap import Tap, request
from tests.server.streamable.web import LEGACY, Web, call, initialize, modern, until

SIDE_BY_SIDE = 20


async def many(times: int, work: Callable[[int], Awaitable[Any]]) -> None:
    """Do something so many times, a few at once."""
    free = asyncio.Semaphore(SIDE_BY_SIDE)

    async def one(number: int) -> None:
        async with free:
            await work(number)

    await asyncio.gather(*(one(number) for number in range(times)))


async def many_on_few(web: Web, times: int, work: Callable[[Tap], Awaitable[Any]]) -> None:
    """The same on a few connections that are kept."""

    async def some(number: int) -> None:
        async with Tap(web.port) as connection:
            for _ in range(times // SIDE_BY_SIDE):
                await work(connection)

    await many(SIDE_BY_SIDE, some)


def on(session: str) -> dict[str, str]:
    return {"mcp_session_id": session, "mcp_protocol_version": LEGACY}


async def open_session(connection: Tap) -> str:
    await connection.ask(initialize())
    assert "result" in await connection.json()
    return connection.headers["mcp-session-id"]


async def opened(web: Web) -> str:
    async with Tap(web.port) as connection:
        return await open_session(connection)


async def recorded(web: Web) -> Counter[str | None]:
    """How the sessions in the record have ended."""
    query = sa.select(client_sessions.c.ended_by, sa.func.count().label("times")).group_by(client_sessions.c.ended_by)
    rows = await web.platform.database.read(lambda tx: tx.all(query))
    return Counter({row.ended_by: row.times for row in rows})


async def until_recorded(web: Web, **ends: int) -> None:
    """A session is gone a moment before the record says so."""
    for _ in range(500):
        if await recorded(web) == ends:
            return
    assert await recorded(web) == ends


async def test_a_thousand_idle_sessions_end_by_themselves(make_web: MakeWeb) -> None:
    async with make_web(auth_mode="none", http_session_idle_s=1800) as web:
        await opened(web)
        await web.endpoint.table.end(list(web.endpoint.table._open.values()), "client")
        async with Census(web):
            gc.collect()
            before = resident_kb()
            await many_on_few(web, 1000, open_session)
            assert len(web.endpoint.table) == len(web.hub.sessions) == 1000
            print(f"an idle session takes {(resident_kb() - before) / 1000:.1f} KB")
            assert await recorded(web) == {"client": 1, None: 1000}
            web.endpoint.table._idle_s = 0.2
            await until(lambda: not len(web.endpoint.table), "idle sessions end")
        await until_recorded(web, client=1, idle=1000)


async def test_sessions_that_are_opened_and_deleted_leave_nothing_but_their_record(trusting: Web) -> None:
    async def come_and_go(connection: Tap) -> None:
        session = await open_session(connection)
        await connection.ask(call("say_again", name="here"), **on(session))
        assert "result" in await connection.json()
        await connection.ask(method="DELETE", content_type=None, **on(session))
        assert connection.status == 200
        assert await connection.json() == {"status": "terminated"}
        await connection.ask(call("say_again", name="here"), **on(session))
        assert connection.status == 404
        await connection.json()

    async with Census(trusting):
        await many_on_few(trusting, 500, come_and_go)
    await until_recorded(trusting, client=500)


async def test_two_hundred_cancelled_calls_leave_nothing(trusting: Web) -> None:
    async def cancel_by_word(number: int) -> None:
        name = f"word {number}"
        async with Tap(trusting.port) as caller:
            await caller.send(request(call("wait_for", name=name) | {"id": number}, **on(session)))
            await until(lambda: name in probes.waiting, "the call runs")
            params = {"requestId": number}
            gone = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params}
            assert (await trusting.post(gone, **on(session))).status_code == 202
            await caller.head()
            assert (await caller.json())["error"]["message"] == "Request cancelled"
        assert probes.ended[name] == "cancelled"

    async def cancel_by_going(number: int) -> None:
        name = f"gone {number}"
        message, headers = modern("tools/call", name="wait_for", arguments={"name": name})
        async with Tap(trusting.port) as caller:
            await caller.send(request(message, **headers))
            await until(lambda: name in probes.waiting, "the call runs")
        await until(lambda: probes.ended[name] == "cancelled", "the handler is told")

    async with Census(trusting):
        session = await opened(trusting)
        await many(100, cancel_by_word)
        await many(100, cancel_by_going)
        await trusting.http.delete("/mcp", headers={"mcp-session-id": session})


async def test_connections_lost_at_any_point_leave_nothing(trusting: Web) -> None:
    async def talk(ctx: Context) -> str:
        for step in range(20):
            ctx.progress(step)
            await asyncio.sleep(0.001)
        return "x" * 100_000

    scripts["talk_at_length"] = talk

    async def lose(number: int) -> None:
        message: dict[str, Any] = call("play_script", name="talk_at_length") | {"id": number}
        headers: dict[str, str] = on(session)
        if number % 2:
            message, headers = modern("tools/call", name="play_script", arguments={"name": "talk_at_length"})
        message["params"].setdefault("_meta", {})["progressToken"] = number
        whole = request(message, **headers)
        async with Tap(trusting.port) as caller:
            match number % 4:
                case 0:
                    await caller.send(whole[: number % 97 * len(whole) // 97])
                case 1:
                    await caller.send(whole)
                case 2:
                    await caller.send(whole)
                    await caller.head()
                case _:
                    await caller.send(whole)
                    await caller.head()
                    await caller.frame()

    async with Census(trusting):
        session = await opened(trusting)
        await many(200, lose)
        await until(lambda: not trusting.endpoint.exchanges, "the calls end")
        await trusting.http.delete("/mcp", headers={"mcp-session-id": session})


async def test_listeners_that_come_and_go_leave_nothing(trusting: Web) -> None:
    async def listen(number: int) -> None:
        if number % 2:
            message, headers = modern("subscriptions/listen", notifications={"toolsListChanged": True})
            listening = request(message, **headers)
        else:
            listening = request(
                None, method="GET", accept="text/event-stream", content_type=None, **on(sessions[number % 10])
            )
        async with Tap(trusting.port) as listener:
            await listener.send(listening)
            if number % 3:
                await listener.head()
                assert listener.status == 200
            if number % 3 == 2:
                await listener.frame()

    async with Census(trusting):
        sessions = [await opened(trusting) for _ in range(10)]
        await many(200, listen)
        await until(lambda: not trusting.endpoint.exchanges, "no stream is left")
        await trusting.endpoint.table.end(list(trusting.endpoint.table._open.values()), "client")


async def test_a_session_is_not_idle_while_somebody_listens_or_a_call_runs(trusting: Web) -> None:
    listening, calling, idle = [await opened(trusting) for _ in range(3)]
    table = trusting.endpoint.table
    async with Tap(trusting.port) as listener, Tap(trusting.port) as caller:
        await listener.ask(method="GET", accept="text/event-stream", content_type=None, **on(listening))
        await caller.send(request(call("wait_for", name="busy"), **on(calling)))
        await until(lambda: "busy" in probes.waiting, "the call runs")
        table._idle_s = 0.2
        await until(lambda: idle not in table._open, "the idle one ends")
        assert table._open.keys() == {listening, calling}
        probes.waiting["busy"].set()
        await caller.head()
        assert "result" in await caller.json()
    await until(lambda: not len(table), "the others end when they are idle too")
    await until_recorded(trusting, idle=3)

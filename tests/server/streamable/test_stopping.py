"""`rookery up` is told to stop, or killed, while clients are connected in every way they can be."""

import contextlib
import sys
import time
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from rookery.app import Platform, make_platform
from rookery.identity.client_sessions import client_sessions
from rookery.settings import Settings
from tests.server import trials
from tests.server.conftest import Place
from tests.server.processes import PATIENCE_S, Process
from tests.server.streamable.tap import Tap, request
from tests.server.streamable.web import LEGACY, call, initialize, modern

STOP_S = 3.0
LONG = 100_000
"""Steps of a call that ends long after the test."""


class Up(Process):
    """The command itself, ready when this returns."""

    def __init__(self, place: Place) -> None:
        command = [sys.executable, "-m", "rookery.entry", "up", "--auth", "none", "--port", "0"]
        super().__init__(command, place.home / "up.log", place.environment(), place.home)
        announced = self.lines.raw().decode()
        assert announced.startswith("Rookery listens on "), self.errors
        self.port = int(announced.rpartition(":")[2])

    def stop(self) -> tuple[int, float, str]:
        """End it as a service manager would: its exit code, the seconds it took, and the rest of its output."""
        started = time.monotonic()
        self.process.terminate()
        code = self.process.wait(PATIENCE_S)
        took = time.monotonic() - started
        output = b""
        while line := self.lines.raw():
            output += line
        return code, took, output.decode()


@pytest.fixture
def up(place: Place) -> Iterator[Callable[[], Up]]:
    """Starts servers in the home of the test."""
    started: list[Up] = []

    def start() -> Up:
        started.append(Up(place))
        return started[-1]

    yield start
    for each in started:
        each.close()


@contextlib.contextmanager
def looking(home: Path) -> Iterator[Platform]:
    """The database of a home, from outside."""
    platform = make_platform(Settings(home=str(home), plugins=False), extra={"trials": trials})
    try:
        yield platform
    finally:
        platform.close()


def ends(platform: Platform) -> list[str | None]:
    """How the recorded sessions ended, the oldest first."""
    query = sa.select(client_sessions.c.ended_by).order_by(client_sessions.c.opened_ms, client_sessions.c.id)
    return [row.ended_by for row in platform.database.direct(lambda tx: tx.all(query))]


async def opened(port: int) -> str:
    async with Tap(port) as connection:
        await connection.ask(initialize())
        assert "result" in await connection.json()
        return connection.headers["mcp-session-id"]


def on(session: str) -> dict[str, str]:
    return {"mcp_session_id": session, "mcp_protocol_version": LEGACY}


def counting(number: int = 7) -> dict[str, Any]:
    message: dict[str, Any] = call("count_slowly", steps=LONG) | {"id": number}
    message["params"]["_meta"] = {"progressToken": number}
    return message


class Crowd:
    """Clients in every state that a client can be in."""

    def __init__(self, port: int, stack: contextlib.AsyncExitStack) -> None:
        self._port = port
        self._stack = stack
        self.listeners: list[Tap] = []
        self.streams: list[Tap] = []
        self.plain: list[Tap] = []
        self.unfinished: list[Tap] = []

    async def _tap(self, *, narrow: bool = False) -> Tap:
        return await self._stack.enter_async_context(Tap(self._port, narrow=narrow))

    async def gather(self) -> None:
        await self._listen()
        await self._call()
        await self._dawdle()
        await self._write()

    async def _listen(self) -> None:
        for _ in range(2):
            tap = await self._tap()
            headers = on(await opened(self._port))
            await tap.ask(None, method="GET", accept="text/event-stream", content_type=None, **headers)
            assert await tap.frame() is not None
            self.listeners.append(tap)
        message, headers = modern("subscriptions/listen", notifications={"toolsListChanged": True})
        tap = await self._tap()
        await tap.ask(message, **headers)
        assert await tap.next() is not None
        self.listeners.append(tap)

    async def _call(self) -> None:
        tap = await self._tap()
        await tap.ask(counting(), **on(await opened(self._port)))
        self.streams.append(tap)
        message, headers = modern("tools/call", name="count_slowly", arguments={"steps": LONG})
        message["params"]["_meta"]["progressToken"] = 1
        tap = await self._tap()
        await tap.ask(message, **headers)
        self.streams.append(tap)
        for tap in self.streams:
            assert await tap.next() is not None
        tap = await self._tap()
        await tap.send(request(counting(8), **on(await opened(self._port)), accept="application/json"))
        self.plain.append(tap)

    async def _dawdle(self) -> None:
        """Some have only said half of what they want, and one does not read."""
        message, headers = modern("tools/call", name="ping", arguments={})
        whole = request(message, **headers)
        for part in (whole[:40], b"", whole[:-1], whole[: whole.index(b"{")]):
            tap = await self._tap()
            await tap.send(part)
            self.unfinished.append(tap)
        deaf = await self._tap(narrow=True)
        message, headers = modern("tools/call", name="measure_text", arguments={"text": "x" * 1_000_000})
        await deaf.send(request(message, **headers))

    async def _write(self) -> None:
        """Last, since nobody else can write meanwhile."""
        tap = await self._tap()
        await tap.ask(call("spin_until_cancelled", text="never kept"), **on(await opened(self._port)))
        assert await tap.next() is not None, "it says that it spins"
        self.streams.append(tap)


@contextlib.asynccontextmanager
async def crowd(port: int) -> AsyncIterator[Crowd]:
    async with contextlib.AsyncExitStack() as stack:
        clients = Crowd(port, stack)
        await clients.gather()
        yield clients


async def test_a_server_with_everything_open_stops_in_time_and_says_so_to_everybody(
    place: Place, up: Callable[[], Up]
) -> None:
    server = up()
    async with crowd(server.port) as clients:
        code, took, output = server.stop()
        for tap in clients.listeners:
            assert all(frame.message is None or "result" in frame.message for frame in await tap.rest())
        for tap in clients.streams:
            last = (await tap.rest())[-1].message
            assert last is not None
            assert "server stopped while this call was running" in last["error"]["message"]
        for tap in clients.plain:
            assert (await tap.head()).status == 503
            assert "server stopped" in (await tap.json())["error"]["message"]
        for tap in clients.unfinished[2:]:
            assert (await tap.head()).status == 503
            assert "stopping" in (await tap.json())["error"]["message"]
    assert code == 0, server.errors
    assert output.endswith("Stopped.\n")
    print(f"stopped after {took:.2f} s")
    assert took <= STOP_S
    for log in (server.log, *(place.home / "logs").iterdir()):
        assert "traceback" not in log.read_text().lower(), log
    with looking(place.home) as platform:
        assert ends(platform) == ["server stopped"] * 5
        notes = platform.database.direct(lambda tx: tx.all(sa.select(trials.notes.c.text)))
        assert notes == []


async def test_sessions_of_a_killed_server_are_recorded_as_lost_by_the_next(place: Place, up: Callable[[], Up]) -> None:
    first = up()
    await opened(first.port)
    first.kill()
    with looking(place.home) as platform:
        assert ends(platform) == [None]
        # As if it had been so long ago that a living server would have said something since.
        long_ago = sa.update(client_sessions).values(seen_ms=client_sessions.c.seen_ms - 600_000)
        platform.database.direct(lambda tx: tx.run(long_ago), write=True)
        second = up()
        await opened(second.port)
        deadline = time.monotonic() + PATIENCE_S
        while (now := ends(platform)) != ["server lost", None]:
            assert time.monotonic() < deadline, now
        code, _, _ = second.stop()
        assert code == 0
        assert ends(platform) == ["server lost", "server stopped"]

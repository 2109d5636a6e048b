"""An HTTP load client that costs so little that what is measured is the server. Runs on uvloop."""

import asyncio
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import cast

from benchmarks.http_wire import (
    BLANK_LINE,
    HANDSHAKE,
    MODERN,
    Endpoint,
    Pings,
    check_fully,
    headers_of,
    is_pong,
    is_whole,
    message,
    parse,
)
from benchmarks.raw_client import MeasureError, Slice, initialize_params

ANSWER_LIMIT_S = 20
SAMPLED = 101  # every so many answers one is looked at in all its parts


class Connection(asyncio.Protocol):
    """A keep-alive connection for one request at a time. `answered` gets whole answers, None when it is cut."""

    def __init__(self) -> None:
        self.answered: Callable[[bytes | None], None] | None = None
        self._received = b""
        self._transport: asyncio.Transport | None = None

    @classmethod
    async def to(cls, endpoint: Endpoint) -> "Connection":
        loop = asyncio.get_running_loop()
        return (await loop.create_connection(cls, "127.0.0.1", endpoint.port))[1]

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        received = self._received + data if self._received else data
        if not is_whole(received):
            self._received = received
            return
        self._received = b""
        if self.answered is not None:
            self.answered(received)

    def connection_lost(self, exc: Exception | None) -> None:
        self._transport = None
        if self.answered is not None:
            self.answered(None)

    def send(self, request: bytes) -> None:
        if self._transport is None:
            raise MeasureError("the server closed the connection")
        self._transport.write(request)

    def close(self) -> None:
        self.answered = None
        if self._transport is not None:
            self._transport.close()

    async def exchange(self, request: bytes) -> bytes:
        """The answer to one request, whatever it is."""
        waiting: asyncio.Future[bytes | None] = asyncio.get_running_loop().create_future()
        self.answered = waiting.set_result
        self.send(request)
        try:
            async with asyncio.timeout(ANSWER_LIMIT_S):
                answer = await waiting
        except TimeoutError as error:
            raise MeasureError(f"no answer within {ANSWER_LIMIT_S} s") from error
        finally:
            self.answered = None
        if answer is None:
            raise MeasureError("the server closed the connection")
        return answer


class Caller:
    """One client: its connection and the requests of its session."""

    def __init__(self, connection: Connection, pings: Pings) -> None:
        self.connection = connection
        self.pings = pings
        self.sent = 0.0

    async def check(self) -> str:
        """One ping outside of any measurement. Returns how it was answered: `json` or `sse`."""
        request = self.pings.next()
        return check_fully(await self.connection.exchange(request), self.pings.last_id)


async def start_session(endpoint: Endpoint, era: str) -> str | None:
    """The session that a client of this era calls in; None where there are none."""
    if era == MODERN:
        return None
    connection = await Connection.to(endpoint)
    try:
        hello = {"id": 1, "method": "initialize", "params": initialize_params()}
        answer = await connection.exchange(message(endpoint, hello, {}))
        if "result" not in parse(answer)[1]:
            raise MeasureError(f"initialize answered {answer[:300]!r}")
        session = headers_of(answer.partition(BLANK_LINE)[0]).get("mcp-session-id")
        headers = {"MCP-Protocol-Version": HANDSHAKE} | ({"Mcp-Session-Id": session} if session else {})
        done = await connection.exchange(message(endpoint, {"method": "notifications/initialized"}, headers))
        if not done.startswith(b"HTTP/1.1 202"):
            raise MeasureError(f"the end of the handshake answered {done[:300]!r}")
        return session
    finally:
        connection.close()


async def open_callers(endpoint: Endpoint, pings: Sequence[Pings]) -> list[Caller]:
    """Connected clients, each with a successful call behind it."""
    callers: list[Caller] = []
    try:
        for requests in pings:
            callers.append(Caller(await Connection.to(endpoint), requests))
            await callers[-1].check()
    except BaseException:
        close_callers(callers)
        raise
    return callers


def close_callers(callers: Sequence[Caller]) -> None:
    for caller in callers:
        caller.connection.close()


class ClosedLoop:
    """Every caller sends its next request when it has its answer, for so long or so often. A failed call fails it."""

    def __init__(self, callers: Sequence[Caller], seconds: float, calls: int | None = None) -> None:
        self._callers = callers
        self._seconds = seconds
        self._left = calls if calls is not None else 1 << 60
        self._took: list[float] = []
        self._busy = 0
        self._end = 0.0
        self._done: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    async def run(self) -> Slice:
        start = time.perf_counter()
        self._end = start + self._seconds
        for caller in self._callers:
            caller.connection.answered = partial(self._answered, caller)
            self._busy += 1
            self._send(caller, time.perf_counter())
        try:
            async with asyncio.timeout(self._seconds + ANSWER_LIMIT_S):
                await self._done
        except TimeoutError as error:
            raise MeasureError(f"calls without an answer after {ANSWER_LIMIT_S} s") from error
        return Slice.of(self._took, time.perf_counter() - start)

    def _send(self, caller: Caller, now: float) -> None:
        self._left -= 1
        caller.sent = now
        caller.connection.send(caller.pings.next())

    def _answered(self, caller: Caller, answer: bytes | None) -> None:
        now = time.perf_counter()
        if self._done.done():
            return
        try:
            check_answer(caller, answer, thoroughly=len(self._took) % SAMPLED == 0)
            self._took.append(now - caller.sent)
            if now < self._end and self._left > 0:
                self._send(caller, now)
                return
        except MeasureError as error:
            self._done.set_exception(error)
            return
        self._busy -= 1
        if not self._busy:
            self._done.set_result(None)


def check_answer(caller: Caller, answer: bytes | None, *, thoroughly: bool) -> None:
    """Refuse what is no successful ping."""
    if answer is None:
        raise MeasureError("the server closed the connection")
    if not is_pong(answer):
        raise MeasureError(f"a measured call failed: {answer[:600]!r}")
    if thoroughly:
        check_fully(answer, caller.pings.last_id)

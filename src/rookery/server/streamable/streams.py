"""Event streams: what the server has to say, numbered and kept for a while where a client may come back for it."""

import asyncio
from collections import deque
from typing import Any

from starlette.types import Receive, Send

from rookery.server.streamable.answers import encode

PING = b": ping\r\n\r\n"
PING_S = 15.0
KEPT_FRAMES = 1024
KEPT_BYTES = 2 << 20
RETRY_MS = 1000


class Stream:
    """Frames in order. `number` is given to a stream that may be resumed: its frames carry ids and are kept."""

    __slots__ = ("_bytes", "_closed", "_frames", "_last", "_leaving", "_sent", "_turn", "_wake", "_writers", "number")

    def __init__(self, number: int | None = None) -> None:
        self.number = number
        self._frames: deque[bytes] = deque()
        self._bytes = 0
        self._last = 0
        self._sent = 0
        self._turn = self._writers = 0
        self._closed = self._leaving = False
        self._wake = asyncio.Event()

    @property
    def closed(self) -> bool:
        """Whether everything has been said."""
        return self._closed

    @property
    def last(self) -> int:
        """The number of the newest frame."""
        return self._last

    @property
    def forgotten(self) -> int:
        """The number of the newest frame that is no longer kept; 0: all are."""
        return self._last - len(self._frames)

    @property
    def written(self) -> bool:
        """Whether there is a connection that it is written to."""
        return self._writers > 0

    @property
    def size(self) -> int:
        return self._bytes

    def put(self, message: dict[str, Any]) -> None:
        """Say something. Nothing waits here: a client that does not read loses the oldest."""
        self._add(b"event: message\r\ndata: " + encode(message) + b"\r\n\r\n")

    def prime(self) -> None:
        """A frame without content, from which the next listener can resume before anything was said."""
        # Whoever listens now would take it.
        self._turn += 1
        self._add(b"retry: %d\r\ndata: \r\n\r\n" % RETRY_MS)

    def _add(self, frame: bytes) -> None:
        if self._closed:
            return
        self._last += 1
        if self.number is not None:
            frame = b"id: %d-%d\r\n" % (self.number, self._last) + frame
        self._frames.append(frame)
        self._bytes += len(frame)
        while len(self._frames) > KEPT_FRAMES or (self._bytes > KEPT_BYTES and len(self._frames) > 1):
            self._bytes -= len(self._frames.popleft())
        self._wake.set()

    def close(self) -> None:
        """Nothing more will be said."""
        self._closed = True
        self._wake.set()

    def release(self) -> None:
        """Let go of the connection that is written to once it has what was said; the client may come back."""
        self._leaving = True
        self._wake.set()

    async def pump(self, send: Send, after: int | None = None) -> bool:
        """Write what comes after frame `after` (what nobody was sent yet, if None) until all is said.

        Only the newest pump of a stream writes. False: another took over, or the stream was released.
        """
        self._turn += 1
        self._wake.set()
        turn, sent = self._turn, self._sent if after is None else after
        self._writers += 1
        try:
            return await self._write_on(send, turn, sent)
        finally:
            self._writers -= 1

    async def _write_on(self, send: Send, turn: int, sent: int) -> bool:
        while turn == self._turn:
            self._wake.clear()
            if sent < self._last:
                part, sent = self._since(sent), self._last
                self._sent = max(self._sent, sent)
                await _write(send, part)
            elif self._closed:
                return True
            elif self._leaving:
                self._leaving = False
                return False
            else:
                await self._news(send)
        return False

    async def _news(self, send: Send) -> None:
        try:
            async with asyncio.timeout(PING_S):
                await self._wake.wait()
        except TimeoutError:
            await _write(send, PING)

    def _since(self, sent: int) -> bytes:
        part = b"".join(list(self._frames)[max(sent - self.forgotten, 0) :])
        if self.number is None:
            self._frames.clear()
            self._bytes = 0
        return part


async def _write(send: Send, part: bytes) -> None:
    # This waits while the client does not read; readers.py sees to it that it ends.
    await send({"type": "http.response.body", "body": part, "more_body": True})


async def until_gone(receive: Receive) -> None:
    """Return when the client has closed its connection."""
    while (await receive())["type"] != "http.disconnect":
        pass


async def serve_stream(stream: Stream, send: Send, receive: Receive, after: int | None = None) -> None:
    """Write a stream to its end, or for as long as the client is there. The head has been sent."""
    pump = asyncio.create_task(stream.pump(send, after))
    gone = asyncio.create_task(until_gone(receive))
    try:
        await asyncio.wait((pump, gone), return_when=asyncio.FIRST_COMPLETED)
        if pump.done() and pump.exception() is None:
            await send({"type": "http.response.body", "body": b""})
    finally:
        for task in (pump, gone):
            task.cancel()
        await asyncio.gather(pump, gone, return_exceptions=True)

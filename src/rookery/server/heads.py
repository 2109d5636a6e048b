"""Limits for what stands before and around a body. The parser below has none: a head could grow until memory ends."""

import asyncio
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

MAX_HEAD_BYTES = 64 * 1024
MAX_HEADERS = 200
# What frames a body that is sent in pieces, and what follows it. Tiny pieces cost several times what they carry.
MAX_FRAMING_BYTES = 4 << 20
# So long a client may take to say what it wants, and so long the rest of a body that was refused is read: a client
# that is still sending when its connection is closed does not see the answer.
PATIENCE_S = 30.0
TOO_LARGE = (
    b"HTTP/1.1 431 Request Header Fields Too Large\r\n"
    b"content-type: text/plain; charset=utf-8\r\ncontent-length: 32\r\nconnection: close\r\n\r\n"
    b"The request's head is too large."
)


class _Dropped(list[tuple[bytes, bytes]]):
    """Takes the headers that may follow a body, and keeps none."""

    def append(self, _: tuple[bytes, bytes], /) -> None:
        return


class LimitedHeads(HttpToolsProtocol):
    """uvicorn's fast protocol, for clients that do not mean well or do not know when to stop."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._in_head = True
        self._outside = 0
        self._too_large = False
        self._until: float | None = None
        self._unfinished: list[Any] = []

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._wait()

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self._unset_keepalive_if_required()
        # Of requests sent in a row the last alone would learn that the client has gone; a stream would go on for ever.
        for cycle in self._unfinished:
            if not cycle.response_complete:
                cycle.disconnected = True
                cycle.message_event.set()

    def data_received(self, data: bytes) -> None:
        self._outside += len(data)
        super().data_received(data)
        if (self._in_head and not self._outside) or self.transport.is_closing():
            return  # as nearly always: the request came whole
        if self._outside > (MAX_HEAD_BYTES if self._in_head else MAX_FRAMING_BYTES):
            self._too_large = True
            self.send_400_response("")
        elif self._in_head or self.cycle.response_complete:
            self._wait()

    def on_headers_complete(self) -> None:
        if len(self.headers) > MAX_HEADERS or (self._outside > MAX_HEAD_BYTES and self._head_bytes() > MAX_HEAD_BYTES):
            self._too_large = True
            raise ValueError("the head is too large")
        self._in_head, self._outside, self._until = False, 0, None
        before: Any = self.cycle
        super().on_headers_complete()
        self.headers = _Dropped()
        if before is not None and not before.response_complete:
            self._unfinished = [cycle for cycle in self._unfinished if not cycle.response_complete]
            self._unfinished.append(before)

    def _head_bytes(self) -> int:
        return len(self.url) + sum(len(name) + len(value) for name, value in self.headers)

    def on_body(self, body: bytes) -> None:
        self._outside -= len(body)
        super().on_body(body)

    def on_message_complete(self) -> None:
        self._in_head, self._outside, self._until = True, 0, None
        super().on_message_complete()

    def send_400_response(self, msg: str) -> None:
        """Refuse what cannot be read, unless an answer is under way, which this would garble."""
        cycle: Any = self.cycle
        if cycle is not None and cycle.response_started and not cycle.response_complete:
            self.transport.close()
        elif self._too_large:
            self.transport.write(TOO_LARGE)
            self.transport.close()
        else:
            super().send_400_response(msg)

    def _wait(self) -> None:
        """However slowly something comes, its time began with its first byte."""
        if self._until is None:
            self._until = self.loop.time() + PATIENCE_S
        self._unset_keepalive_if_required()
        self.timeout_keep_alive_task = self.loop.call_at(self._until, self._give_up)

    def _give_up(self) -> None:
        cycle: Any = self.cycle
        if cycle is None or cycle.response_complete:
            self.transport.close()

    def _unsupported_upgrade_warning(self) -> None:
        """Whoever asks for another protocol is served in this one. Anybody could fill the log with lines about it."""

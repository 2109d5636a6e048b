"""A client that reads event streams frame by frame, or not at all, and goes when the test wants it to."""

import asyncio
import contextlib
import json
import socket
from collections.abc import AsyncIterator
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self

from tests.server.streamable.web import LEGACY, PATIENCE_S, Web, head

NARROW_BYTES = 4096


@dataclass(frozen=True, slots=True)
class Frame:
    """One event of a stream. Without a message it is the frame to resume from, or a comment."""

    event: str | None = None
    message: dict[str, Any] | None = None
    retry_ms: int | None = None
    comment: str | None = None


class Tap:
    """One connection. `narrow`: hardly anything fits between the server and a client that does not read."""

    def __init__(self, port: int, *, narrow: bool = False) -> None:
        self._port = port
        self._narrow = narrow
        self.status = 0
        self.headers: dict[str, str] = {}
        self._text = b""

    async def __aenter__(self) -> Self:
        end = socket.socket()
        if self._narrow:
            end.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, NARROW_BYTES)
        end.setblocking(False)
        await asyncio.get_running_loop().sock_connect(end, ("127.0.0.1", self._port))
        self._reader, self._writer = await asyncio.open_connection(sock=end, limit=1 << 16)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.cut()
        with contextlib.suppress(OSError):
            await self._writer.wait_closed()

    def cut(self) -> None:
        """Go without a word."""
        self._writer.transport.abort()

    async def send(self, data: bytes) -> None:
        self._writer.write(data)
        await self._writer.drain()

    async def ask(
        self, message: Any = None, token: str | None = None, /, *, method: str = "POST", **headers: str | None
    ) -> Self:
        """Send a request and read the head of its answer. Headers are given with underscores, as for `Web.post`."""
        await self.send(request(message, token, method=method, **headers))
        return await self.head()

    async def head(self) -> Self:
        """Read the head of an answer."""
        async with asyncio.timeout(PATIENCE_S):
            lines = (await self._reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        self.status = int(lines[0].split()[1])
        self.headers = {}
        for line in filter(None, lines[1:]):
            name, _, value = line.partition(":")
            self.headers[name.lower()] = value.strip()
        self._text = b""
        return self

    @property
    def streams(self) -> bool:
        return self.headers["content-type"] == "text/event-stream"

    async def json(self) -> Any:
        """The body of an answer that is no stream."""
        async with asyncio.timeout(PATIENCE_S):
            return json.loads(await self._reader.readexactly(int(self.headers["content-length"])))

    async def some(self, most: int) -> bytes:
        """Whatever of a body has come, up to so many bytes, at least one."""
        async with asyncio.timeout(PATIENCE_S):
            part = await self._reader.read(most)
        assert part
        return part

    async def frame(self) -> Frame | None:
        """The next event of a stream, or None at its proper end. A connection that breaks is IncompleteReadError."""
        while b"\r\n\r\n" not in self._text:
            part = await self._chunk()
            if not part:
                assert not self._text, self._text
                return None
            self._text += part
        text, _, self._text = self._text.partition(b"\r\n\r\n")
        return parsed(text.decode())

    async def next(self) -> dict[str, Any] | None:
        """The next message of a stream, or None at its end; other frames are passed over."""
        while (frame := await self.frame()) is not None:
            if frame.message is not None:
                return frame.message
        return None

    async def rest(self) -> list[Frame]:
        """Everything up to the end of a stream, without comments."""
        return [frame async for frame in self if frame.comment is None]

    async def __aiter__(self) -> AsyncIterator[Frame]:
        while (frame := await self.frame()) is not None:
            yield frame

    async def _chunk(self) -> bytes:
        async with asyncio.timeout(PATIENCE_S):
            size = int(await self._reader.readuntil(b"\r\n"), 16)
            return (await self._reader.readexactly(size + 2))[:-2]

    async def silent(self, for_s: float) -> bool:
        """Whether nothing is said for a while, not even the end; a sign of life does not count."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(for_s):
                while (frame := await self.frame()) is not None and frame.comment is not None:
                    pass
                return False
        return True


def request(message: Any = None, token: str | None = None, /, *, method: str = "POST", **headers: str | None) -> bytes:
    """A whole request as it goes over the wire."""
    body = b"" if message is None else json.dumps(message).encode()
    lines = [f"{method} /mcp HTTP/1.1", "host: 127.0.0.1"]
    lines += [f"{name}: {value}" for name, value in head(token, **headers).items()]
    if method == "POST" and "content_length" not in headers:
        lines.append(f"content-length: {len(body)}")
    return "\r\n".join([*lines, "", ""]).encode("latin-1") + body


def parsed(text: str) -> Frame:
    fields: dict[str, str] = {}
    for line in text.split("\r\n"):
        name, _, value = line.partition(":")
        fields[name or "comment"] = value.removeprefix(" ")
    data = fields.get("data")
    return Frame(
        event=fields.get("id"),
        message=json.loads(data) if data else None,
        retry_ms=int(fields["retry"]) if "retry" in fields else None,
        comment=fields.get("comment"),
    )


@contextlib.asynccontextmanager
async def asking(
    web: Web, message: dict[str, Any], token: str | None = None, /, **headers: str | None
) -> AsyncIterator[Tap]:
    """A connection whose request has been answered as far as the head."""
    async with Tap(web.port) as tap:
        yield await tap.ask(message, token, method="POST", **headers)


@contextlib.asynccontextmanager
async def hearing(
    web: Web, session: str, token: str | None = None, /, after: str | None = None, revision: str = LEGACY
) -> AsyncIterator[Tap]:
    """The GET stream of a session; `after`: the last event that was seen."""
    async with Tap(web.port) as tap:
        named: dict[str, Any] = {"mcp_session_id": session, "mcp_protocol_version": revision, "last_event_id": after}
        yield await tap.ask(None, token, method="GET", accept="text/event-stream", content_type=None, **named)

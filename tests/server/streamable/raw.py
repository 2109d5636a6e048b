"""Connections that send exactly the bytes that a test wants, and read the answers to them."""

import asyncio
import contextlib
import json
from collections.abc import Iterable
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self

from tests.server.streamable.web import ACCEPT, PATIENCE_S

Pairs = Iterable[tuple[str, str]]


@dataclass(frozen=True, slots=True)
class Answer:
    """One response. Of headers that appear twice the last counts; names are in lower case."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def error(self) -> dict[str, Any]:
        """The JSON-RPC error of a refusal."""
        return self.json["error"]


class Raw:
    """One connection to a server on loopback. Every wait has a bound."""

    def __init__(self, port: int) -> None:
        self._port = port

    async def __aenter__(self) -> Self:
        # Room for an answer's whole head.
        self._reader, self._writer = await asyncio.open_connection("127.0.0.1", self._port, limit=1 << 20)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._writer.close()
        # The server may have hung up first.
        with contextlib.suppress(OSError):
            await self._writer.wait_closed()

    async def send(self, *parts: bytes) -> None:
        """Send bytes; a server that has hung up is no error here, for the answer tells."""
        with contextlib.suppress(OSError):
            for part in parts:
                self._writer.write(part)
                await self._writer.drain()

    def end_input(self) -> None:
        self._writer.write_eof()

    async def answer(self) -> Answer:
        """The next response; EOFError if the server hangs up instead."""
        async with asyncio.timeout(PATIENCE_S):
            status, headers = await self.head()
            while status == 100:
                status, headers = await self.head()
            return Answer(status, headers, await self._body(status, headers))

    async def head(self) -> tuple[int, dict[str, str]]:
        """The status and the headers of a response, whose body has yet to be read."""
        try:
            lines = (await self._reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        except (asyncio.IncompleteReadError, ConnectionResetError):
            raise EOFError from None
        pairs = (line.split(":", 1) for line in lines[1:] if line)
        return int(lines[0].split(" ")[1]), {name.strip().lower(): value.strip() for name, value in pairs}

    async def _body(self, status: int, headers: dict[str, str]) -> bytes:
        if status in (204, 304):
            return b""
        if headers.get("transfer-encoding") != "chunked":
            return await self._reader.readexactly(int(headers["content-length"]))
        parts: list[bytes] = []
        while part := await self.chunk():
            parts.append(part)
        return b"".join(parts)

    async def chunk(self) -> bytes:
        """The next piece of a chunked body; empty at its end."""
        size = int(await self._reader.readuntil(b"\r\n"), 16)
        return (await self._reader.readexactly(size + 2))[:-2]

    async def ask(self, *parts: bytes) -> Answer:
        """Send a request and read its answer."""
        await self.send(*parts)
        return await self.answer()

    async def hung_up(self) -> bool:
        """Whether the server ends the connection, with nothing more to say."""
        try:
            async with asyncio.timeout(PATIENCE_S):
                return await self._reader.read(1) == b""
        except ConnectionResetError:
            return True


def request(method: str = "POST", path: str = "/mcp", headers: Pairs = (), body: bytes = b"") -> bytes:
    """The bytes of a request with these headers and no others."""
    lines = [f"{method} {path} HTTP/1.1", *(f"{name}: {value}" for name, value in headers), "", ""]
    return "\r\n".join(lines).encode("latin-1") + body


def usual(body: bytes = b"", token: str | None = None, /, **headers: str | None) -> list[tuple[str, str]]:
    """The headers of a POST, in the form that `request` takes; None leaves one out."""
    chosen: dict[str, str | None] = {
        "host": "127.0.0.1",
        "content-type": "application/json",
        "accept": ACCEPT,
        "content-length": str(len(body)),
        "authorization": None if token is None else f"Bearer {token}",
    }
    chosen |= {name.replace("_", "-"): value for name, value in headers.items()}
    return [(name, value) for name, value in chosen.items() if value is not None]


def post(message: Any, token: str | None = None, /, **headers: str | None) -> bytes:
    """The bytes of a POST of a message, or of bytes as they are."""
    body = message if isinstance(message, bytes) else json.dumps(message).encode()
    return request("POST", "/mcp", usual(body, token, **headers), body)

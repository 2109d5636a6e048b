"""A web server on this machine that can also misbehave: break off, fall silent, never stop talking."""

import asyncio
import contextlib
import json
from collections.abc import AsyncGenerator, Callable, Mapping
from dataclasses import dataclass, field
from email.utils import formatdate
from typing import Any
from urllib.parse import parse_qsl, urlsplit

CHUNK = b"x" * 65_536


@dataclass(frozen=True)
class Asked:
    """One request as it came in."""

    method: str
    path: str
    query: Mapping[str, str]
    headers: Mapping[str, str]
    body: bytes

    def json(self) -> Any:
        return json.loads(self.body) if self.body else None


@dataclass(frozen=True)
class Said:
    """One answer. `how` is what goes wrong with it: broken, silent, or flood, an answer of so many bytes.

    `chunked`: it does not say beforehand how many.
    """

    status: int = 200
    body: Any = None
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    how: str = "whole"
    flood: int = 0
    chunked: bool = False

    @property
    def content(self) -> bytes:
        if isinstance(self.body, bytes):
            return self.body
        return b"" if self.body is None else json.dumps(self.body).encode()


BROKEN = Said(how="broken")
SILENT = Said(how="silent")


@dataclass
class Fault:
    """What the next requests of a kind are told. `after`: the request is fulfilled all the same."""

    method: str
    part: str
    said: Said
    times: int
    after: bool = False


@dataclass
class Server:
    """Hands requests to `answer`, unless a fault is due."""

    answer: Callable[[Asked], Said]
    port: int = 0
    asked: list[Asked] = field(default_factory=list[Asked])
    faults: list[Fault] = field(default_factory=list[Fault])
    flooded: int = 0
    """Bytes of a flood that were sent before the other side had enough."""

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def fail(self, said: Said, *, method: str = "GET", part: str = "", times: int = 1, after: bool = False) -> None:
        """Let the next `times` requests with this method, whose path has `part`, go wrong."""
        self.faults.append(Fault(method, part, said, times, after))

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
            asked = await _read(reader)
            self.asked.append(asked)
            said = self._said(asked)
            if said.how == "silent":
                await reader.read()
            elif said.how == "whole":
                await self._tell(said, writer)
        writer.close()
        with contextlib.suppress(ConnectionError):
            await writer.wait_closed()

    def _said(self, asked: Asked) -> Said:
        for fault in self.faults:
            if fault.times and fault.method == asked.method and fault.part in asked.path:
                fault.times -= 1
                if fault.after:
                    self.answer(asked)
                return fault.said
        return self.answer(asked)

    async def _tell(self, said: Said, writer: asyncio.StreamWriter) -> None:
        content = said.content
        headers = {"Date": formatdate(usegmt=True), "Content-Type": "application/json; charset=utf-8", **said.headers}
        size = {"Content-Length": str(said.flood or len(content))}
        headers |= {**({"Transfer-Encoding": "chunked"} if said.chunked else size), "Connection": "close"}
        lines = [f"HTTP/1.1 {said.status} Said", *(f"{name}: {value}" for name, value in headers.items()), "", ""]
        writer.write("\r\n".join(lines).encode() + content)
        await writer.drain()
        while self.flooded < said.flood:
            writer.write(b"%x\r\n%b\r\n" % (len(CHUNK), CHUNK) if said.chunked else CHUNK)
            await writer.drain()
            self.flooded += len(CHUNK)


async def _read(reader: asyncio.StreamReader) -> Asked:
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
    method, target, _ = head[0].split(" ")
    headers = {line.split(":", 1)[0].lower(): line.split(":", 1)[1].strip() for line in head[1:] if line}
    body = await reader.readexactly(int(headers.get("content-length", "0")))
    parts = urlsplit(target)
    return Asked(method, parts.path, dict(parse_qsl(parts.query, keep_blank_values=True)), headers, body)


@contextlib.asynccontextmanager
async def serving(answer: Callable[[Asked], Said]) -> AsyncGenerator[Server]:
    """A server that has stopped when the block ends."""
    server = Server(answer)
    listening = await asyncio.start_server(server.serve, "127.0.0.1", 0)
    server.port = listening.sockets[0].getsockname()[1]
    try:
        yield server
    finally:
        listening.close()
        await listening.wait_closed()

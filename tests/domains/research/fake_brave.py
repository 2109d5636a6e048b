"""A server on this machine that answers as Brave's API does: keys, parameters, limits, packing. Or misbehaves."""

import asyncio
import contextlib
import gzip
import json
import time
from collections.abc import AsyncGenerator, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qsl, urlsplit

KEY = "BSA-the-key-of-the-tests"
PATH = "/res/v1/web/search"
CHUNK = b"x" * 65_536
FLOOD = 500_000_000
MONTH_S = 2_592_000


@dataclass(frozen=True)
class Asked:
    """One request as it came in."""

    path: str
    query: Mapping[str, str]
    headers: Mapping[str, str]


@dataclass(frozen=True)
class Said:
    """One answer. `how` is what goes wrong with it: broken, silent, or flood, an answer of FLOOD bytes."""

    status: int = 200
    body: Any = None
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    how: str = "whole"

    @property
    def content(self) -> bytes:
        return self.body if isinstance(self.body, bytes) else json.dumps(self.body).encode()


def fault(status: int, code: str, detail: str, **meta: Any) -> dict[str, Any]:
    """An error as Brave words it."""
    error = {"id": "5d832250", "status": status, "code": code, "detail": detail, "meta": meta}
    return {"type": "ErrorResponse", "error": error, "time": 1_742_589_546}


@dataclass
class FakeBrave:
    """`pages` are found by every query; `by_query` is for those that find others."""

    port: int = 0
    pages: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    by_query: dict[str, list[dict[str, Any]]] = field(default_factory=dict[str, list[dict[str, Any]]])
    asked: list[Asked] = field(default_factory=list[Asked])
    faults: list[tuple[str, Said]] = field(default_factory=list[tuple[str, Said]])
    """For the next request whose query has this text."""
    per_second: int = 50
    quota: int = 15_000
    quota_reset_s: int = 1_419_704
    flooded: int = 0
    _times: list[float] = field(default_factory=list[float])

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/res/v1"

    @property
    def queries(self) -> list[str]:
        return [asked.query.get("q", "") for asked in self.asked]

    def find(self, *titles: str) -> None:
        """Let every query find pages of these titles."""
        self.pages = [page(title) for title in titles]

    def fail(self, said: Said, *, query: str = "", times: int = 1) -> None:
        self.faults += [(query, said)] * times

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
            asked = await _read(reader)
            self.asked.append(asked)
            said = self._said(asked)
            if said.how == "silent":
                await reader.read()
            elif said.how != "broken":
                await self._tell(asked, said, writer)
        writer.close()
        with contextlib.suppress(ConnectionError):
            await writer.wait_closed()

    def _said(self, asked: Asked) -> Said:
        for number, (text, said) in enumerate(self.faults):
            if text in asked.query.get("q", ""):
                del self.faults[number]
                return said
        return self._answer(asked)

    def _answer(self, asked: Asked) -> Said:
        if asked.path != PATH:
            return Said(404, fault(404, "RESOURCE_NOT_FOUND", "The requested resource was not found."))
        if asked.headers.get("x-subscription-token") != KEY:
            detail = "The provided subscription token is invalid."
            return Said(422, fault(422, "SUBSCRIPTION_TOKEN_INVALID", detail, component="authentication"))
        limits = self._count()
        if limits is None:
            return Said(429, fault(429, "RATE_LIMITED", "Request rate limit exceeded for plan."), self._headers(0))
        query, count, fresh = (asked.query.get(name) for name in ("q", "count", "freshness"))
        sound = query and len(query) <= 400 and len(query.split()) <= 50 and count and 1 <= int(count) <= 20
        if not sound or fresh not in (None, "pd", "pw", "pm", "py"):
            return Said(422, fault(422, "VALIDATION", "Unable to validate request parameter(s)"), limits)
        found = self.by_query.get(query or "", self.pages)[: int(count or 0)]
        body: dict[str, Any] = {"type": "search", "query": {"original": query}}
        return Said(200, body | ({"web": {"type": "search", "results": found}} if found else {}), limits)

    def _count(self) -> Mapping[str, str] | None:
        """The headers of one more request; None if it is one too many."""
        now = time.monotonic()
        self._times = [at for at in self._times if now - at < 1]
        if len(self._times) >= self.per_second or not self.quota:
            return None
        self._times.append(now)
        self.quota -= 1
        return self._headers(self.per_second - len(self._times))

    def _headers(self, left: int) -> Mapping[str, str]:
        return {
            "X-RateLimit-Limit": f"{self.per_second}, 15000",
            "X-RateLimit-Policy": f"{self.per_second};w=1, 15000;w={MONTH_S}",
            "X-RateLimit-Remaining": f"{left}, {self.quota}",
            "X-RateLimit-Reset": f"1, {self.quota_reset_s}",
        }

    async def _tell(self, asked: Asked, said: Said, writer: asyncio.StreamWriter) -> None:
        content, headers = said.content, {"Content-Type": "application/json", **said.headers}
        if "gzip" in asked.headers.get("accept-encoding", "") and "Content-Encoding" not in headers:
            content, headers = gzip.compress(content), {**headers, "Content-Encoding": "gzip"}
        if said.how != "flood":
            headers["Content-Length"] = str(len(content))
        lines = [f"HTTP/1.1 {said.status} Said", *(f"{name}: {value}" for name, value in headers.items())]
        writer.write("\r\n".join([*lines, "Connection: close", "", ""]).encode() + content)
        await writer.drain()
        while said.how == "flood" and self.flooded < FLOOD:
            writer.write(CHUNK)
            await writer.drain()
            self.flooded += len(CHUNK)


def page(title: str, url: str | None = None, **more: Any) -> dict[str, Any]:
    """A result as Brave tells it, with fields that nobody reads."""
    place = url or f"https://{title.lower().replace(' ', '-')}.example/page"
    about = {"description": f"About <strong>{title}</strong> &amp; more", "age": "2 days ago"}
    return {"title": title, "url": place, "is_source_local": False, "language": "en", **about, **more}


async def _read(reader: asyncio.StreamReader) -> Asked:
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
    _, target, _ = head[0].split(" ")
    headers = {line.split(":", 1)[0].lower(): line.split(":", 1)[1].strip() for line in head[1:] if line}
    parts = urlsplit(target)
    return Asked(parts.path, dict(parse_qsl(parts.query, keep_blank_values=True)), headers)


@contextlib.asynccontextmanager
async def serving() -> AsyncGenerator[FakeBrave]:
    """A server that has stopped when the block ends."""
    brave = FakeBrave()
    listening = await asyncio.start_server(brave.serve, "127.0.0.1", 0)
    brave.port = listening.sockets[0].getsockname()[1]
    try:
        yield brave
    finally:
        listening.close()
        await listening.wait_closed()

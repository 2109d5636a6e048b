"""What a process holds: counted before and after, and no more in the end, or something is lost."""

import asyncio
import gc
import os
import threading
from collections import Counter
from typing import Any

import httpx2
from mcp.server.connection import Connection
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

from rookery.server.session import Session
from rookery.server.streamable.exchange import Exchange
from rookery.server.streamable.sessions import HttpSession
from rookery.server.streamable.streams import Stream
from tests.server.streamable.web import PATIENCE_S, Web

KINDS = (Connection, Exchange, HttpSession, HttpToolsProtocol, RequestResponseCycle, Session, Stream)
LOOK_S = 0.02
LOOKS = 200


class Census:
    """Of one server, whose own client is put away while it is counted."""

    def __init__(self, web: Web) -> None:
        self._web = web
        self.before: Counter[str] = Counter()

    async def take(self) -> None:
        """Remember what there is, once two looks in a row agree: what came before may still be on its way out."""
        await self._put_away()
        for _ in range(LOOKS):
            earlier, self.before = self.before, count()
            if earlier == self.before:
                return
            await asyncio.sleep(LOOK_S)
        raise AssertionError(f"there is no rest: {self.before}")

    async def compare(self) -> None:
        """Wait until there is no more than there was. Less is fine: idle threads end."""
        await self._put_away()
        left: Counter[str] = Counter()
        for _ in range(LOOKS):
            left = count() - self.before
            if not left:
                break
            await asyncio.sleep(LOOK_S)
        assert not left, f"left over: {dict(left)}"
        assert not self._web.endpoint.exchanges
        assert not len(self._web.endpoint.table)
        assert not self._web.hub.sessions

    async def _put_away(self) -> None:
        await self._web.http.aclose()
        self._web.http = httpx2.AsyncClient(base_url=self._web.url, timeout=PATIENCE_S, trust_env=False)


def count() -> Counter[str]:
    """What can be lost, by its name."""
    gc.collect()
    found = Counter(kind.__name__ for kind in map(type, gc.get_objects()) if issubclass(kind, KINDS))
    found["tasks"] = len(asyncio.all_tasks())
    found["threads"] = threading.active_count()
    found["files"] = len(os.listdir("/proc/self/fd"))
    return found


def held(kind: type[Any]) -> int:
    """How many of one kind there are."""
    gc.collect()
    return sum(issubclass(each, kind) for each in map(type, gc.get_objects()))


def resident_kb() -> int:
    """The memory of this process now."""
    with open("/proc/self/statm") as pages:
        return int(pages.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") // 1024

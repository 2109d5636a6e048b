"""What a process holds: counted before and after, and no more in the end, or something is lost."""

import asyncio
import contextlib
import gc
import os
import threading
from collections import Counter
from types import TracebackType
from typing import Any, Self

import httpx2
from mcp.server.connection import Connection
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

from rookery.server.session import Session
from rookery.server.streamable.exchange import Exchange
from rookery.server.streamable.sessions import HttpSession
from rookery.server.streamable.streams import Stream
from tests.server.streamable.web import PATIENCE_S, Web, until

KINDS = (Connection, Exchange, HttpSession, HttpToolsProtocol, RequestResponseCycle, Session, Stream)


class Census:
    """Around a block: fails if afterwards there is more than before. The test's own client is put away meanwhile."""

    def __init__(self, web: Web) -> None:
        self._web = web
        self._before: Counter[str] = Counter()

    async def __aenter__(self) -> Self:
        await self._warm()
        await self._put_away()
        await asyncio.sleep(0)
        gc.collect()
        # What is there now is looked at no more, which makes every further look quick.
        gc.freeze()
        await until(self._quiet, "everything is quiet")
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if error is None:
                await self._compare()
        finally:
            gc.unfreeze()

    async def _warm(self) -> None:
        """Have everything that starts when it is first needed and then stays: threads, connections, the caller."""
        database: Any = self._web.platform.database
        size: int = database._pool._size
        together = threading.Barrier(size)
        await asyncio.gather(*(database.read(lambda tx: together.wait(PATIENCE_S)) for _ in range(size)))
        await database.change(lambda tx: None)
        # The first call notes that its agent was seen. While that is written, a record does not take its short way.
        for _ in range(2):
            await self._web.modern("tools/call", name="ping", arguments={})
            await self._web.hub.sightings.settle()

    def _quiet(self) -> bool:
        earlier, self._before = self._before, count()
        return earlier == self._before

    async def _compare(self) -> None:
        await self._put_away()
        left: Counter[str] = Counter()

        def none_left() -> bool:
            nonlocal left
            left = count() - self._before
            return not left

        try:
            await until(none_left, "nothing is left over")
        except AssertionError:
            raise AssertionError(f"left over: {dict(left)}") from None
        assert not self._web.endpoint.exchanges
        assert not len(self._web.endpoint.table)
        assert not self._web.hub.sessions

    async def _put_away(self) -> None:
        await self._web.http.aclose()
        self._web.http = httpx2.AsyncClient(base_url=self._web.url, timeout=PATIENCE_S, trust_env=False, verify=False)


def held(kind: type[Any]) -> int:
    """How many there are that were not there when the census began."""
    gc.collect()
    return sum(issubclass(each, kind) for each in map(type, gc.get_objects()))


def count() -> Counter[str]:
    """What can be lost, by its name."""
    gc.collect()
    found = Counter(kind.__name__ for kind in map(type, gc.get_objects()) if issubclass(kind, KINDS))
    found["tasks"] = len(asyncio.all_tasks())
    found.update(f"thread {thread.name}" for thread in threading.enumerate())
    for number in os.listdir("/proc/self/fd"):
        # The listing itself is open while it is made.
        with contextlib.suppress(FileNotFoundError):
            found[f"file {os.readlink(f'/proc/self/fd/{number}').partition('[')[0]}"] += 1
    return found


def resident_kb() -> int:
    """The memory of this process now."""
    with open("/proc/self/statm") as pages:
        return int(pages.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") // 1024

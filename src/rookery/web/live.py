"""What has changed, told to every page that is open: the names of topics, and each page fetches the parts it shows.

A topic is a cheap question to the database, asked at most once a second for everybody who listens in a tenant, and only
while somebody listens. So changes of other processes are noticed too. A page whose parts many look at can follow a feed
instead, which sends the content itself, made once for all of them.
"""

import asyncio
import contextlib
import logging
import time
from collections.abc import AsyncGenerator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import sqlalchemy as sa

from rookery.core.events import Event
from rookery.web.feeds import make_feeds
from rookery.web.listener import Listener, digest_of
from rookery.web.topics import TOPICS

if TYPE_CHECKING:
    from rookery.app import Platform

log = logging.getLogger("rookery.web")
LOOK_S = 1.0
PING_S = 20.0
MOST = 2000
Key = tuple[str, str]


class Live:
    """Looks for changes on behalf of all open pages of a server."""

    def __init__(self, platform: "Platform") -> None:
        self.listeners: set[Listener] = set()
        self._platform = platform
        self._feeds = make_feeds(platform)
        self._seen: dict[Key, Any] = {}
        self._look_now = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._deaf = lambda: None
        self._closed = asyncio.Event()
        self._failing = False

    async def follow(self, listener: Listener) -> AsyncGenerator[bytes]:
        """What the page is told, whenever there is something; nothing from time to time. Ends with the server."""
        self.listeners.add(listener)
        self._start()
        self._look_now.set()
        closed = asyncio.create_task(self._closed.wait())
        try:
            while not self._closed.is_set():
                woken = asyncio.create_task(listener.woken.wait())
                try:
                    await asyncio.wait([woken, closed], timeout=PING_S, return_when=asyncio.FIRST_COMPLETED)
                finally:
                    woken.cancel()
                yield listener.take()
        finally:
            closed.cancel()
            self.listeners.discard(listener)

    async def close(self) -> None:
        """Let every open page go."""
        self._closed.set()
        self._deaf()
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task

    def _start(self) -> None:
        if self._task is not None and not self._task.done():
            return
        loop = asyncio.get_running_loop()

        def heard(event: Event) -> None:
            with contextlib.suppress(RuntimeError):
                loop.call_soon_threadsafe(self._look_now.set)

        self._deaf()
        self._deaf = self._platform.events.subscribe(heard)
        self._task = loop.create_task(self._watch())

    async def _watch(self) -> None:
        """Ask while somebody listens. What nobody listened to is forgotten: who comes later has just seen it."""
        while self.listeners:
            begun = time.monotonic()
            try:
                await self._look()
                self._failing = False
            except Exception:
                # A database that does not answer just now answers later; the pages stay open meanwhile.
                log.log(logging.DEBUG if self._failing else logging.WARNING, "live pages wait", exc_info=True)
                self._failing = True
            # What comes in a burst is told once.
            await asyncio.sleep(max(LOOK_S / 5 - (time.monotonic() - begun), 0))
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(LOOK_S):
                    await self._look_now.wait()
            self._look_now.clear()

    async def _look(self) -> None:
        listeners = list(self.listeners)
        wanted = {(each.tenant, topic) for each in listeners for topic in each.topics}
        self._seen = {key: value for key, value in self._seen.items() if key in wanted}
        if wanted:
            self._tell(listeners, await self._platform.database.read(partial(_ask_all, sorted(wanted))))
        for name, feed in self._feeds.items():
            await feed.look([each for each in listeners if each.feed == name])

    def _tell(self, listeners: Sequence[Listener], found: dict[Key, Any]) -> None:
        changed = {key for key, value in found.items() if key in self._seen and self._seen[key] != value}
        self._seen |= found
        digests = {key: digest_of(value) for key, value in found.items()}
        for listener in listeners:
            for topic in listener.topics:
                key = (listener.tenant, topic)
                listener.see(topic, digests[key], changed=key in changed)


def _ask_all(wanted: Sequence[Key], tx: Any) -> dict[Key, Any]:
    return {(tenant, topic): tuple(tx.one(sa.text(TOPICS[topic]), {"tenant": tenant})) for tenant, topic in wanted}

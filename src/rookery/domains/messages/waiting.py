"""Waiting for the end of deliveries that workers, in whatever process, are at."""

import asyncio
import contextlib
import logging
from typing import cast
from weakref import WeakKeyDictionary

from rookery.core.context import Context
from rookery.core.errors import RookeryError
from rookery.db.database import Database
from rookery.domains.messages.store import OPEN, WAKE, Messages, Row, over_among

log = logging.getLogger("rookery.messages")
LOOK_S = 1.0
"""So often somebody looks who was not told, as can happen when a connection is lost."""
PAUSE_S = 0.05
"""Between two looks is at least so much, however often somebody commits something."""
SPARE_S = 5.0
"""What is left of a call's time for telling how it went."""
AT_ONCE = 500


class Lookout:
    """Looks after every message that somebody in this process waits for, with one query for all of them."""

    def __init__(self) -> None:
        self._waiting: dict[str, set[asyncio.Future[None]]] = {}
        self._task: asyncio.Task[None] | None = None
        self._called = asyncio.Event()

    async def over(self, database: Database, message_id: str) -> None:
        """Return when the delivery of the message is over."""
        end: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(message_id, set()).add(end)
        if self._task is None or self._task.done():
            self._called = asyncio.Event()
            self._task = asyncio.create_task(self._keep(database), name="messages under way")
        self._called.set()
        try:
            await end
        finally:
            left = self._waiting.get(message_id, set())
            left.discard(end)
            if not left:
                self._waiting.pop(message_id, None)
                self._called.set()

    async def _keep(self, database: Database) -> None:
        """Watch for as long as anybody waits. Whatever ends a watch ends nobody's wait: the next one begins soon."""
        while self._waiting:
            try:
                await self._watch(database)
            except Exception as error:
                if isinstance(error, RookeryError) and error.retryable:
                    log.warning("nobody knows how messages are just now: %s", error.message)
                else:
                    log.exception("looking after messages failed, and begins anew")
                await asyncio.sleep(LOOK_S)

    async def _watch(self, database: Database) -> None:
        loop = asyncio.get_running_loop()

        def hear(name: str) -> None:
            if name in (WAKE, ""):
                with contextlib.suppress(RuntimeError):
                    loop.call_soon_threadsafe(self._called.set)

        deaf = database.on_wake(hear)
        try:
            while self._waiting:
                self._called.clear()
                await self._look(database)
                if self._waiting:
                    await asyncio.sleep(PAUSE_S)
                    with contextlib.suppress(TimeoutError):
                        async with asyncio.timeout(LOOK_S):
                            await self._called.wait()
        finally:
            deaf()

    async def _look(self, database: Database) -> None:
        """Tell those whose message is over."""
        wanted = list(self._waiting)
        for start in range(0, len(wanted), AT_ONCE):
            some = wanted[start : start + AT_ONCE]
            over = await database.read(lambda tx, some=some: over_among(tx, some))
            for end in [end for message_id in over for end in self._waiting.get(message_id, ())]:
                if not end.done():
                    end.set_result(None)


# None of them holds its database: one that nobody uses any more has to go.
_lookouts: WeakKeyDictionary[Database, Lookout] = WeakKeyDictionary()


async def ended(ctx: Context, message_id: str, limit_s: float) -> Row | None:
    """The message once its delivery is over; None if that takes longer than `limit_s` or than the call may."""
    database = cast(Database, ctx.platform.database)
    lookout = _lookouts.setdefault(database, Lookout())
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(max(0.0, min(limit_s, ctx.remaining_s - SPARE_S))):
            await lookout.over(database, message_id)
    row = await ctx.read(lambda tx: Messages(tx, ctx.actor.tenant).find(message_id))
    return row if row is None or row.status not in OPEN else None

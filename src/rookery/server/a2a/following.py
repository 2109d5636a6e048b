"""Looks after tasks that a worker, in whatever process, is at. However many wait for one, it is looked at once."""

import asyncio
import contextlib
import logging
from collections import Counter
from collections.abc import AsyncGenerator, Generator

from rookery.core.errors import DatabaseError, RateLimited
from rookery.db.database import Database
from rookery.domains.a2a.inbound import current
from rookery.domains.a2a.store import OPEN, WAKE, Row, Tasks

log = logging.getLogger("rookery.a2a")
LOOK_S = 1.0
"""So often somebody looks who was not told, as can happen when a connection is lost."""
PAUSE_S = 0.02
"""Between two looks is at least so much, however often somebody commits something."""
MOST_OF_ONE, MOST = 20, 200
"""Requests of one sender, and of all, that wait for tasks in this process at once."""


class Following:
    """The requests of this process that wait for tasks."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._waiting: Counter[tuple[str, str]] = Counter()
        self._watches: dict[str, _Watch] = {}

    @contextlib.contextmanager
    def place(self, tenant: str, sender: str) -> Generator[None]:
        """Room for one request that waits; RateLimited if the sender, or all together, have none left."""
        who = tenant, sender
        if self._waiting[who] >= MOST_OF_ONE or self._waiting.total() >= MOST:
            raise RateLimited("too many requests wait for tasks", hint="look at the task instead of waiting for it")
        self._waiting[who] += 1
        try:
            yield
        finally:
            self._waiting[who] -= 1
            if not self._waiting[who]:
                del self._waiting[who]

    async def moves(self, row: Row) -> AsyncGenerator[Row]:
        """The task each time that its state has changed, until it is over or gone."""
        watch = self._watches.get(row.id)
        if watch is None or watch.looking.done():
            watch = self._watches[row.id] = _Watch(self._database, row)
        watch.heard(row)
        watch.followers += 1
        try:
            while row.state in OPEN:
                changed = watch.changed
                if watch.row.state != row.state:
                    row = watch.row
                    yield row
                elif watch.looking.done():
                    return
                else:
                    await changed.wait()
        finally:
            watch.followers -= 1
            if not watch.followers:
                watch.looking.cancel()
                if self._watches.get(row.id) is watch:
                    del self._watches[row.id]

    async def when_over(self, row: Row, within_s: float) -> Row:
        """The task once it is over, or as it is when the time is."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(within_s), contextlib.aclosing(self.moves(row)) as following:
                async for moved in following:
                    row = moved
        return row


class _Watch:
    """One task, and what is known of it. `changed` is set when there is news, and another is there for the next."""

    def __init__(self, database: Database, row: Row) -> None:
        self._database = database
        self.row = row
        self.followers = 0
        self.changed = asyncio.Event()
        self.looking = asyncio.create_task(self._look_on())
        self.looking.add_done_callback(self._ended)

    def heard(self, row: Row) -> None:
        """Take in what somebody has read, unless that was before what is known."""
        if _order(row) > _order(self.row):
            self.row = row
            self._tell()

    def _tell(self) -> None:
        self.changed.set()
        self.changed = asyncio.Event()

    def _ended(self, task: "asyncio.Task[None]") -> None:
        self._tell()
        if not task.cancelled() and task.exception() is not None:
            log.error("task %s is followed no more", self.row.id, exc_info=task.exception())

    async def _look_on(self) -> None:
        loop, called = asyncio.get_running_loop(), asyncio.Event()

        def hear(name: str) -> None:
            if name in (WAKE, ""):
                with contextlib.suppress(RuntimeError):
                    loop.call_soon_threadsafe(called.set)

        deaf = self._database.on_wake(hear)
        try:
            while True:
                called.clear()
                now = await self._look()
                if now is None:
                    return
                self.heard(now)
                if self.row.state not in OPEN:
                    return
                await asyncio.sleep(PAUSE_S)
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(LOOK_S):
                        await called.wait()
        finally:
            deaf()

    async def _look(self) -> Row | None:
        known = self.row
        try:
            row = await self._database.read(lambda tx: Tasks(tx, known.tenant).of(known.id))
            return None if row is None else await current(self._database, row)
        except DatabaseError as error:
            log.warning("nobody knows how task %s is just now: %s", known.id, error.message)
            return known


def _order(row: Row) -> int:
    """How far a task is: it never goes back."""
    return OPEN.index(row.state) if row.state in OPEN else len(OPEN)

"""Waiting for an ask to be answered, by whomever and in whatever process."""

import asyncio
import contextlib
import time
from collections.abc import AsyncGenerator, Callable
from typing import Any

import sqlalchemy as sa

from rookery.asks.store import Asks, Row, wake_name
from rookery.asks.tables import OPEN, asks
from rookery.core.errors import NotFound, RookeryError
from rookery.db.database import Database
from rookery.db.tx import Tx

LOOK_S = 1.0
"""However deaf we are, an answer is seen after so long."""
CALM_S = 0.25
"""Other processes may commit all the time, and do not say what: we look no more often than this."""
AT_ONCE = 500
_PREFIX = wake_name("")
_HOW_THEY_STAND = sa.select(asks.c.id, asks.c.status, asks.c.later_ms).where(
    asks.c.id.in_(sa.bindparam("ids", expanding=True))
)


class Waiter:
    """Somebody who waits for one ask. `called` is set when it is worth a look; `later_ms` is what was seen of it."""

    __slots__ = ("called", "later_ms")

    def __init__(self) -> None:
        self.called = asyncio.Event()
        self.later_ms: int | None = None


class Lookout:
    """Looks out for everybody of one event loop who waits for an ask: a thousand of them cost as much as one."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._loop = asyncio.get_running_loop()
        self._waiters: dict[str, set[Waiter]] = {}
        self._stirred = asyncio.Event()
        self._deaf = database.on_wake(self._hear)
        self._looking = asyncio.create_task(self._look(), name="asks")

    def add(self, ask_id: str, waiter: Waiter) -> None:
        self._waiters.setdefault(ask_id, set()).add(waiter)

    def remove(self, ask_id: str, waiter: Waiter) -> bool:
        """Whether nobody waits any more."""
        those = self._waiters[ask_id]
        those.remove(waiter)
        if not those:
            del self._waiters[ask_id]
        return not self._waiters

    async def end(self) -> None:
        self._deaf()
        self._looking.cancel()
        await asyncio.gather(self._looking, return_exceptions=True)

    @property
    def over(self) -> bool:
        """Whether something has ended it."""
        return self._looking.done()

    def check(self) -> None:
        """Raise what has ended the lookout, if anything has."""
        if self._looking.done():
            self._looking.result()

    def _hear(self, name: str) -> None:
        """From any thread: somebody has committed."""
        if not name or (name.startswith(_PREFIX) and name.removeprefix(_PREFIX) in self._waiters):
            # A loop that has ended waits for nothing.
            with contextlib.suppress(RuntimeError):
                self._loop.call_soon_threadsafe(self._call, name)

    def _call(self, name: str) -> None:
        if not name:
            self._stirred.set()
        for waiter in self._waiters.get(name.removeprefix(_PREFIX), ()):
            waiter.called.set()

    async def _look(self) -> None:
        while True:
            calm_s = min(CALM_S, LOOK_S)
            await asyncio.sleep(calm_s)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(LOOK_S - calm_s):
                    await self._stirred.wait()
            self._stirred.clear()
            try:
                await self._see()
            except RookeryError as error:
                # Out of reach for a while; the questions are safe where they are.
                if not error.retryable:
                    raise

    async def _see(self) -> None:
        """Call those for whom something has changed."""
        ids = list(self._waiters)
        for start in range(0, len(ids), AT_ONCE):
            part = ids[start : start + AT_ONCE]

            def read(tx: Tx, part: list[str] = part) -> dict[str, Any]:
                return {row.id: row for row in tx.all(_HOW_THEY_STAND, {"ids": part})}

            found = await self._database.read(read)
            for ask_id in part:
                row = found.get(ask_id)
                for waiter in self._waiters.get(ask_id, ()):
                    if row is None or row.status != OPEN or row.later_ms != waiter.later_ms:
                        waiter.called.set()


_LOOKOUTS: dict[tuple[Database, asyncio.AbstractEventLoop], Lookout] = {}


@contextlib.asynccontextmanager
async def watched(database: Database, ask_id: str) -> AsyncGenerator[tuple[Lookout, Waiter]]:
    """Somebody who is called as soon as there is news of the ask."""
    here = (database, asyncio.get_running_loop())
    if here not in _LOOKOUTS or _LOOKOUTS[here].over:
        _LOOKOUTS[here] = Lookout(database)
    lookout, waiter = _LOOKOUTS[here], Waiter()
    lookout.add(ask_id, waiter)
    try:
        yield lookout, waiter
    finally:
        if lookout.remove(ask_id, waiter):
            if _LOOKOUTS.get(here) is lookout:
                del _LOOKOUTS[here]
            await lookout.end()


async def until_settled(
    database: Database,
    tenant: str,
    ask_id: str,
    within_s: float,
    *,
    aside: asyncio.Task[None] | None = None,
    each_look: Callable[[float], None] | None = None,
    enough: Callable[[Row], bool] = lambda row: False,
) -> Row:
    """The ask as soon as it is no longer open or `enough` has happened to it, or as it is after `within_s`.

    `aside` is something that may settle it meanwhile: what it raises is raised here, and its end is a reason to look.
    `each_look` is told now and then how long it has taken so far.
    """
    began = time.monotonic()
    async with watched(database, ask_id) as (lookout, waiter):
        waiter.called.set()
        while True:
            rest_s = within_s - (time.monotonic() - began)
            if waiter.called.is_set() or rest_s <= 0:
                row = await _read(database, tenant, ask_id, waiter, last=rest_s <= 0)
                if row is not None and (row.status != OPEN or enough(row) or rest_s <= 0):
                    return row
            if aside is not None and aside.done():
                aside.result()
                aside = None
                waiter.called.set()
                continue
            lookout.check()
            if each_look is not None:
                each_look(within_s - rest_s)
            await _first(waiter.called, aside, min(LOOK_S, rest_s))


async def _read(database: Database, tenant: str, ask_id: str, waiter: Waiter, *, last: bool) -> Row | None:
    """The ask, or None if the database is out of reach and this is not the `last` look."""
    waiter.called.clear()
    try:
        row = await database.read(lambda tx: Asks(tx, tenant).find(ask_id))
    except RookeryError as error:
        if last or not error.retryable:
            raise
        await asyncio.sleep(LOOK_S)
        waiter.called.set()
        return None
    if row is None:
        raise NotFound(f"there is no ask {ask_id}")
    waiter.later_ms = row.later_ms
    return row


async def _first(called: asyncio.Event, aside: asyncio.Task[None] | None, limit_s: float) -> None:
    """Until the call comes, `aside` has ended, or the time is over."""
    if called.is_set():
        return
    waiting = asyncio.ensure_future(called.wait())
    try:
        await asyncio.wait(
            [waiting, *([aside] if aside is not None else [])], timeout=limit_s, return_when="FIRST_COMPLETED"
        )
    finally:
        waiting.cancel()

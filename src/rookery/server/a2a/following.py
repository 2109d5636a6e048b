"""Looks after a task that a worker, in whatever process, is at."""

import asyncio
import contextlib
import logging
from collections.abc import AsyncGenerator

from rookery.core.errors import DatabaseError
from rookery.db.database import Database
from rookery.domains.a2a.store import OPEN, WAKE, Row, Tasks

log = logging.getLogger("rookery.a2a")
LOOK_S = 1.0
"""So often somebody looks who was not told, as can happen when a connection is lost."""
PAUSE_S = 0.02
"""Between two looks is at least so much, however often somebody commits something."""


async def moves(database: Database, row: Row) -> AsyncGenerator[Row]:
    """The task each time that its state has changed, until it is over or gone."""
    loop, called = asyncio.get_running_loop(), asyncio.Event()

    def hear(name: str) -> None:
        if name in (WAKE, ""):
            with contextlib.suppress(RuntimeError):
                loop.call_soon_threadsafe(called.set)

    deaf = database.on_wake(hear)
    try:
        while row.state in OPEN:
            called.clear()
            now = await _look(database, row)
            if now is None:
                return
            if now.state != row.state:
                row = now
                yield row
                continue
            await asyncio.sleep(PAUSE_S)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(LOOK_S):
                    await called.wait()
    finally:
        deaf()


async def when_over(database: Database, row: Row, within_s: float) -> Row:
    """The task once it is over, or as it is when the time is."""
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(within_s), contextlib.aclosing(moves(database, row)) as following:
            async for moved in following:
                row = moved
    return row


async def _look(database: Database, row: Row) -> Row | None:
    try:
        return await database.read(lambda tx: Tasks(tx, row.tenant).of(row.id))
    except DatabaseError as error:
        log.warning("nobody knows how task %s is just now: %s", row.id, error.message)
        return row

"""Waiting for what a database tells its listeners."""

import asyncio
import contextlib
from collections.abc import Callable

from rookery.db.database import Database

LIMIT_S = 30
_NAME = "does anybody listen"


async def until_listening(database: Database) -> None:
    """PostgreSQL tells what comes after a process has begun to listen, which takes a moment."""
    loop, told = asyncio.get_running_loop(), asyncio.Event()

    def hear(name: str) -> None:
        if name == _NAME:
            loop.call_soon_threadsafe(told.set)

    deaf = database.on_wake(hear)
    async with asyncio.timeout(LIMIT_S):
        while not told.is_set():
            await database.change(lambda tx: tx.wake(_NAME))
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(told.wait(), 0.05)
    deaf()


async def until(holds: Callable[[], bool]) -> None:
    """Let others go on until it holds."""
    async with asyncio.timeout(LIMIT_S):
        while not holds():
            await asyncio.sleep(0.005)

"""Waiting for deliveries to be made, by a worker of whatever process."""

import asyncio
import contextlib
from collections.abc import Generator

from rookery.db.database import Database


@contextlib.contextmanager
def listening(database: Database, name: str) -> Generator[asyncio.Event]:
    """An event that is set by commits that wake `name`, and by those of other processes."""
    called = asyncio.Event()
    loop = asyncio.get_running_loop()

    def wake(woken: str) -> None:
        if woken in (name, ""):
            # A loop that has ended waits for nothing.
            with contextlib.suppress(RuntimeError):
                loop.call_soon_threadsafe(called.set)

    deaf = database.on_wake(wake)
    try:
        yield called
    finally:
        deaf()

"""Workers for tests, on a platform's own event loop."""

import asyncio
import contextlib
import time
from collections.abc import AsyncGenerator
from typing import Any

import sqlalchemy as sa

from rookery.app import Platform
from rookery.db.clock import NOW
from rookery.jobs.worker import Worker

# By the database's clock, which rounds: by ours, what was deferred just now would not be due yet.
BUSY = {
    dialect: sa.text(
        f"SELECT count(*) FROM jobs WHERE state = 'running' OR (state = 'waiting' AND due_ms <= {now} + :ahead)"
    )
    for dialect, now in NOW.items()
}


@contextlib.asynccontextmanager
async def running_worker(platform: Platform, **how: Any) -> AsyncGenerator[Worker]:
    """A worker that has stopped when the block ends."""
    worker = Worker(platform, **{"concurrency": 4, "lease_s": 5.0, "grace_s": 0.5, **how})
    task = asyncio.create_task(worker.run())
    try:
        yield worker
    finally:
        worker.stop()
        await task


async def settled(platform: Platform, *, within_s: float = 30.0, ahead_ms: int = 0) -> None:
    """Wait until nothing runs and nothing is due, now or `ahead_ms` from now."""

    def left(tx: Any) -> int:
        return tx.scalar(BUSY[tx.dialect], {"ahead": ahead_ms})

    deadline = time.monotonic() + within_s
    while await platform.database.read(left):
        assert time.monotonic() < deadline, await platform.database.read(
            lambda tx: tx.all(sa.text("SELECT kind, state, due_ms, error FROM jobs"))
        )
        await asyncio.sleep(0.01)

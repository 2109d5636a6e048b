"""The measurements of `jobs_probe.py` on procrastinate, with the same arguments: `DATABASE JOBS TRICKLE SECONDS`.

It looks for jobs whose time has come every few seconds, at its default setting; `POLL` seconds are a sixth argument.
"""

import asyncio
import contextlib
import json
import logging
import random
import sys
import time
from collections.abc import AsyncIterator, Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import procrastinate

CONCURRENCY = 16
BATCH = 500
HEAD_MS = 500
LIMIT_S = 300
TOOK = """
SELECT extract(epoch FROM max(ended) - min(started)) AS s, count(*) AS done FROM (
    SELECT min(at) FILTER (WHERE type = 'started') AS started, max(at) FILTER (WHERE type = 'succeeded') AS ended
    FROM procrastinate_events GROUP BY job_id
) AS each WHERE ended IS NOT NULL
"""
begun: list[float] = []


@contextlib.asynccontextmanager
async def working(app: procrastinate.App, poll_s: float | None) -> AsyncIterator[None]:
    how = {} if poll_s is None else {"fetch_job_polling_interval": poll_s}
    task = asyncio.create_task(app.run_worker_async(concurrency=CONCURRENCY, install_signal_handlers=False, **how))
    try:
        yield
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task


async def until(done: Callable[[], bool], pause_s: float = 0.005) -> None:
    limit = time.monotonic() + LIMIT_S
    while not done():
        if time.monotonic() > limit:
            raise TimeoutError(f"not done within {LIMIT_S} s")
        await asyncio.sleep(pause_s)


async def throughput(app: procrastinate.App, task: Any, jobs: int) -> dict[str, Any]:
    for first in range(0, jobs, BATCH):
        await task.batch_defer_async(*({"due_ms": 0} for _ in range(first, min(first + BATCH, jobs))))
    begun.clear()
    before = time.process_time()
    async with working(app, None):
        await until(lambda: len(begun) >= jobs)
        row: Any = None
        for _ in range(1000):
            row = await app.connector.execute_query_one_async(TOOK)
            if row["done"] == jobs:
                break
            await asyncio.sleep(0.02)
    used = time.process_time() - before
    if row["done"] != jobs:
        raise AssertionError(f"{row['done']} jobs done of {jobs}")
    return {"jobs": jobs, "s": float(row["s"]), "cpu_ms": 1000 * used / jobs}


async def trickle(app: procrastinate.App, task: Any, jobs: int, seconds: float, poll_s: float | None) -> list[float]:
    chance = random.Random(7)
    begun.clear()
    now = datetime.now(UTC)
    async with working(app, poll_s):
        for _ in range(jobs):
            due = now + timedelta(milliseconds=HEAD_MS * 4 + round(chance.uniform(0, seconds * 1000)))
            await task.configure(schedule_at=due).defer_async(due_ms=due.timestamp() * 1000)
        await until(lambda: len(begun) >= jobs)
    return list(begun)


async def at_once(app: procrastinate.App, task: Any, jobs: int, seconds: float) -> list[float]:
    begun.clear()
    async with working(app, None):
        for number in range(jobs):
            await task.defer_async(due_ms=time.time_ns() / 1e6)
            await until(lambda number=number: len(begun) > number, 0.001)
            await asyncio.sleep(seconds / jobs)
    return list(begun)


async def main(database: str, jobs: int, late: int, seconds: float, poll_s: float | None) -> None:
    app = procrastinate.App(connector=procrastinate.PsycopgConnector(conninfo=database))

    @app.task(name="nothing")
    async def nothing(due_ms: float) -> None:
        begun.append(time.time_ns() / 1e6 - due_ms)

    async with app.open_async():
        await app.schema_manager.apply_schema_async()
        found = {
            "throughput": await throughput(app, nothing, jobs),
            "due": await trickle(app, nothing, late, seconds, poll_s),
            "now": await at_once(app, nothing, late, seconds / 2),
        }
    print(json.dumps(found))


if __name__ == "__main__":
    logging.disable()
    given = [float(word) for word in sys.argv[2:]]
    asyncio.run(main(sys.argv[1], int(given[0]), int(given[1]), given[2], given[3] if len(given) > 3 else None))

"""Times the worker and prints the samples as JSON: `-m benchmarks.jobs_probe HOME DATABASE JOBS TRICKLE SECONDS`.

A worker as `rookery up` has it, with 16 handlers that do nothing. First so many jobs that are due already, then a
trickle of jobs with a due time of their own, then one of jobs that are due at once. What is asked of the database is
what the worker asks: the probe looks at the table only before and after.
"""

import asyncio
import contextlib
import json
import random
import sys
import time
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import sqlalchemy as sa

from rookery.app import Platform, make_platform
from rookery.db.clock import now_ms
from rookery.jobs.kinds import JobArgs, job
from rookery.jobs.running import Running
from rookery.jobs.store import Jobs
from rookery.jobs.worker import Worker
from rookery.server.loop import run, settle_memory
from rookery.settings import Settings

CONCURRENCY = 16
BATCH = 500
HEAD_MS = 500
LIMIT_S = 300
TOOK = sa.text(
    "SELECT max(ended_ms) - min(started_ms) AS ms, count(*) AS done FROM jobs WHERE kind = :kind AND state = 'done'"
)


class Nothing(JobArgs):
    number: int = 0


class Bench:
    """A domain with a kind of job that does nothing but note when it began."""

    def __init__(self) -> None:
        self.begun: list[tuple[int, float]] = []
        self.module = ModuleType("bench")

        @job("bench.nothing")
        async def nothing(job: Running, args: Nothing) -> None:
            self.begun.append((job.row.due_ms, time.time_ns() / 1e6))

        @job("bench.late")
        async def late(job: Running, args: Nothing) -> None:
            self.begun.append((job.row.due_ms, time.time_ns() / 1e6))

        for each in (nothing, late):
            setattr(self.module, each.name.partition(".")[2], each)


@contextlib.asynccontextmanager
async def working(platform: Platform) -> AsyncIterator[Worker]:
    worker = Worker(platform, concurrency=CONCURRENCY)
    task = asyncio.create_task(worker.run())
    try:
        yield worker
    finally:
        worker.stop()
        await task


async def until(done: Callable[[], bool], pause_s: float = 0.005) -> None:
    limit = time.monotonic() + LIMIT_S
    while not done():
        if time.monotonic() > limit:
            raise TimeoutError(f"not done within {LIMIT_S} s")
        await asyncio.sleep(pause_s)


async def throughput(platform: Platform, bench: Bench, jobs: int) -> dict[str, Any]:
    """Jobs that all wait already, until the last is marked done, by the database's own clock."""
    for first in range(0, jobs, BATCH):
        numbers = range(first, min(first + BATCH, jobs))
        await platform.database.change(
            lambda tx, numbers=numbers: [
                Jobs(tx, "default").defer("bench.nothing", {"number": number}) for number in numbers
            ]
        )
    bench.begun.clear()
    before = time.process_time()
    async with working(platform) as worker:
        await until(lambda: len(bench.begun) >= jobs and not worker.running)
    used = time.process_time() - before
    row = await platform.database.read(lambda tx: tx.one(TOOK, {"kind": "bench.nothing"}))
    assert row is not None
    if (row.done, len(bench.begun)) != (jobs, jobs):
        raise AssertionError(f"{row.done} jobs done by {len(bench.begun)} handlers, of {jobs}")
    return {"jobs": jobs, "s": row.ms / 1000, "cpu_ms": 1000 * used / jobs}


async def trickle(platform: Platform, bench: Bench, jobs: int, seconds: float) -> list[float]:
    """Milliseconds from the due time to the handler, of jobs that are all deferred before any of them is due."""
    chance = random.Random(7)
    ahead = [HEAD_MS + round(chance.uniform(0, seconds * 1000)) for _ in range(jobs)]

    def defer(tx: Any) -> None:
        now = now_ms(tx)
        for after in ahead:
            Jobs(tx, "default").defer("bench.late", {}, at_ms=now + after)

    bench.begun.clear()
    async with working(platform) as worker:
        await platform.database.change(defer)
        await until(lambda: len(bench.begun) >= jobs and not worker.running)
    return [began - due for due, began in bench.begun]


async def at_once(platform: Platform, bench: Bench, jobs: int, seconds: float) -> list[float]:
    """Milliseconds from the moment of deferring, before its commit, to the handler."""
    bench.begun.clear()
    took: list[float] = []
    async with working(platform):
        for number in range(jobs):
            asked = time.time_ns() / 1e6
            await platform.database.change(lambda tx: Jobs(tx, "default").defer("bench.late", {}))
            await until(lambda number=number: len(bench.begun) > number, 0.001)
            took.append(bench.begun[-1][1] - asked)
            await asyncio.sleep(seconds / jobs)
    return took


async def measure(platform: Platform, bench: Bench, jobs: int, late: int, seconds: float) -> dict[str, Any]:
    settle_memory()
    return {
        "throughput": await throughput(platform, bench, jobs),
        "due": await trickle(platform, bench, late, seconds),
        "now": await at_once(platform, bench, late, seconds / 2),
    }


def main(home: Path, database: str, jobs: int, late: int, seconds: float) -> None:
    bench = Bench()
    settings = Settings(home=str(home), database=database, plugins=False)
    platform = make_platform(settings, extra={"bench": bench.module})
    with contextlib.closing(platform):
        print(json.dumps(run(measure(platform, bench, jobs, late, seconds))))


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]), int(sys.argv[4]), float(sys.argv[5]))

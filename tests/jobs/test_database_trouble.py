"""A database that is out of reach for a moment: no job pays for it, and none is kept by a worker that lost it."""

import asyncio
import time
from collections.abc import Callable
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
import sqlalchemy as sa

from rookery.app import Platform
from rookery.core.errors import DatabaseError
from rookery.db.tx import Tx
from rookery.jobs.kinds import JobArgs, job
from rookery.jobs.running import Running
from rookery.jobs.store import Jobs
from rookery.jobs.worker import Worker
from tests.jobs import errands
from tests.jobs.nursery import Ledger
from tests.jobs.working import running_worker, settled
from tests.platform_fixtures import Fleet


class Line:
    """The way to a database, which can be cut."""

    def __init__(self, database: Any) -> None:
        self._database = database
        self.failures = 0
        self.away = False
        self.silent = False

    def __getattr__(self, name: str) -> Any:
        return getattr(self._database, name)

    async def write(self, work: Callable[[Tx], Any], **how: Any) -> Any:
        if self.silent:
            await asyncio.Event().wait()
        if self.away or self.failures:
            self.failures = max(0, self.failures - 1)
            raise DatabaseError("the database is out of reach")
        return await self._database.write(work, **how)

    async def change(self, work: Callable[[Tx], Any]) -> Any:
        return await self.write(work, records=lambda error: [])


class Scene:
    """A platform whose worker reaches the database by a line of its own."""

    def __init__(self, platform: Platform, seen: SimpleNamespace) -> None:
        self.platform = platform
        self.ledger = Ledger(platform)
        self.line = Line(platform.database)
        self.seen = seen

    @property
    def ground(self) -> Any:
        at = self.platform
        return SimpleNamespace(calls=at.calls, resolver=at.resolver, database=self.line, kinds=at.kinds)

    async def until(self, reached: Callable[[], Any]) -> None:
        deadline = time.monotonic() + 15
        while not reached():
            assert time.monotonic() < deadline
            await asyncio.sleep(0.005)


class Nothing(JobArgs):
    pass


def chores(seen: SimpleNamespace) -> ModuleType:
    module = ModuleType("chores")

    @job("chores.cut", attempts=1, backoff_s=0.01)
    async def cut(job: Running, args: Nothing) -> Callable[[Tx], None]:
        """The line breaks after its work is done, for as many tries as the test says."""
        seen.runs += 1
        seen.line().failures = seen.tries
        return lambda tx: errands.effect(tx, job, "cut")

    @job("chores.inside", attempts=1, backoff_s=0.01)
    async def inside(job: Running, args: Nothing) -> Callable[[Tx], None]:
        """The line is broken for its first `tries` attempts, while it works."""
        seen.runs += 1
        if seen.tries:
            seen.tries -= 1
            seen.line().failures = 1
        await job.write(lambda tx: None)
        return lambda tx: errands.effect(tx, job, "inside")

    @job("chores.long", attempts=1)
    async def long(job: Running, args: Nothing) -> None:
        seen.runs += 1
        try:
            await seen.gate.wait()
        except asyncio.CancelledError:
            # The database's clock is this machine's, and it may take a while to answer.
            seen.stopped_ms = time.time_ns() // 1_000_000
            seen.line().away = not seen.comes_back
            raise

    for each in (cut, inside, long):
        setattr(module, each.name.partition(".")[2], each)
    return module


@pytest.fixture
def scene(database_url: str, make_fleet: Callable[..., Fleet]) -> Scene:
    seen = SimpleNamespace(runs=0, tries=0, gate=asyncio.Event(), stopped_ms=None, comes_back=False)
    made = Scene(make_fleet(database_url, extra={"errands": errands, "chores": chores(seen)}).platform, seen)
    seen.line = lambda: made.line
    return made


def defer(scene: Scene, kind: str) -> int:
    known = scene.platform.kinds[f"chores.{kind}"]
    return scene.platform.database.direct(lambda tx: Jobs(tx, "default").defer(known, {}), write=True)


async def test_the_end_of_a_job_waits_for_the_database(scene: Scene) -> None:
    scene.seen.tries = 3
    job_id = defer(scene, "cut")
    async with running_worker(scene.ground):
        await settled(scene.platform)
    row = scene.ledger.job(job_id)
    assert (row.state, row.failures, row.losses, scene.seen.runs) == ("done", 0, 0, 1)
    assert scene.ledger.effects == [(job_id, 1, "cut")]


async def test_a_handler_that_the_database_failed_has_not_failed_itself(scene: Scene) -> None:
    scene.seen.tries = 2
    job_id = defer(scene, "inside")
    async with running_worker(scene.ground):
        await settled(scene.platform, ahead_ms=60_000)
    row = scene.ledger.job(job_id)
    assert (row.state, row.failures, row.losses, scene.seen.runs) == ("done", 0, 2, 3)
    assert scene.ledger.effects == [(job_id, 3, "inside")]


async def test_a_database_that_always_fails_a_job_is_not_asked_for_ever(scene: Scene) -> None:
    scene.seen.tries = 1000
    job_id = defer(scene, "inside")
    async with running_worker(scene.ground):
        await settled(scene.platform, ahead_ms=60_000)
    row = scene.ledger.job(job_id)
    assert (row.state, row.losses, row.error) == ("failed", 10, "DATABASE_ERROR: the database is out of reach")


@pytest.mark.parametrize("trouble", ["away", "silent"])
async def test_a_worker_without_a_database_stops_before_another_may_begin(scene: Scene, trouble: str) -> None:
    job_id = defer(scene, "long")
    # It stops after three quarters: what is left has to be enough for a busy machine.
    async with running_worker(scene.ground, lease_s=6):
        await scene.until(lambda: scene.seen.runs)
        setattr(scene.line, trouble, True)
        await scene.until(lambda: scene.seen.stopped_ms)
        row = scene.ledger.job(job_id)
        scene.line.silent = False
        assert row.state == "running"
        assert scene.seen.stopped_ms < row.lease_ms - 750


async def test_a_busy_worker_keeps_no_job_that_it_is_not_at(scene: Scene) -> None:
    """Its answer to a claim, or to the end of a job, was lost on the way."""
    defer(scene, "long")
    async with running_worker(scene.ground, lease_s=1) as worker:
        await scene.until(lambda: scene.seen.runs)
        orphan = scene.ledger.defer("run", "orphan", delay_ms=3_600_000)
        adopt = sa.text(
            "UPDATE jobs SET state = 'running', attempt = 1, worker = :worker, lease_ms = due_ms - 3600000 + 500 "
            "WHERE id = :id"
        ).bindparams(worker=worker.name, id=orphan)
        scene.platform.database.direct(lambda tx: tx.run(adopt), write=True)
        await scene.until(lambda: scene.ledger.effects == [(orphan, 2, "orphan")])
        scene.seen.gate.set()


async def test_a_long_job_is_kept_by_few_writes(scene: Scene) -> None:
    """On SQLite a worker hears of its own commits as well, and must not answer each with another."""
    defer(scene, "long")
    worker = Worker(scene.ground, lease_s=60)
    task = asyncio.create_task(worker.run())
    await scene.until(lambda: scene.seen.runs)
    heard: list[str] = []
    enough = asyncio.Event()
    loop = asyncio.get_running_loop()

    def hear(name: str) -> None:
        heard.append(name)
        if len(heard) > 3:
            loop.call_soon_threadsafe(enough.set)

    deaf = scene.platform.database.on_wake(hear)
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(enough.wait(), 1.5)
    deaf()
    scene.seen.gate.set()
    worker.stop()
    await task


async def test_what_is_taken_after_the_database_is_back_is_not_dropped(scene: Scene) -> None:
    defer(scene, "long")
    async with running_worker(scene.ground, lease_s=1, concurrency=1):
        await scene.until(lambda: scene.seen.runs)
        scene.line.away = scene.seen.comes_back = True
        later = [scene.ledger.defer("run", str(number), seconds=0.6) for number in range(2)]
        await scene.until(lambda: scene.seen.stopped_ms)
        scene.seen.gate.set()
        await settled(scene.platform)
    assert [(scene.ledger.job(job_id).state, scene.ledger.job(job_id).losses) for job_id in later] == [("done", 0)] * 2

"""What goes wrong around a worker: it complains, and works on."""

import asyncio
from collections.abc import Callable
from types import ModuleType
from typing import Any

import pytest

from rookery.app import Platform
from rookery.db.tx import Tx
from rookery.jobs import worker
from rookery.jobs.claims import Claims
from rookery.jobs.kinds import JobArgs, job
from rookery.jobs.running import Running
from rookery.jobs.store import Jobs
from tests.jobs.working import running_worker, settled
from tests.platform_fixtures import Fleet


class Once:
    """The method `name` of `Claims`, which fails the first time in a way that nobody foresaw."""

    def __init__(self, name: str) -> None:
        self.failed = False
        self._real: Callable[..., Any] = getattr(Claims, name)

    def __get__(self, claims: Claims, kind: type[Claims]) -> Callable[..., Any]:
        def call(*args: Any, **how: Any) -> Any:
            if not self.failed:
                self.failed = True
                raise RuntimeError("nobody foresaw this")
            return self._real(claims, *args, **how)

        return call


class Nap:
    """How long jobs nap: until `over`."""

    def __init__(self) -> None:
        self.over: Callable[[], bool] = lambda: True


@pytest.fixture
def naps() -> Nap:
    return Nap()


@pytest.fixture
def crew(database_url: str, make_fleet: Callable[..., Fleet], naps: Nap) -> Fleet:
    module = ModuleType("chores")

    @job("chores.nap")
    async def nap(job: Running, args: JobArgs) -> Callable[[Tx], None]:
        while not naps.over():
            await asyncio.sleep(0.005)
        job.publish("Napped", subject=str(job.id))
        return lambda tx: None

    module.__dict__["nap"] = nap
    return make_fleet(database_url, extra={"chores": module})


@pytest.mark.parametrize("name", ["wait_ms", "take", "beat"])
async def test_an_error_that_nobody_foresaw_is_logged_and_the_work_goes_on(
    crew: Fleet, naps: Nap, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, name: str
) -> None:
    broken = Once(name)
    naps.over = lambda: broken.failed
    monkeypatch.setattr(Claims, name, broken)
    monkeypatch.setattr(worker, "TROUBLE_S", 0.01)
    async with running_worker(crew.platform, lease_s=2.0):
        job_id = await crew.platform.database.change(lambda tx: Jobs(tx, "default").defer("chores.nap", {}))
        await settled(crew.platform)
    row = await crew.platform.database.read(lambda tx: Jobs(tx, "default").of(job_id))
    assert broken.failed
    assert row is not None
    assert (row.state, row.attempt) == ("done", 1)
    assert any(record.exc_info and "nobody foresaw" in str(record.exc_info[1]) for record in caplog.records)


async def test_events_of_a_job_are_told_once_it_is_committed(crew: Fleet) -> None:
    told: list[tuple[str, str | None]] = []
    crew.platform.events.subscribe(lambda event: told.append((event.name, event.subject)))
    async with running_worker(crew.platform):
        job_id = await crew.platform.database.change(lambda tx: Jobs(tx, "default").defer("chores.nap", {}))
        await settled(crew.platform)
    assert told == [("Napped", str(job_id))]


async def test_a_worker_that_is_stopped_at_once_waits_for_nobody(crew: Fleet, naps: Nap) -> None:
    naps.over = lambda: False
    async with running_worker(crew.platform, grace_s=60.0) as busy:
        job_id = await crew.platform.database.change(lambda tx: Jobs(tx, "default").defer("chores.nap", {}))
        while not busy.running:
            await asyncio.sleep(0.005)
        busy.stop()
        busy.stop(at_once=True)
    row = await crew.platform.database.read(lambda tx: Jobs(tx, "default").of(job_id))
    assert row is not None
    assert (row.state, row.failures) == ("waiting", 0)


class Interrupting:
    """A platform whose database tells the worker to stop just when it has seen that there is something to take."""

    def __init__(self, platform: Platform) -> None:
        self.database = self
        self.stop: Callable[[], None] = lambda: None
        self._platform = platform

    def __getattr__(self, name: str) -> Any:
        return getattr(self._platform if hasattr(self._platform, name) else self._platform.database, name)

    async def read(self, work: Callable[[Tx], Any], **how: Any) -> Any:
        found = await self._platform.database.read(work, **how)
        self.stop()
        return found


async def test_a_worker_that_is_stopped_while_it_looks_takes_nothing_more(crew: Fleet) -> None:
    job_id = await crew.platform.database.change(lambda tx: Jobs(tx, "default").defer("chores.nap", {}))
    ground: Any = Interrupting(crew.platform)
    busy = worker.Worker(ground, grace_s=0.5)
    ground.stop = busy.stop
    await busy.run()
    row = await crew.platform.database.read(lambda tx: Jobs(tx, "default").of(job_id))
    assert row is not None
    assert (row.state, row.attempt) == ("waiting", 0)

"""Deferred work: done once its time has come, once, by whoever is there, and given up in the open."""

import asyncio
import time
from collections.abc import Callable
from types import ModuleType
from typing import Any

import pytest
import sqlalchemy as sa

from rookery.db.tx import Tx
from rookery.jobs.kinds import Ended, JobArgs, job, kinds_of
from rookery.jobs.running import Running, Superseded
from rookery.jobs.store import Jobs
from tests.jobs.working import running_worker, settled
from tests.platform_fixtures import Fleet

Note = sa.text(
    "INSERT INTO epochs (name, value) VALUES (:name, 1) ON CONFLICT (name) DO UPDATE SET value = epochs.value + 1"
)


class Say(JobArgs):
    word: str = ""
    seconds: float = 0


def note(tx: Tx, name: str) -> None:
    tx.run(Note.bindparams(name=f"said:{name}"))


class Seen:
    """What handlers of this test did, in this process."""

    def __init__(self) -> None:
        self.words: list[str] = []
        self.at: dict[str, int] = {}
        self.now: set[str] = set()
        self.together = 0
        self.gate = asyncio.Event()


def domain(seen: Seen) -> ModuleType:
    """A domain with some kinds of jobs."""
    module = ModuleType("chores")

    @job("chores.say")
    async def say(job: Running, args: Say) -> Callable[[Tx], None]:
        seen.words.append(args.word)
        seen.at[args.word] = time.time_ns() // 1_000_000
        return lambda tx: note(tx, args.word)

    @job("chores.fail", attempts=3, backoff_s=0.01)
    async def fail(job: Running, args: Say) -> None:
        seen.words.append(args.word)
        raise RuntimeError(f"{args.word} went wrong")

    @fail.ended
    def _(tx: Tx, end: Ended) -> None:
        note(tx, f"{end.state}:{end.args.word}:{end.error}")

    @job("chores.wait", attempts=1)
    async def wait(job: Running, args: Say) -> Callable[[Tx], None]:
        seen.words.append(args.word)
        seen.now.add(args.word)
        seen.together = max(seen.together, len(seen.now))
        try:
            await seen.gate.wait()
        finally:
            seen.now.discard(args.word)
        return lambda tx: note(tx, args.word)

    @wait.ended
    def _(tx: Tx, end: Ended) -> None:
        note(tx, f"{end.state}:{end.args.word}")

    @job("chores.late", attempts=1, timeout_s=0.05)
    async def late(job: Running, args: Say) -> None:
        await asyncio.Event().wait()

    @job("chores.bad_end", attempts=2, backoff_s=0.01)
    async def bad_end(job: Running, args: Say) -> Callable[[Tx], None]:
        seen.words.append(args.word)

        def finish(tx: Tx) -> None:
            note(tx, "half")
            if len(seen.words) == 1:
                raise RuntimeError("not yet")

        return finish

    for each in (say, fail, wait, late, bad_end):
        setattr(module, each.name.partition(".")[2], each)
    return module


@pytest.fixture
def seen() -> Seen:
    return Seen()


@pytest.fixture
def crew(database_url: str, make_fleet: Callable[..., Fleet], seen: Seen) -> Fleet:
    return make_fleet(database_url, extra={"chores": domain(seen)})


async def defer(fleet: Fleet, kind: str, word: str, *, tenant: str = "default", **how: Any) -> int:
    return await fleet.platform.database.change(
        lambda tx: Jobs(tx, tenant).defer(f"chores.{kind}", {"word": word}, **how)
    )


async def of(fleet: Fleet, job_id: int) -> Any:
    return await fleet.platform.database.read(lambda tx: Jobs(tx, "default").of(job_id))


async def said(fleet: Fleet, name: str) -> int:
    found = sa.text("SELECT value FROM epochs WHERE name = :name").bindparams(name=f"said:{name}")
    return await fleet.platform.database.read(lambda tx: tx.scalar(found)) or 0


async def until(reached: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 15
    while not reached():
        assert time.monotonic() < deadline
        await asyncio.sleep(0.005)


async def test_what_a_transaction_takes_back_is_never_done(crew: Fleet, seen: Seen) -> None:
    def undone(tx: Tx) -> None:
        Jobs(tx, "default").defer("chores.say", {"word": "no"})
        raise RuntimeError("changed my mind")

    with pytest.raises(RuntimeError):
        await crew.platform.database.change(undone)
    async with running_worker(crew.platform):
        await defer(crew, "say", "yes")
        await settled(crew.platform)
    assert seen.words == ["yes"]


async def test_a_job_is_done_and_its_end_is_committed_with_it(crew: Fleet, seen: Seen) -> None:
    job_id = await defer(crew, "say", "hello")
    async with running_worker(crew.platform):
        await settled(crew.platform)
    row = await of(crew, job_id)
    assert (row.state, row.attempt, row.worker, row.lease_ms) == ("done", 1, None, None)
    assert await said(crew, "hello") == 1


async def test_a_sleeping_worker_is_woken_by_a_new_job(crew: Fleet, seen: Seen) -> None:
    async with running_worker(crew.platform):
        await settled(crew.platform)
        for word in ("one", "two"):
            await defer(crew, "say", word)
            await until(lambda word=word: word in seen.words)


async def test_a_job_for_later_starts_at_its_time_and_not_before(crew: Fleet, seen: Seen) -> None:
    async with running_worker(crew.platform):
        job_id = await defer(crew, "say", "later", delay_ms=400)
        await until(lambda: "later" in seen.words)
        row = await of(crew, job_id)
    assert row.started_ms >= row.due_ms


async def test_a_key_lasts_beyond_the_end_of_its_job(crew: Fleet, seen: Seen) -> None:
    first = await defer(crew, "say", "once", key="only")
    async with running_worker(crew.platform):
        await settled(crew.platform)
        assert await defer(crew, "say", "twice", key="only") == first
        assert await defer(crew, "say", "other tenant", key="only", tenant="elsewhere") != first
        await settled(crew.platform)
    assert seen.words == ["once", "other tenant"]


async def test_parallel_defers_of_one_key_make_one_job(crew: Fleet, seen: Seen) -> None:
    ids = await asyncio.gather(*(defer(crew, "say", str(n), key="one") for n in range(20)))
    assert len(set(ids)) == 1


async def test_of_two_jobs_with_one_lock_key_one_waits(crew: Fleet, seen: Seen) -> None:
    for word in ("a", "b", "c"):
        await defer(crew, "wait", word, lock="door")
    other = await defer(crew, "wait", "d", lock="window")
    async with running_worker(crew.platform), running_worker(crew.platform):
        await until(lambda: len(seen.now) == 2)
        assert len({"a", "b", "c"} & seen.now) == 1
        assert (await of(crew, other)).state == "running"
        seen.gate.set()
        await settled(crew.platform)
    assert sorted(seen.words) == ["a", "b", "c", "d"]
    assert seen.together == 2


async def test_a_failure_is_tried_again_and_given_up_in_the_open(crew: Fleet, seen: Seen) -> None:
    job_id = await defer(crew, "fail", "soup", backoff_s=0.01)
    async with running_worker(crew.platform):
        await settled(crew.platform, ahead_ms=60_000)
    row = await of(crew, job_id)
    assert (row.state, row.failures, seen.words) == ("failed", 3, ["soup"] * 3)
    assert row.error == "RuntimeError: soup went wrong"
    assert await said(crew, "failed:soup:RuntimeError: soup went wrong") == 1


async def test_an_end_that_fails_leaves_nothing_and_is_tried_again(crew: Fleet, seen: Seen) -> None:
    job_id = await defer(crew, "bad_end", "x", backoff_s=0.01)
    async with running_worker(crew.platform):
        await settled(crew.platform, ahead_ms=60_000)
    assert (await of(crew, job_id)).state == "done"
    assert await said(crew, "half") == 1


async def test_a_job_that_takes_too_long_fails(crew: Fleet) -> None:
    job_id = await defer(crew, "late", "x", attempts=1)
    async with running_worker(crew.platform):
        await settled(crew.platform)
    row = await of(crew, job_id)
    assert (row.state, row.error) == ("failed", "not done within 0.05 s")


async def test_a_waiting_job_can_be_cancelled_and_is_never_done(crew: Fleet, seen: Seen) -> None:
    job_id = await defer(crew, "say", "no", delay_ms=200)
    assert await crew.platform.database.change(lambda tx: Jobs(tx, "default").cancel(job_id))
    async with running_worker(crew.platform):
        await settled(crew.platform, ahead_ms=1000)
    assert seen.words == []
    assert (await of(crew, job_id)).state == "cancelled"


async def test_a_running_job_is_stopped_when_it_is_cancelled(crew: Fleet, seen: Seen) -> None:
    async with running_worker(crew.platform, lease_s=60):
        job_id = await defer(crew, "wait", "long")
        await until(lambda: "long" in seen.now)
        assert await crew.platform.database.change(lambda tx: Jobs(tx, "default").cancel(job_id))
        await settled(crew.platform)
    assert (await of(crew, job_id)).state == "cancelled"
    assert await said(crew, "cancelled:long") == 1


async def test_nobody_cancels_a_job_of_another_tenant(crew: Fleet) -> None:
    job_id = await defer(crew, "say", "mine", delay_ms=60_000)
    assert not await crew.platform.database.change(lambda tx: Jobs(tx, "elsewhere").cancel(job_id))
    assert await crew.platform.database.read(lambda tx: Jobs(tx, "elsewhere").of(job_id)) is None


async def test_a_kind_that_a_worker_does_not_know_is_left_for_one_that_does(crew: Fleet, seen: Seen) -> None:
    job_id = await defer(crew, "invented_later", "x")
    async with running_worker(crew.platform):
        await defer(crew, "say", "known")
        await until(lambda: seen.words == ["known"])
    assert (await of(crew, job_id)).state == "waiting"


async def test_a_worker_of_one_queue_leaves_the_others(crew: Fleet, seen: Seen) -> None:
    job_id = await defer(crew, "say", "x")
    async with running_worker(crew.platform, queues=("nights",)):
        await defer(crew, "say", "y", queue="nights")
        await until(lambda: seen.words == ["y"])
    assert (await of(crew, job_id)).state == "waiting"


async def test_the_job_of_a_worker_that_shows_no_life_is_taken_over_and_the_late_one_is_refused(
    crew: Fleet, seen: Seen
) -> None:
    """The first worker's loop is this test's, so its lease is made to run out by hand."""
    job_id = await defer(crew, "wait", "slow")
    async with running_worker(crew.platform, lease_s=3600) as first:
        await until(lambda: "slow" in seen.now)
        late = next(iter(first.running.values())).job
        await crew.platform.database.change(lambda tx: tx.run(sa.text("UPDATE jobs SET lease_ms = 1")))
        async with running_worker(crew.platform, lease_s=3600):
            await until(lambda: len(seen.words) == 2)
            with pytest.raises(Superseded):
                await late.write(lambda tx: note(tx, "late"))
            with pytest.raises(Superseded):
                await late.progress(1, 2)
            seen.gate.set()
            await settled(crew.platform)
    row = await of(crew, job_id)
    assert (row.state, row.attempt, row.losses) == ("done", 2, 1)
    assert (await said(crew, "slow"), await said(crew, "late")) == (1, 0)


async def test_a_job_that_ten_workers_died_with_is_given_up(crew: Fleet, seen: Seen) -> None:
    job_id = await defer(crew, "fail", "poison")
    await crew.platform.database.change(
        lambda tx: tx.run(sa.text("UPDATE jobs SET state = 'running', lease_ms = 1, losses = 10, attempt = 11"))
    )
    async with running_worker(crew.platform):
        await settled(crew.platform)
    row = await of(crew, job_id)
    assert row.state == "failed"
    assert "11 workers" in row.error
    assert seen.words == []


async def test_a_job_whose_end_cannot_be_told_is_given_up_all_the_same_in_the_end(crew: Fleet) -> None:
    kind = crew.platform.kinds["chores.fail"]
    told = kind.on_ended

    def broken(tx: Tx, end: Ended) -> None:
        raise RuntimeError("this hook is broken")

    kind.ended(broken)
    try:
        job_id = await defer(crew, "fail", "x", attempts=1)
        await crew.platform.database.change(
            lambda tx: tx.run(sa.text("UPDATE jobs SET state = 'running', lease_ms = 1, losses = 10, attempt = 11"))
        )
        async with running_worker(crew.platform):
            await settled(crew.platform)
        assert (await of(crew, job_id)).state == "failed"
    finally:
        kind.on_ended = told


async def test_a_worker_that_is_stopped_gives_its_jobs_back_at_once(crew: Fleet, seen: Seen) -> None:
    async with running_worker(crew.platform, lease_s=3600, grace_s=0.05):
        job_id = await defer(crew, "wait", "half done")
        await until(lambda: "half done" in seen.now)
    row = await of(crew, job_id)
    assert (row.state, row.failures, row.losses) == ("waiting", 0, 0)
    seen.gate.set()
    async with running_worker(crew.platform):
        await settled(crew.platform)
    assert (await of(crew, job_id)).state == "done"


async def test_arguments_of_another_shape_fail_at_once_and_say_so(crew: Fleet) -> None:
    job_id = await crew.platform.database.change(lambda tx: Jobs(tx, "default").defer("chores.say", {"word": [1]}))
    async with running_worker(crew.platform):
        await settled(crew.platform)
    row = await of(crew, job_id)
    assert row.state == "failed"
    assert "the arguments cannot be read" in row.error


async def test_old_jobs_are_forgotten_and_new_ones_kept(crew: Fleet) -> None:
    from rookery.jobs.claims import purge

    old, new = await defer(crew, "say", "old"), await defer(crew, "say", "new")
    async with running_worker(crew.platform):
        await settled(crew.platform)
        await crew.platform.database.change(
            lambda tx: tx.run(
                sa.text("UPDATE jobs SET ended_ms = ended_ms - 864000000 WHERE id = :id").bindparams(id=old)
            )
        )
        assert await crew.platform.database.change(lambda tx: purge(tx, 9)) == 1
    assert await of(crew, old) is None
    assert await of(crew, new) is not None


def test_two_kinds_of_one_name_stop_the_start() -> None:
    from rookery.core.errors import ConfigurationError

    with pytest.raises(ConfigurationError, match=r"two kinds of job chores\.say"):
        kinds_of([domain(Seen()), domain(Seen())])

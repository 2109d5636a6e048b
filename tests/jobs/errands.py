"""A domain of jobs whose starts and effects are rows, and whose locks the kernel watches over."""

import asyncio
import fcntl
import os
from collections.abc import Awaitable, Callable, Coroutine, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from rookery.db.clock import now_ms
from rookery.db.migrate import Migration
from rookery.db.tx import Tx
from rookery.jobs.kinds import Ended, JobArgs, job
from rookery.jobs.running import Running, Superseded
from rookery.jobs.store import Jobs

LOOK_S = 0.01

MIGRATIONS = (
    Migration(
        1,
        "errands",
        [
            "CREATE TABLE errand_starts (id {serial}, tenant TEXT NOT NULL, job_id BIGINT NOT NULL, "
            "attempt BIGINT NOT NULL, process BIGINT NOT NULL, at_ms BIGINT NOT NULL)",
            # Nothing is unique here: what is done twice must be seen twice.
            "CREATE TABLE errand_effects (id {serial}, tenant TEXT NOT NULL, job_id BIGINT NOT NULL, "
            "attempt BIGINT NOT NULL, what TEXT NOT NULL)",
        ],
    ),
)
_START = sa.text(
    "INSERT INTO errand_starts (tenant, job_id, attempt, process, at_ms) "
    "VALUES (:tenant, :job_id, :attempt, :process, :at_ms)"
)
_EFFECT = sa.text(
    "INSERT INTO errand_effects (tenant, job_id, attempt, what) VALUES (:tenant, :job_id, :attempt, :what)"
)


class Errand(JobArgs):
    """How long it takes, which file two of one lock would fight for, and what it defers when it is done."""

    word: str = ""
    seconds: float = 0
    witness: str = ""
    then: int = 0
    gate: str = ""


def say(*words: object) -> None:
    os.write(1, f"{' '.join(map(str, words))}\n".encode())


@contextmanager
def alone(witness: str) -> Generator[None]:
    """Say `clash` if another process or job is inside already. Whoever is killed inside makes room."""
    if not witness:
        yield
        return
    with open(witness, "a") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say("clash", witness)
        yield


def started(running: Running) -> Callable[[Tx], None]:
    def work(tx: Tx) -> None:
        of = {"tenant": running.tenant, "job_id": running.id, "attempt": running.attempt}
        tx.run(_START.bindparams(**of, process=os.getpid(), at_ms=now_ms(tx)))

    return work


def effect(tx: Tx, running: Running, what: str) -> None:
    of = {"tenant": running.tenant, "job_id": running.id, "attempt": running.attempt}
    tx.run(_EFFECT.bindparams(**of, what=what))


@job("errands.run", attempts=1, backoff_s=0.05)
async def run(running: Running, args: Errand) -> Callable[[Tx], None]:
    """Takes a while; its effect, and what follows it, are recorded with its end."""
    with alone(args.witness):
        await running.write(started(running))
        await asyncio.sleep(args.seconds)

    def finish(tx: Tx) -> None:
        effect(tx, running, args.word)
        if args.then:
            follower = args.model_copy(update={"word": f"{args.word}+", "then": args.then - 1, "witness": ""})
            Jobs(tx, running.tenant).defer(run, follower, key=f"after:{running.id}")

    return finish


@run.ended
def _(tx: Tx, end: Ended) -> None:
    what = f"{end.state}: {end.error}"
    tx.run(_EFFECT.bindparams(tenant=end.tenant, job_id=end.job_id, attempt=0, what=what))


@job("errands.stubborn", attempts=1)
async def stubborn(running: Running, args: Errand) -> Callable[[Tx], None]:
    """Goes on until its gate is opened, whatever it is told meanwhile, and then tries to write and to finish."""
    await running.write(started(running))
    while not Path(f"{args.gate}.{running.attempt}").exists():
        await _unmoved(asyncio.sleep(LOOK_S))
    await _tried("write", running, running.write(lambda tx: effect(tx, running, "late")))
    await _tried("progress", running, running.progress(1))
    return lambda tx: effect(tx, running, args.word)


async def _tried(name: str, running: Running, writing: Coroutine[Any, Any, None]) -> None:
    task = asyncio.create_task(writing)
    while not task.done():
        await _unmoved(asyncio.wait([task]))
    say(name, running.attempt, "refused" if isinstance(task.exception(), Superseded) else "accepted")


async def _unmoved(waiting: Awaitable[Any]) -> None:
    try:
        await waiting
    except asyncio.CancelledError:
        say("cancelled", os.getpid())

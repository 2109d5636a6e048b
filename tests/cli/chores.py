"""A domain whose jobs say which process did them, fail, or wait for a file; a plugin of the processes under test."""

import asyncio
import os
from pathlib import Path

import sqlalchemy as sa

from rookery.db.tx import Tx
from rookery.jobs.kinds import Ended, JobArgs, job
from rookery.jobs.running import Running

_NOTE = sa.text("INSERT INTO epochs (name, value) VALUES (:name, 1)")


class Chore(JobArgs):
    """`told` is a file that the handler writes its process to, `gate` one that it waits for."""

    told: str = ""
    gate: str = ""
    word: str = ""


@job("chores.say")
async def say(job: Running, args: Chore) -> None:
    await job.progress(1, 2, "saying")
    Path(args.told).write_text(str(os.getpid()), encoding="utf-8")


@job("chores.wait", queue="slow")
async def wait(job: Running, args: Chore) -> None:
    Path(args.told).write_text(str(os.getpid()), encoding="utf-8")
    while not Path(args.gate).exists():
        await asyncio.sleep(0.01)


@job("chores.fail", attempts=1)
async def fail(job: Running, args: Chore) -> None:
    if not Path(args.gate).exists():
        raise RuntimeError(f"{args.word} went wrong")


@job("chores.told_fail", attempts=1)
async def told_fail(job: Running, args: Chore) -> None:
    raise RuntimeError(f"{args.word} went wrong")


@told_fail.ended
def _(tx: Tx, end: Ended) -> None:
    tx.run(_NOTE.bindparams(name=f"{end.state}:{end.args.word}"))

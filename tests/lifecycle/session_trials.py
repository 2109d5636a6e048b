"""A domain whose only job lets an agent do something, and a place where such jobs are done."""

import asyncio
import contextlib
import time
from collections.abc import Callable, Sequence
from typing import Any, cast

import sqlalchemy as sa

from rookery.core.actor import Actor
from rookery.db.tx import Tx
from rookery.jobs.kinds import Finish, JobArgs, job
from rookery.jobs.running import Running
from rookery.jobs.store import Jobs
from rookery.lifecycle.run_tables import agent_runs
from rookery.lifecycle.session_runs import Task, Unwanted, run_session
from rookery.lifecycle.sessions import Outcome
from tests.jobs.working import running_worker, settled
from tests.ledger.books import Books
from tests.platform_fixtures import Fleet
from tests.sessions.stage import use_sessions

LIMIT_S = 30.0
UNDER_WAY: dict[str, "asyncio.Task[Any] | None"] = {}
"""What does the jobs, by the keys of their sessions."""


class TrialArgs(JobArgs):
    prompt: str
    agent: str = "default"
    max_turns: int | None = None
    issue: str | None = None
    unwanted: bool = False


@job("trial.session", attempts=1, lasting=True)
async def session_job(job: Running, args: TrialArgs) -> Finish:
    task = Task(
        kind="work",
        actor=await job.actor(agent=args.agent),
        prompt=args.prompt,
        key=f"trial:{job.id}",
        max_turns=args.max_turns,
        asked_by={"issue": args.issue},
    )

    def noted(tx: Tx, session_id: str) -> None:
        if args.unwanted:
            raise Unwanted

    UNDER_WAY[task.key] = asyncio.current_task()
    await run_session(job, job.platform.calls.facts["runtime"], task, noted)
    return None


class Broken:
    """A runtime that cannot start anything, or whose sessions break; `stopped` counts those that were stopped."""

    id = "ses-broken"

    def __init__(self, *, starts: bool) -> None:
        self._starts = starts
        self.stopped = 0

    async def start_session(self, actor: Actor, prompt: str, **how: Any) -> "Broken":
        if not self._starts:
            raise OSError("no such program")
        return self

    async def wait(self) -> Outcome:
        raise RuntimeError("the pipe broke")

    async def stop(self) -> None:
        self.stopped += 1
        raise RuntimeError("nothing to stop")


class Hanging:
    """A runtime that takes for ever to start or to stop anything, whoever calls it back."""

    id = "ses-hanging"

    def __init__(self, where: str) -> None:
        self._where = where
        self.gate = asyncio.Event()
        self.stopped = 0

    async def start_session(self, actor: Actor, prompt: str, **how: Any) -> "Hanging":
        await self._hang("start")
        return self

    async def wait(self) -> Outcome:
        await self.gate.wait()
        return Outcome("done", output="late")

    async def stop(self) -> None:
        self.stopped += 1
        await self._hang("stop")

    async def _hang(self, where: str) -> None:
        while where == self._where and not self.gate.is_set():
            with contextlib.suppress(asyncio.CancelledError):
                await self.gate.wait()


class Abandoned:
    """A runtime whose jobs are cancelled when a session has started, so many turns of the loop later."""

    id = "ses-abandoned"

    def __init__(self, turns: int) -> None:
        self._turns = turns
        self.stopped = asyncio.Event()

    async def start_session(self, actor: Actor, prompt: str, *, key: str, **how: Any) -> "Abandoned":
        doing = UNDER_WAY[key]
        assert doing
        self._cancel_in(self._turns, doing)
        return self

    def _cancel_in(self, turns: int, doing: "asyncio.Task[Any]") -> None:
        loop = asyncio.get_running_loop()
        if turns:
            loop.call_soon(self._cancel_in, turns - 1, doing)
        else:
            loop.call_soon(doing.cancel)

    async def wait(self) -> Outcome:
        await self.stopped.wait()
        return Outcome("done", output="stopped")

    async def stop(self) -> None:
        self.stopped.set()


class Trials:
    """A fleet whose agents do what they are told."""

    def __init__(self, fleet: Fleet) -> None:
        self.fleet = fleet
        self.database = fleet.platform.database
        self.books = Books(self.database)
        use_sessions(fleet.platform)

    def use(self, runtime: Any) -> None:
        cast("dict[str, Any]", self.fleet.platform.calls.facts)["runtime"] = runtime

    def defer(self, *script: str, **more: Any) -> int:
        args = TrialArgs(prompt="\n".join(script), **more)
        return self.database.direct(lambda tx: Jobs(tx, "default").defer(session_job, args), write=True)

    async def done(self, *script: str, **more: Any) -> sa.Row[Any]:
        """The run of a session, once a worker has done what there was to do."""
        job_id = self.defer(*script, **more)
        async with running_worker(self.fleet.platform):
            await settled(self.fleet.platform)
        (run,) = [row for row in self.runs if row.job_id == job_id]
        return run

    @property
    def runs(self) -> Sequence[sa.Row[Any]]:
        """Every run, the oldest first."""
        return self.rows(sa.select(agent_runs).order_by(agent_runs.c.created_ms, agent_runs.c.id))

    def rows(self, statement: sa.Executable) -> Sequence[sa.Row[Any]]:
        return self.database.direct(lambda tx: tx.all(statement))

    def write(self, work: Callable[[Tx], Any]) -> Any:
        return self.database.direct(work, write=True)

    async def until(self, reached: Callable[[], Any], what: str) -> Any:
        deadline = time.monotonic() + LIMIT_S
        while not (found := reached()):
            assert time.monotonic() < deadline, what
            await asyncio.sleep(0.01)
        return found

    async def call(self, tool: str, /, **arguments: Any) -> Any:
        return await self.fleet.call(self.fleet.owner, tool, **arguments)

"""Starts a session for a job and sees it through to its end. Every session that the platform starts is a run."""

import asyncio
import logging
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

from rookery.core.actor import Actor
from rookery.core.errors import DatabaseError, TimedOut
from rookery.db.tx import Tx
from rookery.jobs.running import Running, Superseded
from rookery.lifecycle.run_store import NewRun, RunStatus
from rookery.lifecycle.session_store import SessionRuns
from rookery.lifecycle.sessions import Outcome, Runtime, Session, waited_of

log = logging.getLogger("rookery.sessions")
LAST_WORDS_S = 0.2
"""A session that was stopped has so long to say what it cost."""
TROUBLE_S = 1.0
STOP_S = 10.0
"""So long a runtime has to stop a session, or to leave off starting one."""
Note = Callable[[Tx, str], Any]


class _Late(TimedOut):
    """The session has not begun in time."""


class Unwanted(Exception):
    """Raised by a `note`: nobody wants the session any more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """What an agent is to do, as whom, and for whom: `kind` says what part of the platform wants it.

    `asked_by` is what the requester's session was held to; what is done for its issue is counted there, if the agent
    has none of its own. `least_s` is for tasks that may take longer than the installation gives a session.
    """

    kind: Literal["a2a", "message", "schedule", "session", "work", "workflow"]
    actor: Actor
    prompt: str
    key: str
    cwd: str | None = None
    max_turns: int | None = None
    budget_usd: float | None = None
    asked_by: Mapping[str, Any] | None = None
    least_s: float = 0.0

    @property
    def new_run(self) -> NewRun:
        asked_by = self.asked_by or {}
        return NewRun(
            project_id=self.actor.project or "",
            issue_id=self.actor.issue or asked_by.get("issue"),
            agent=self.actor.agent,
            profile=self.actor.profile,
            phase=self.actor.phase,
            kind=self.kind,
            key=self.key,
        )


@dataclass(frozen=True, slots=True)
class Ended:
    """A session that has come to its end, and how."""

    session_id: str
    run_id: str
    outcome: Outcome
    late: bool = False
    """Whether it was stopped because its time was over. Its outcome is a failed one then."""


async def run_session(job: Running, runtime: Runtime, task: Task, note: Note) -> Ended:
    """Let an agent do the task and wait for its end, or until its deadline, which it may extend.

    `note` keeps the session's id, in a transaction before the wait, and may raise Unwanted. Whatever is raised
    meanwhile, by it or by whoever stops the job, stops the session. The run is ended in every case; if the worker dies,
    by whoever starts the next one.
    """
    return await _SessionRun(job, task).through(runtime, note)


class _SessionRun:
    def __init__(self, job: Running, task: Task) -> None:
        self._job = job
        self._task = task
        self._run_id = ""
        self._ends = 0.0
        self._lasts_s = self._base_s = max(job.platform.calls.facts["settings"].agent_timeout_ms / 1000, task.least_s)

    async def through(self, runtime: Runtime, note: Note) -> Ended:
        task = self._task
        new = replace(task.new_run, attempt=self._job.attempt, job_id=self._job.id)
        base_ms = round(self._base_s * 1000)
        began = await self._job.write(lambda tx: self._runs(tx).begin(new, base_ms, task.max_turns or 1))
        self._run_id = began.id
        self._ends = time.monotonic() + self._base_s
        try:
            session = await self._started(runtime)
        except _Late as late:
            await self._try_to_end("timed_out", Outcome("failed", error=late.message, turns=0))
            raise
        except BaseException as error:
            await asyncio.shield(self._try_to_end("failed", Outcome("failed", error=f"not started: {error}", turns=0)))
            raise
        return await self._seen_through(session, note)

    async def _started(self, runtime: Runtime) -> Session:
        """The session, started within its own time. One that is there only later is stopped."""
        task = self._task
        start = runtime.start_session(
            replace(task.actor, run=self._run_id),
            task.prompt,
            key=task.key,
            cwd=task.cwd,
            max_turns=task.max_turns,
            budget_usd=task.budget_usd,
        )
        starting = asyncio.ensure_future(start)
        try:
            await asyncio.wait([starting], timeout=self._base_s)
            if starting.done():
                return starting.result()
        except asyncio.CancelledError:
            await asyncio.shield(_left_off(starting))
            raise
        await _left_off(starting)
        raise _Late(f"the session did not start within {self._base_s:g} s", hint="see whether the runtime is well")

    async def _seen_through(self, session: Session, note: Note) -> Ended:
        waiting = asyncio.ensure_future(session.wait())
        try:
            await self._job.write(lambda tx: self._noted(tx, session.id, note))
            outcome = await self._before_deadline(session, waiting)
            late = outcome is None
            if outcome is None:
                outcome = replace(await _stopped(session, waiting), status="failed", error=self._too_late)
        except BaseException as error:
            # Whoever takes the job over starts it again; two of them must not be at it.
            await asyncio.shield(self._break_off(session, waiting, error))
            raise
        status: RunStatus = "timed_out" if late else "succeeded" if outcome.status == "done" else "failed"
        await self._end(status, outcome)
        return Ended(session.id, self._run_id, outcome, late)

    def _noted(self, tx: Tx, session_id: str, note: Note) -> None:
        self._runs(tx).note_session(self._run_id, session_id)
        note(tx, session_id)

    async def _before_deadline(self, session: Session, waiting: "asyncio.Future[Outcome]") -> Outcome | None:
        """How the session ends; None if its time is over first. The deadline is looked at when it seems to be there."""
        left_s = max(self._ends - time.monotonic(), 0.0)
        while True:
            done, _ = await asyncio.wait([waiting], timeout=left_s)
            if done:
                return waiting.result()
            waited_s = waited_of(session)
            left_s = await self._left_s() + waited_s
            if left_s <= 0:
                return None
            if waited_s:
                # It waits for somebody, so what is left does not get less.
                left_s = max(left_s, TROUBLE_S)

    async def _left_s(self) -> float:
        try:
            left_ms, lasts_ms = await self._job.read(lambda tx: self._runs(tx).time_of(self._run_id))
        except DatabaseError as error:
            log.warning("the deadline of %s cannot be read: %s", self._run_id, error.message)
            return TROUBLE_S
        self._lasts_s = lasts_ms / 1000
        return left_ms / 1000

    @property
    def _too_late(self) -> str:
        return f"the session did not end within {self._lasts_s:g} s"

    async def _break_off(self, session: Session, waiting: "asyncio.Future[Outcome]", why: BaseException) -> None:
        outcome = await _stopped(session, waiting)
        if isinstance(why, (asyncio.CancelledError, Superseded, Unwanted)):
            await self._try_to_end("cancelled", replace(outcome, error="stopped before its end"))
        else:
            await self._try_to_end("failed", replace(outcome, error=f"broken off: {why}"))

    async def _try_to_end(self, status: RunStatus, outcome: Outcome) -> None:
        try:
            await self._end(status, outcome)
        except Exception:
            # The next session that is started finds it.
            log.exception("the run %s could not be ended", self._run_id)

    async def _end(self, status: RunStatus, outcome: Outcome) -> None:
        """Also if the job is another worker's by now: nobody else knows what this session has cost."""
        await self._job.platform.database.change(lambda tx: self._runs(tx).finish(self._run_id, status, outcome))

    def _runs(self, tx: Tx) -> SessionRuns:
        return SessionRuns(tx, self._job.tenant)


async def _stopped(session: Session, waiting: "asyncio.Future[Outcome]") -> Outcome:
    """End the session, and what it says of itself after that."""
    await _stop(session)
    await asyncio.wait([waiting], timeout=LAST_WORDS_S)
    if waiting.done() and not waiting.cancelled() and waiting.exception() is None:
        return waiting.result()
    waiting.cancel()
    return Outcome("failed", turns=0)


async def _stop(session: Session) -> None:
    """End the session, as far as its runtime does that within a while."""
    stopping = asyncio.ensure_future(session.stop())
    try:
        await asyncio.wait([stopping], timeout=STOP_S)
    finally:
        stopping.cancel()
    if not stopping.done():
        stopping.add_done_callback(_forgotten)
        log.error("the session %s could not be stopped within %g s", session.id, STOP_S)
    elif not stopping.cancelled() and (error := stopping.exception()) is not None:
        log.error("the session %s could not be stopped", session.id, exc_info=error)


async def _left_off(starting: "asyncio.Future[Session]") -> None:
    """Let the runtime leave off starting a session; what it has started all the same, now or later, is stopped."""
    starting.add_done_callback(_stop_late)
    starting.cancel()
    await asyncio.wait([starting], timeout=STOP_S)


def _stop_late(starting: "asyncio.Future[Session]") -> None:
    if not starting.cancelled() and starting.exception() is None:
        task = asyncio.ensure_future(_stop(starting.result()))
        _late_stops.add(task)
        task.add_done_callback(_late_stops.discard)


def _forgotten(task: "asyncio.Future[Any]") -> None:
    """Nobody waits for it any more, so nobody is told of its error."""
    if not task.cancelled():
        task.exception()


_late_stops: set["asyncio.Future[None]"] = set()

"""Starts a session for a job and sees it through to its end. Every session that the platform starts is a run."""

import asyncio
import logging
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeVar

from rookery.core.actor import Actor
from rookery.core.errors import DatabaseError, TimedOut
from rookery.db.tx import Tx
from rookery.jobs.running import Running, Superseded
from rookery.lifecycle.pause_watch import PauseWatch
from rookery.lifecycle.pauses import Pause, Paused, Pauses
from rookery.lifecycle.run_store import NewRun, Row, RunStatus
from rookery.lifecycle.session_store import SessionRuns
from rookery.lifecycle.sessions import Outcome, Runtime, Session, waited_of
from rookery.settings import Settings

log = logging.getLogger("rookery.sessions")
LAST_WORDS_S = 0.2
"""A session that was stopped has so long to say what it cost."""
TROUBLE_S = 1.0
STOP_S = 10.0
"""So long a runtime has to stop a session, or to leave off starting one."""
Note = Callable[[Tx, str], Any]
T = TypeVar("T")


class _Late(TimedOut):
    """The session has not begun in time."""


class Unwanted(Exception):
    """Raised by a `note`: nobody wants the session any more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """What an agent is to do, as whom, and for whom: `kind` says what part of the platform wants it.

    `asked_by` is what the requester's session was held to; what is done for its issue is counted there, if the agent
    has none of its own. `least_s` is for tasks that may take longer than the installation gives a session, `limit_s`
    for those whose time is set apart from it. `began` is told the run's id in the transaction in which that begins, and
    may raise Unwanted.
    """

    kind: Literal["a2a", "message", "orchestrator", "schedule", "session", "work", "workflow"]
    actor: Actor
    prompt: str
    key: str
    cwd: str | None = None
    max_turns: int | None = None
    budget_usd: float | None = None
    asked_by: Mapping[str, Any] | None = None
    least_s: float = 0.0
    limit_s: float | None = None
    model: str | None = None
    began: Note | None = None

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
    by whoever starts the next one. Paused if the agent is: then none begins, and one that goes on is stopped after the
    time that it is given to come to an end by itself.
    """
    return await _SessionRun(job, task).through(runtime, note)


class _SessionRun:
    def __init__(self, job: Running, task: Task) -> None:
        self._job = job
        self._task = task
        self._run_id = ""
        self._ends = 0.0
        settings: Settings = job.platform.calls.facts["settings"]
        usual_s = max(settings.agent_timeout_ms / 1000, task.least_s)
        self._lasts_s = self._base_s = usual_s if task.limit_s is None else task.limit_s
        self._watch = PauseWatch(job.platform.database, task.actor, settings.pause_grace_s)
        self._pausing: asyncio.Future[Pause]

    async def through(self, runtime: Runtime, note: Note) -> Ended:
        task = self._task
        new = replace(task.new_run, attempt=self._job.attempt, job_id=self._job.id)
        base_ms = round(self._base_s * 1000)
        began = await self._job.write(lambda tx: self._begun(tx, new, base_ms))
        self._run_id = began.id
        self._ends = time.monotonic() + self._base_s
        self._pausing = asyncio.ensure_future(self._watch.until_over())
        try:
            return await self._seen_through(await self._there(runtime), note)
        finally:
            self._pausing.cancel()
            await asyncio.gather(self._pausing, return_exceptions=True)

    async def _there(self, runtime: Runtime) -> Session:
        """The session that was started; if that fails the run is ended."""
        starting = asyncio.ensure_future(self._started(runtime))
        try:
            return await self._unless_paused(starting)
        except BaseException as error:
            await asyncio.shield(self._give_up(starting, error))
            raise

    async def _give_up(self, starting: "asyncio.Future[Session]", why: BaseException) -> None:
        """End the run. A session that was there just when nobody wanted it any more is stopped."""
        if not starting.done():
            starting.add_done_callback(_stop_late)
        elif not starting.cancelled() and starting.exception() is None:
            await _stop(starting.result())
        if isinstance(why, _Late):
            await self._try_to_end("timed_out", Outcome("failed", error=why.message, turns=0))
        elif isinstance(why, Paused):
            await self._try_to_end("cancelled", Outcome("failed", error=why.why, turns=0))
        else:
            await self._try_to_end("failed", Outcome("failed", error=f"not started: {why}", turns=0))

    def _begun(self, tx: Tx, new: NewRun, base_ms: int) -> Row:
        pause = Pauses(tx, self._job.tenant).holding_actor(self._task.actor)
        if pause is not None:
            raise Paused(pause, self._job.tenant)
        run = self._runs(tx).begin(new, base_ms, self._task.max_turns or 1)
        if self._task.began is not None:
            self._task.began(tx, run.id)
        return run

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
            model=task.model,
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
            ending = asyncio.ensure_future(self._before_deadline(session, waiting))
            outcome = await self._unless_paused(ending)
            if (pause := await self._watch.now()) is not None:
                # It was told, and came to an end for that: what it was to do is not done.
                raise Paused(pause, self._job.tenant)
            late = outcome is None
            if outcome is None:
                outcome = replace(await _stopped(session, waiting), status="failed", error=self._too_late)
        except BaseException as error:
            # Whoever takes the job over starts it again; two of them must not be at it.
            await asyncio.shield(self._break_off(session, waiting, error))
            raise
        await self._end("timed_out" if late else _status_of(outcome), outcome)
        return Ended(session.id, self._run_id, outcome, late)

    def _noted(self, tx: Tx, session_id: str, note: Note) -> None:
        self._runs(tx).note_session(self._run_id, session_id)
        note(tx, session_id)

    async def _unless_paused(self, working: "asyncio.Future[T]") -> T:
        """What comes of the work, which has ended afterwards; Paused if the agent has been for long enough before."""
        try:
            await asyncio.wait([working, self._pausing], return_when=asyncio.FIRST_COMPLETED)
            if working.done():
                return working.result()
            raise Paused(self._pausing.result(), self._job.tenant)
        finally:
            working.cancel()
            await asyncio.gather(working, return_exceptions=True)

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
        if isinstance(why, Paused):
            await self._try_to_end("cancelled", replace(outcome, error=why.why))
        elif isinstance(why, (asyncio.CancelledError, Superseded, Unwanted)):
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


def _status_of(outcome: Outcome) -> RunStatus:
    if outcome.status == "done":
        return "succeeded"
    return "stalled" if outcome.stalled else "failed"


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

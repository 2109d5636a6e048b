"""The job of a dispatch: one attempt to let an agent do something, from its workspace to what came of it.

Whatever is interrupted, and wherever, ends the attempt once: by itself, by whoever cancels the job, or by the worker
that takes the job over and finds that the attempt had begun. Then the plan decides whether another one is made.
"""

import asyncio
import contextlib
import logging
from collections.abc import Coroutine
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import sqlalchemy as sa

from rookery.core.actor import Actor
from rookery.core.errors import (
    ConfigurationError,
    Conflict,
    DatabaseError,
    NotFound,
    PermissionDenied,
    RookeryError,
    TimedOut,
)
from rookery.db.tx import Tx
from rookery.domains.tracker.project_store import Projects, ProjectSettings
from rookery.engine.assigning import assign, keep, orchestrator_of, session_key, tell
from rookery.engine.dispatches import RUN_KIND, Dispatches
from rookery.engine.effective_tools import EffectiveTools, effective_tools
from rookery.engine.limits import MICROS
from rookery.engine.outcomes import End, has_claimed, settle
from rookery.engine.project_settings import OrchestratorProjects, OrchestratorSettings
from rookery.engine.prompting import Place, Prompt, Prompts
from rookery.engine.run_budget import granted_micros
from rookery.engine.run_places import GivenPlace, Places
from rookery.engine.tables import ENDED, RUNNING
from rookery.jobs.kinds import Ended, Finish, JobArgs, job
from rookery.jobs.running import Running, Superseded
from rookery.lifecycle.pauses import Paused
from rookery.lifecycle.run_events import RunEvent
from rookery.lifecycle.run_store import Runs
from rookery.lifecycle.session_jobs import end_lost
from rookery.lifecycle.session_runs import Task, Unwanted, run_session
from rookery.lifecycle.sessions import Outcome as SessionOutcome
from rookery.lifecycle.sessions import Runtime
from rookery.settings import Settings

log = logging.getLogger("rookery.orchestrator")
Row = sa.Row[Any]
T = TypeVar("T")
BEAT_S = 30.0
"""So often the lease of a living attempt is renewed."""
GRACE_S = 60.0
"""So long an agent may go on after its claim was acted on: others wait for its issue."""
LOST = "its worker ended without ending it"


class RunArgs(JobArgs):
    dispatch_id: str


@job(RUN_KIND, queue="runs", attempts=1, lasting=True)
async def run_dispatch(job: Running, args: RunArgs) -> Finish:
    """Make the attempt. One that had begun before is lost, and ends here."""
    row = await job.read(lambda tx: Dispatches(tx, job.tenant).of(args.dispatch_id))
    if row is None or row.state == ENDED:
        return None
    end = End("lost", LOST) if row.state == RUNNING else await Attempt(job, row).through()
    return lambda tx: settle(tx, job.tenant, row.id, end)


@run_dispatch.ended
def _given_up(tx: Tx, ended: Ended) -> None:
    end_lost(tx, ended)
    row = Dispatches(tx, ended.tenant).of(ended.args.dispatch_id)
    if row is not None:
        seen = "cancelled" if ended.state == "cancelled" else "failed"
        settle(tx, ended.tenant, row.id, End(seen, row.stop or ended.error))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Ground:
    """What is set where the attempt is made."""

    project: ProjectSettings
    settings: OrchestratorSettings


@dataclass(frozen=True, slots=True, kw_only=True)
class _Equipped:
    """An agent that can begin."""

    actor: Actor
    tools: EffectiveTools
    prompt: Prompt


class Attempt:
    """One attempt, in a job that is its own."""

    def __init__(self, job: Running, row: Row) -> None:
        self._job = job
        self._row = row
        self._issue: Row | None = None

    async def through(self) -> End:
        """Begin the attempt, let the agent work, and say how it ended. What is raised ends the job, and the attempt."""
        try:
            ground = await self._job.read(self._wanted)
            await self._assign(ground.settings)
            return await self._holding(self._made(ground))
        except Paused as paused:
            return End("cancelled", paused.pause.said)
        except (Conflict, NotFound, PermissionDenied) as error:
            return End("cancelled", error.message)
        except Unwanted:
            return End("cancelled", "it was ended before its agent began")

    async def _made(self, ground: _Ground) -> End:
        places = Places(self._job, self._row, ground.project, ground.settings)
        try:
            given = await places.prepare(self._issue)
        except (RookeryError, OSError) as error:
            return await self._failed("The workspace could not be prepared", error)
        try:
            return await self._in_place(ground, given)
        finally:
            await asyncio.shield(self._leave(places, given))

    async def _in_place(self, ground: _Ground, given: GivenPlace) -> End:
        try:
            return await self._session(ground, given.place, await self._equipped(ground, given.place))
        except (Conflict, NotFound, DatabaseError):
            raise
        except RookeryError as error:
            return await self._failed("The agent could not be told what to do", error)

    async def _equipped(self, ground: _Ground, place: Place) -> _Equipped:
        """The agent in its place, held to the tools that it has now, with what it is to be told."""
        where = {"worktree": place.path, "cwd": place.path}
        tools = effective_tools(await self._actor(**where), self._job.platform.calls.registry)
        for warning in tools.warnings:
            log.warning("dispatch %s: %s", self._row.id, warning)
        actor = await self._actor(**where, scope_file=frozenset(tools.names))
        prompts = Prompts(self._job.platform, self._row, actor, ground.project, ground.settings.prompt)
        return _Equipped(actor=actor, tools=tools, prompt=await prompts.build(place))

    def _wanted(self, tx: Tx) -> _Ground:
        """What is set here. Conflict if nobody may begin anything by now."""
        row = self._row
        enabled, settings = OrchestratorProjects(tx, row.tenant).of(row.project_id)
        if not enabled:
            raise Conflict("the project is not worked on any more", hint="rookery orchestrator enable")
        return _Ground(project=Projects(tx, orchestrator_of(tx, row)).settings(), settings=settings)

    async def _assign(self, settings: OrchestratorSettings) -> None:
        actor = await self._actor()
        installed: Settings = self._job.platform.calls.facts["settings"]

        def begin(tx: Tx) -> Row | None:
            issue = assign(tx, actor, self._row)
            granted = granted_micros(tx, self._row, settings, installed)
            Dispatches(tx, self._row.tenant).note(self._row, budget_micros=granted)
            return issue

        self._issue = await self._job.write(begin)
        begun = await self._job.read(lambda tx: Dispatches(tx, self._row.tenant).of(self._row.id))
        assert begun is not None
        self._row = begun

    async def _actor(self, **binding: Any) -> Actor:
        row = self._row
        actor = await self._job.actor(
            agent=row.agent,
            profile=row.role,
            project=row.project_id,
            issue=row.issue_id,
            session=session_key(row.id),
            source="agent",
            **binding,
        )
        return replace(actor, phase=row.phase)

    async def _session(self, ground: _Ground, place: Place, told: _Equipped) -> End:
        runtime: Runtime | None = self._job.platform.calls.facts.get("runtime")
        if runtime is None:
            error = ConfigurationError("no runtime for agents is set up", hint="the setting runtime names one")
            return await self._failed("No agent could be started", error)
        task = Task(
            kind="orchestrator",
            actor=told.actor,
            prompt=told.prompt.text,
            key=session_key(self._row.id),
            cwd=place.path,
            max_turns=ground.settings.max_turns,
            budget_usd=None if self._row.budget_micros is None else self._row.budget_micros / MICROS,
            limit_s=ground.settings.run_limit_s,
            model=ground.settings.models.get(self._row.role),
            began=lambda tx, run_id: self._began(tx, run_id, told),
        )
        try:
            ended = await run_session(self._job, runtime, task, self._noted)
        except DatabaseError:
            raise
        except TimedOut as late:
            return End("timed_out", late.message)
        except RookeryError as error:
            return End("failed", _said(error))
        return _end_of(ended.outcome, late=ended.late)

    def _began(self, tx: Tx, run_id: str, told: _Equipped) -> None:
        """The run has begun: what its agent is told and what it has are kept with it."""
        prompt, tools = told.prompt.record, told.tools.record
        if Dispatches(tx, self._row.tenant).note(self._row, run_id=run_id, prompt=prompt, tools=tools) is None:
            raise Unwanted
        about = {"dispatch": self._row.id, "prompt": prompt, "warnings": tools["warnings"]}
        Runs(tx, self._row.tenant).append(run_id, [RunEvent("system", "other", about)])

    def _noted(self, tx: Tx, session_id: str) -> None:
        row = Dispatches(tx, self._row.tenant).note(self._row, session=session_id)
        if row is None or row.stop is not None:
            raise Unwanted

    async def _failed(self, what: str, error: RookeryError | OSError) -> End:
        """The attempt cannot go on, and the people of the issue are told why, once."""
        if isinstance(error, DatabaseError):
            raise error
        why = f"{what}: {_said(error)}"
        await self._job.write(lambda tx: tell(tx, self._row, why))
        return End("failed", why)

    async def _leave(self, places: Places, given: GivenPlace) -> None:
        """What has to follow a run, also one that was stopped. What goes wrong is told on the issue."""
        faults = await places.leave(given)
        with contextlib.suppress(Superseded, RookeryError):
            for fault in faults:
                await self._job.write(lambda tx, fault=fault: tell(tx, self._row, fault))

    async def _holding(self, work: Coroutine[Any, Any, End]) -> End:
        """Do the work while the issue is the attempt's; whoever takes it away stops the agent."""
        working = asyncio.ensure_future(work)
        if self._row.fence is None:
            return await working
        watching = asyncio.ensure_future(self._kept())
        try:
            await asyncio.wait([working, watching], return_when=asyncio.FIRST_COMPLETED)
            if not working.done():
                working.cancel()
                await asyncio.wait([working])
            return End("cancelled", watching.result()) if working.cancelled() else working.result()
        finally:
            for each in (working, watching):
                each.cancel()
            await asyncio.gather(working, watching, return_exceptions=True)

    async def _kept(self) -> str:
        """Renew the lease until it is gone, and say why the agent has to stop. After a claim it has a while."""
        while True:
            await asyncio.sleep(BEAT_S)
            try:
                held = await self._job.write(lambda tx: keep(tx, self._row))
            except DatabaseError as error:
                log.warning("the lease of dispatch %s could not be renewed: %s", self._row.id, error.message)
                continue
            if held:
                continue
            if not await self._job.read(self._has_claimed):
                return "the issue was taken from the agent"
            await asyncio.sleep(GRACE_S)
            return "its agent went on after its claim was acted on"

    def _has_claimed(self, tx: Tx) -> bool:
        now = Dispatches(tx, self._row.tenant).of(self._row.id)
        return now is not None and has_claimed(tx, now)


def _end_of(outcome: SessionOutcome, *, late: bool) -> End:
    if late:
        return End("timed_out", outcome.error)
    if outcome.status == "done":
        return End("done")
    return End("stalled" if outcome.stalled else "failed", outcome.error)


def _said(error: RookeryError | OSError) -> str:
    if isinstance(error, OSError):
        return error.strerror or str(error)
    return f"{error.message} ({error.hint})" if error.hint else error.message

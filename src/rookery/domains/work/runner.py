"""One work task from where it stands to its end. Every step can be taken again after a crash at any point.

What a state means is what was done before it was entered: in `running` the working tree is there, in `validating` the
session of this iteration is over and its work committed. So a step that was interrupted is repeated, and one that was
recorded is not.
"""

import asyncio
import os
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, ParamSpec, TypeVar

from rookery.core.actor import Actor
from rookery.core.errors import ConfigurationError, ServiceUnavailable, ValidationFailed
from rookery.db.tx import Tx
from rookery.domains.work import worktree
from rookery.domains.work.changes import Changes, pull_request
from rookery.domains.work.code_context import code_context
from rookery.domains.work.naming import worktree_folder
from rookery.domains.work.project_settings import ProjectWork, WorkSettings
from rookery.domains.work.prompt import Briefing, pr_address, prompt_for, title
from rookery.domains.work.pull_requests import TOOL, create_pr, push_branch, repository_name
from rookery.domains.work.states import Status
from rookery.domains.work.store import KEPT_CHARACTERS, SUMMARY_CHARACTERS, Row, WorkTasks, kept
from rookery.domains.work.worktree import Place
from rookery.identity.binding import bound_by
from rookery.identity.store import IdentityStore
from rookery.jobs.running import Running
from rookery.lifecycle.programs import run_command
from rookery.lifecycle.session_runs import Task, run_session
from rookery.lifecycle.sessions import Outcome, Runtime
from rookery.settings import Settings

P = ParamSpec("P")
T = TypeVar("T")


class Runner:
    """Works on one task inside a job."""

    def __init__(self, job: Running, task_id: str) -> None:
        self.job = job
        self.task_id = task_id
        self._steps: dict[str, Callable[[Row], Awaitable[None]]] = {
            "pending": self._begin,
            "branching": self._branch,
            "running": self._work,
            "validating": self._validate,
        }

    async def run(self) -> None:
        """Go on until the task has ended, by us or by whoever cancelled it."""
        while True:
            task = await self.job.read(lambda tx: WorkTasks(tx, self.job.tenant).find(self.task_id))
            if task is None or task.status not in self._steps:
                return
            # The agent may have lost its role in the project since; then nothing more happens there.
            await self._actor(task)
            await self.job.progress(task.iteration, self._settings.work_max_iterations, task.status)
            await self._steps[task.status](task)

    @property
    def _settings(self) -> Settings:
        return self.job.platform.calls.facts["settings"]

    async def _begin(self, task: Row) -> None:
        path, _ = await self._project(task)
        base, branch = await in_thread(worktree.starting_point, path)
        folder = worktree_folder(self._settings.worktree_base_dir, path, task.id)
        await self._move(task, "branching", base_commit=base, original_branch=branch, worktree_dir=folder)

    async def _branch(self, task: Row) -> None:
        place, settings = await self._place(task), await self._checks(task)
        # What stands there is removed first, so it must not be that of a worker who has taken over.
        await self.job.write(lambda tx: None)
        await in_thread(worktree.make_worktree, place)
        if settings.install:
            ran = await run_command(settings.install, place.folder, settings.limit_s)
            if not ran.ok:
                raise ValidationFailed(f"the working tree could not be prepared: {ran.output}")
            await in_thread(worktree.restore, place)
        await self._move(task, "running", iteration=1)

    async def _work(self, task: Row) -> None:
        place, settings = await self._place(task), await self._checks(task)
        await in_thread(worktree.ensure_worktree, place)
        outcome = await self._session(task, place, settings)
        problems = f"The session failed: {outcome.error}" if outcome.status == "failed" else None
        there = await in_thread(worktree.branch_there, place)
        if there == task.branch_name:
            await in_thread(worktree.commit_leftovers, place, title(task.description))
        else:
            problems = f"The working tree is on {there or 'no branch'}; it has to be on {task.branch_name}."
        cost = task.cost_micros + outcome.cost_micros
        said = kept(outcome.output)
        told = None if problems is None else kept(problems)
        await self._move(task, "validating", output=said, problems=told, cost_micros=cost)

    async def _session(self, task: Row, place: Place, settings: WorkSettings) -> Outcome:
        runtime: Runtime | None = self.job.platform.calls.facts.get("runtime")
        if runtime is None:
            raise ConfigurationError("no runtime for agents is set up", hint="the setting runtime names one")
        key = f"work:{task.id}:{task.iteration}"
        actor = await self._actor(task, session=key, worktree=place.folder, cwd=place.folder)
        code = await code_context(self.job.platform.calls, actor, task.description)
        briefing = Briefing(
            description=task.description,
            branch=task.branch_name,
            folder=place.folder,
            checks=settings.checks,
            iteration=task.iteration,
            iterations=self._settings.work_max_iterations,
            problems=task.problems,
            exported=code.map,
            named=code.matches,
        )
        wanted = Task(
            kind="work",
            actor=actor,
            prompt=prompt_for(briefing),
            key=key,
            cwd=place.folder,
            asked_by=task.requester,
        )
        ended = await run_session(
            self.job,
            runtime,
            wanted,
            lambda tx, session: WorkTasks(tx, self.job.tenant).note(task, session_id=session),
        )
        return ended.outcome

    async def _validate(self, task: Row) -> None:
        problems = task.problems or await self._problems(task)
        if problems is None:
            await self._finalise(task)
        elif task.iteration < self._settings.work_max_iterations:
            await self._move(task, "running", iteration=task.iteration + 1, problems=problems)
        else:
            tries = f"after {task.iteration} attempts: " if task.iteration > 1 else ""
            summary = kept(task.output or "", SUMMARY_CHARACTERS)
            error = f"{tries}{problems}"[:KEPT_CHARACTERS]
            await self._move(task, "failed", error=error, summary=summary)

    async def _problems(self, task: Row) -> str | None:
        """What the project's commands say against the work, or None."""
        place, settings = await self._place(task), await self._checks(task)
        await in_thread(worktree.ensure_worktree, place)
        commands = [command for command in (settings.install, *settings.checks) if command]
        for command in commands:
            ran = await run_command(command, place.folder, settings.limit_s)
            if not ran.ok:
                await in_thread(worktree.restore, place)
                return kept(f"`{command}` failed:\n{ran.output}")
        if commands:
            await in_thread(worktree.restore, place)
        return None

    async def _finalise(self, task: Row) -> None:
        place = await self._place(task)
        summary, pr_url = kept(task.output or "", SUMMARY_CHARACTERS), pr_address(task.output or "")
        made = await in_thread(worktree.commits_made, place)
        if pr_url is None and made == 0:
            await self._move(task, "failed", error="nothing was changed", summary=summary)
            return
        record = await self._record(task, place, made)
        if pr_url is None:
            pr_url, remark = await self._pull_request(task, place)
            summary = f"{summary}\n({remark})".strip() if remark else summary
        await self._move(task, "completed", pr_url=pr_url, pull_request=record, summary=summary)

    async def _record(self, task: Row, place: Place, commits: int) -> dict[str, Any]:
        """What the task proposes to be merged, whether or not a pull request can be opened anywhere."""
        await in_thread(worktree.ensure_worktree, place)
        changes: Changes | None = self.job.platform.calls.facts.get("changes")
        return await pull_request(changes, await self._actor(task), place, task.original_branch, commits)

    async def _pull_request(self, task: Row, place: Place) -> tuple[str | None, str | None]:
        """The address of a pull request for the branch, where that can be opened; else None and perhaps why."""
        calls = self.job.platform.calls
        name = await in_thread(repository_name, place.project) if TOOL in calls.registry else None
        if name is None:
            return None, None
        # Whoever is paused here is so before anything was asked for.
        await self._actor(task)
        # Asked for once, even if this worker dies before the answer: a pull request cannot be taken back.
        if task.pr_asked or await self._note(task, pr_asked=True) is None:
            return None, "a pull request was asked for before an interruption; see whether it is there"
        fault = await push_branch(place.folder, task.branch_name)
        if fault is not None:
            return None, fault
        arguments = {
            "repo": name,
            "title": title(task.description),
            "body": task.description,
            "head": task.branch_name,
            "base": task.original_branch or "main",
        }
        return await create_pr(self.job, partial(self._actor, task), arguments, f"work:{task.id}:pr")

    async def _actor(self, task: Row, **binding: Any) -> Actor:
        """The agent, held to whatever the session was held to in which the work was asked for."""
        held = bound_by(task.requester) | {"source": task.source}
        return await self.job.actor(agent=task.agent_id, project=task.project_id, **held, **binding)

    async def _project(self, task: Row) -> tuple[str, str]:
        """The project's folder, and the agent's name."""

        def look(tx: Tx) -> tuple[str | None, str, str]:
            store = IdentityStore(tx, self.job.tenant)
            project, agent = store.project(task.project_id), store.find_agent(task.agent_id)
            return project.path, project.slug, agent.name if agent is not None else task.agent_id

        path, slug, agent = await self.job.read(look)
        if path is None:
            raise ValidationFailed(f"project {slug} has no folder to work in")
        return path, agent

    async def _place(self, task: Row) -> Place:
        path, agent = await self._project(task)
        return place_of(task, path, agent)

    async def _checks(self, task: Row) -> WorkSettings:
        return await self.job.read(lambda tx: ProjectWork(tx, self.job.tenant).of(task.project_id))

    async def _move(self, task: Row, to: Status, **values: Any) -> None:
        await self.job.write(lambda tx: WorkTasks(tx, self.job.tenant).move(task, to, **values))

    async def _note(self, task: Row, **values: Any) -> Row | None:
        return await self.job.write(lambda tx: WorkTasks(tx, self.job.tenant).note(task, **values))

    async def put_away(self, task: Row) -> bool:
        """Remove the working tree of a task that has ended; False if something in it belongs elsewhere."""
        place = await self._place(task)
        if not await in_thread(os.path.isdir, place.project):
            raise ServiceUnavailable(f"the folder of the project is not there: {place.project}")
        return await in_thread(worktree.put_away, place, title(task.description))


async def in_thread(work: Callable[P, T], *args: P.args, **how: P.kwargs) -> T:
    """Run something that blocks. Whoever is cancelled meanwhile waits for its end: nothing goes on behind it."""
    running = asyncio.create_task(asyncio.to_thread(work, *args, **how))
    try:
        return await asyncio.shield(running)
    except asyncio.CancelledError:
        await asyncio.gather(running, return_exceptions=True)
        raise


def place_of(task: Row, project_path: str, agent: str) -> Place:
    """Where the task is done, once that was decided."""
    assert task.worktree_dir is not None
    assert task.base_commit is not None
    return Place(project_path, task.worktree_dir, task.branch_name, task.base_commit, agent)

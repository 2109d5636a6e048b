"""What each action does: a tool called as the agent, a session of the agent, or another domain's job.

A tool is called with the agent's own rights and not in scheduler mode: the call itself is what was scheduled. A
session is in scheduler mode, since nobody knows beforehand what it will call.
"""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, cast

from rookery.core.actor import Actor
from rookery.core.errors import RookeryError, ServiceUnavailable
from rookery.db.tx import Tx
from rookery.domains.schedules.action import TOOLS, Action
from rookery.domains.schedules.improving import HEALTH, improve
from rookery.domains.schedules.prompting import prompt_for
from rookery.domains.schedules.tables import MICROS
from rookery.identity.binding import bound_by
from rookery.jobs.running import Running
from rookery.lifecycle.session_calls import call_approved, patience
from rookery.lifecycle.session_runs import Task, run_session
from rookery.lifecycle.sessions import Runtime

MAX_RESULT = 2_000


class StepFailed(Exception):
    """The action was tried and did not succeed; `done` says what of it was done."""

    def __init__(self, error: str, done: dict[str, Any] | None = None) -> None:
        super().__init__(error)
        self.done = done or {}


@dataclass(frozen=True, slots=True)
class Step:
    """One action of one execution, and a way to keep what is known of it before it ends."""

    job: Running
    execution_id: str
    number: int
    agent_id: str
    action: Action
    held: Mapping[str, Any]
    """What whoever scheduled the action was held to."""
    budget_usd: float | None
    note: Callable[[Tx, dict[str, Any]], None]
    agreed: bool = False
    """Whether the owner has approved the action as it stands here."""
    until: float = field(default_factory=patience)
    """So long all calls of the step together wait for a person."""

    @property
    def key(self) -> str:
        """Names this step in all the world: what is done under it is done once."""
        return f"execution:{self.execution_id}:{self.number}"

    async def actor(self, **more: Any) -> Actor:
        bound = bound_by(self.held) | more
        return await self.job.actor(agent=self.agent_id, project=self.action.project_id, **bound)

    def knows(self, tool: str) -> bool:
        return tool in self.job.platform.calls.registry

    async def call(self, tool: str, arguments: dict[str, Any]) -> dict[str, Any]:
        """The answer of a tool, called as the agent. A person who has to approve the call has a while."""
        return await self._call(self.actor, tool, arguments)

    async def call_as_shown(self, tool: str, arguments: dict[str, Any]) -> dict[str, Any]:
        """The same for a call that is all in the action: if the owner has agreed to that, nobody is asked again."""
        known = self.job.platform.calls.registry.get(tool)
        if not self.agreed or known is None:
            return await self.call(tool, arguments)

        async def who() -> Actor:
            actor = await self.actor()
            return replace(actor, unasked=actor.unasked | {known.right})

        return await self._call(who, tool, arguments)

    async def _call(self, who: Callable[[], Awaitable[Actor]], tool: str, arguments: dict[str, Any]) -> dict[str, Any]:
        result = await call_approved(self.job, who, tool, arguments, session=self.key, until=self.until)
        return result.structured


async def do(step: Step) -> dict[str, Any]:
    """Do the action; what is known of it then: result, session_id, work_task_id, cost_usd. Raises StepFailed if not."""
    action = step.action
    try:
        if action.type in ("star_repo", "fork_repo"):
            return await _each_repo(step)
        if action.type == "memory_maintenance":
            await step.job.run_kind("memory.maintain", {"agent_id": step.agent_id})
            return {"result": "memories maintained"}
        if action.type == "improvement_loop":
            return await improve(step.call, await step.actor(), action, step.key, health=step.knows(HEALTH))
        if action.type in TOOLS:
            return await _one_call(step)
        return await _session(step)
    except RookeryError as error:
        raise StepFailed(f"{error.code}: {error.message}") from error


async def _one_call(step: Step) -> dict[str, Any]:
    action = step.action
    arguments: dict[str, Any] = {}
    if action.type == "send_message":
        arguments = {"to_agent": action.to_agent_id, "message": action.message}
    elif action.type == "work_task":
        # The same key gives the same task, should the worker die before the step is saved.
        arguments = {"description": action.description, "source_id": step.key}
        if action.project_id is not None:
            arguments["project_id"] = action.project_id
    answer = await step.call_as_shown(TOOLS[action.type], arguments)
    done: dict[str, Any] = {"result": _told(answer)}
    if action.type == "work_task":
        done["work_task_id"] = answer.get("id")
    return done


async def _each_repo(step: Step) -> dict[str, Any]:
    """One call for each repository. One that fails does not keep the others from theirs."""
    failed: list[str] = []
    done: list[str] = []
    for repo in step.action.repos:
        try:
            await step.call_as_shown(TOOLS[step.action.type], {"repo": repo})
            done.append(repo)
        except RookeryError as error:
            failed.append(f"{repo}: {error.code}: {error.message}")
    result = {"result": f"{step.action.type}: {', '.join(done) or 'none'}"}
    if failed:
        raise StepFailed("; ".join(failed), result)
    return result


async def _session(step: Step) -> dict[str, Any]:
    runtime = cast("Runtime | None", step.job.platform.calls.facts.get("runtime"))
    if runtime is None:
        raise ServiceUnavailable(
            f"{step.action.type} needs an agent's session, and this installation starts none",
            hint="set runtime in rookery.toml",
        )
    task = Task(
        kind="schedule",
        actor=await step.actor(scheduler=True),
        prompt=prompt_for(step.action),
        key=step.key,
        budget_usd=step.budget_usd,
    )
    ended = await run_session(step.job, runtime, task, lambda tx, session: step.note(tx, {"session_id": session}))
    outcome = ended.outcome
    known: dict[str, Any] = {
        "session_id": ended.session_id,
        "result": outcome.output[:MAX_RESULT],
        "cost_usd": outcome.cost_micros / MICROS,
    }
    if outcome.status != "done":
        raise StepFailed(outcome.error or "the session failed", known)
    return known


def _told(answer: dict[str, Any]) -> str:
    """The answer of a tool in a line."""
    return ", ".join(f"{name}: {value}" for name, value in answer.items() if value not in (None, "", []))[:MAX_RESULT]

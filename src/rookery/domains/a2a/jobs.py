"""The job behind a task that came in: an unattended session of the agent that does it."""

import asyncio
from typing import Any, cast

from rookery.core.actor import Actor
from rookery.core.errors import RookeryError
from rookery.db.tx import Tx
from rookery.domains.a2a.prompt import prompt_for
from rookery.domains.a2a.store import TOO_LATE, Row, Tasks
from rookery.identity.binding import bound_by
from rookery.jobs.kinds import Ended, Finish, JobArgs, job
from rookery.jobs.running import Running
from rookery.jobs.store import Jobs
from rookery.lifecycle import session_runs
from rookery.lifecycle.session_runs import Task, Unwanted, run_session
from rookery.lifecycle.sessions import Runtime

NO_RUNTIME = "this server starts no agents: its setting runtime names none"


class TaskArgs(JobArgs):
    """Which task."""

    task_id: str


def task_key(task_id: str) -> str:
    """Names the task in all the world: what is done under it is done once."""
    return f"a2a:{task_id}"


async def _do(job: Running, args: TaskArgs) -> Finish:
    """Have the task done. Its answer is kept in the transaction that ends the job, so there is one."""
    task = await job.write(lambda tx: Tasks(tx, job.tenant).begin(args.task_id))
    if task is None:
        return None
    runtime = cast("Runtime | None", job.platform.calls.facts.get("runtime"))
    if runtime is None:
        return _failed(task, NO_RUNTIME)
    try:
        async with asyncio.timeout(_left_s(task)):
            ended = await _session(job, runtime, task)
    except Unwanted:
        return None
    except TimeoutError:
        return _failed(task, TOO_LATE)
    except RookeryError as error:
        if error.retryable:
            raise
        return _failed(task, f"{task.agent_name} cannot do it here")
    return _finish(task, ended)


# A session that waits for an agent elsewhere, which asks an agent of ours, keeps its place meanwhile. So the task that
# comes back has places that those before it cannot take.
run_task = job("a2a.run_task", attempts=3, backoff_s=2.0, lasting=True)(_do)
run_task_deep = job("a2a.run_task_deep", attempts=3, backoff_s=2.0, lasting=True, step=1)(_do)


async def _session(job: Running, runtime: Runtime, task: Row) -> session_runs.Ended:
    before = await job.read(lambda tx: Tasks(tx, job.tenant).before(task))
    key = task_key(task.id)
    actor: Actor = await job.actor(agent=task.agent_id, project=task.project_id, session=key, **bound_by(task.held))
    wanted = Task(kind="a2a", actor=actor, prompt=prompt_for(task, before), key=key, asked_by=task.held)

    def note(tx: Tx, session_id: str) -> None:
        if not Tasks(tx, job.tenant).note_session(task.id, session_id):
            raise Unwanted

    return await run_session(job, runtime, wanted, note)


def _left_s(task: Row) -> float | None:
    """The time that is left to a task that was begun just now. It counts from when the task came, not from each try."""
    return None if task.limit_ms is None else (task.created_ms + task.limit_ms - task.updated_ms) / 1000


def _finish(task: Row, ended: session_runs.Ended) -> Finish:
    output = ended.outcome.output
    if ended.outcome.status != "done":
        # What the session says of its failure is not for the sender: it may name whatever the agent can see.
        return _failed(task, f"the session of {task.agent_name} {'took too long' if ended.late else 'failed'}")
    if not output.strip():
        return _failed(task, "the session ended without an answer")
    return lambda tx: Tasks(tx, task.tenant).end(task.id, "completed", answer=output)


def _failed(task: Row, why: str) -> Finish:
    return lambda tx: Tasks(tx, task.tenant).end(task.id, "failed", error=why)


def _given_up(tx: Tx, end: Ended) -> None:
    cancelled = end.state == "cancelled"
    why = None if cancelled else "it came to nothing"
    Tasks(tx, end.tenant).end(end.args.task_id, "canceled" if cancelled else "failed", error=why)


for _kind in (run_task, run_task_deep):
    _kind.ended(_given_up)


def defer_task(tx: Tx, task: Any) -> None:
    """Let a worker do the task."""
    kind = run_task_deep if task.held.get("depth", 1) >= 3 else run_task
    Jobs(tx, task.tenant).defer(kind, TaskArgs(task_id=task.id), key=task_key(task.id))

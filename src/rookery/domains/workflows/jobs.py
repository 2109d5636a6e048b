"""The jobs that carry out nodes: sessions of agents, work tasks, delays, and waits that take too long."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, cast

from rookery.core.actor import Actor
from rookery.core.errors import PermissionDenied, RookeryError, ServiceUnavailable
from rookery.db.tx import Tx
from rookery.domains.workflows.engine import node_key, settle_node, snapshot_of
from rookery.domains.workflows.graph import Node
from rookery.domains.workflows.machine import NodeState, text_of
from rookery.domains.workflows.node_config import AgentSessionConfig, WorkConfig, WorkTaskConfig
from rookery.domains.workflows.payload import fit_text
from rookery.domains.workflows.run_store import UNDER_WAY, Json, held_run, node_row, note, run_row
from rookery.identity.binding import bound_by
from rookery.identity.store import IdentityStore
from rookery.jobs.kinds import Ended, JobArgs, job
from rookery.jobs.running import Running
from rookery.jobs.store import Jobs
from rookery.lifecycle.session_calls import call_approved
from rookery.lifecycle.session_jobs import end_lost
from rookery.lifecycle.session_runs import Task, Unwanted, run_session
from rookery.lifecycle.sessions import Runtime

TURN_S = 30.0
"""A session has so long for each of its turns, should that be longer than every session has."""
POLLS_MS = (1_000, 2_000, 4_000, 8_000)
LONGEST_POLL_MS = 15_000
"""How long a node that waits for its work task sleeps before it looks, the first times and from then on."""
TASK_OVER = ("completed", "failed")
Finish = Callable[[Tx], Any] | None


class NodeFailed(RookeryError):
    """What a node was to do did not succeed."""

    code = "NODE_FAILED"


class NodeArgs(JobArgs):
    """Which node of which run, and how often its work was started over."""

    run_id: str
    node_id: str
    tries: int = 0


class DelayArgs(NodeArgs):
    delay_ms: int


class TimeoutArgs(NodeArgs):
    timeout_ms: int


class TaskArgs(NodeArgs):
    task_id: str
    polls: int = 0


@dataclass(frozen=True, slots=True)
class Work:
    """A node under way: what it is to do, and as whom."""

    node: Node
    given: Json
    agent: str
    binding: Json
    asked_by: Json

    @property
    def settings(self) -> WorkConfig:
        return cast(WorkConfig, self.node.settings())

    async def actor(self, job: Running) -> Actor:
        """Who acts in this node, with the rights of this moment."""
        return await job.actor(agent=self.agent, **self.binding)


async def _work(job: Running, args: NodeArgs) -> Work | None:
    """What the node is to do; None if it is not under way any more."""
    return await job.read(lambda tx: _work_in(tx, args))


def _work_in(tx: Tx, args: NodeArgs) -> Work | None:
    run, row = run_row(tx, args.run_id), node_row(tx, args.run_id, args.node_id)
    if run is None or row is None or row.status not in UNDER_WAY:
        return None
    snapshot = snapshot_of(run)
    node = snapshot.graph.node(args.node_id)
    settings = cast(WorkConfig, node.settings())
    agent = snapshot.agent_id
    if settings.agent_id is not None:
        agent = IdentityStore(tx, run.tenant).agent(settings.agent_id).id
        if agent != snapshot.agent_id and not snapshot.by_person:
            raise PermissionDenied(f"the workflow may not act as {settings.agent_id}", hint="a person may write so")
    binding: Json = {**bound_by(snapshot.binding), "project": settings.project_id or snapshot.project_id}
    return Work(node, row.input or {}, agent, binding, snapshot.binding)


def _completed(args: NodeArgs, output: Json) -> Finish:
    return lambda tx: settle_node(tx, args.run_id, args.node_id, NodeState("completed", output=output))


def _given_up(tx: Tx, end: Ended) -> None:
    """The node has failed for good. If the run was cancelled the node is over already, and stays as it is."""
    end_lost(tx, end)
    error = end.error.removeprefix(f"{NodeFailed.code}: ")
    settle_node(tx, end.args.run_id, end.args.node_id, NodeState("failed", error=error))


@job("workflows.agent_session", attempts=1, lasting=True)
async def agent_session(job: Running, args: NodeArgs) -> Finish:
    work = await _work(job, args)
    if work is None:
        return None
    runtime: Runtime | None = job.platform.calls.facts.get("runtime")
    if runtime is None:
        raise ServiceUnavailable("this installation runs no agents", hint="set a runtime")
    settings = cast(AgentSessionConfig, work.settings)
    task = Task(
        kind="workflow",
        actor=await work.actor(job),
        prompt=text_of(work.node, work.given),
        key=node_key(args.run_id, args.node_id),
        max_turns=settings.max_turns,
        asked_by=work.asked_by,
        least_s=settings.max_turns * TURN_S,
    )

    def noted(tx: Tx, session_id: str) -> None:
        if not note(tx, args.run_id, args.node_id, session_id=session_id):
            raise Unwanted

    try:
        ended = await run_session(job, runtime, task, noted)
    except Unwanted:
        return None
    if ended.outcome.status == "failed":
        raise NodeFailed(fit_text(ended.outcome.error) or f"the session {ended.session_id} failed")
    return _completed(args, {"sessionId": ended.session_id, "output": fit_text(ended.outcome.output)})


# Lasting, since a person may have to approve the task.
@job("workflows.work_task", attempts=1, lasting=True)
async def work_task(job: Running, args: NodeArgs) -> Finish:
    work = await _work(job, args)
    if work is None:
        return None
    settings = cast(WorkTaskConfig, work.settings)
    # The same key gives the same task, however often a worker dies here.
    key = node_key(args.run_id, args.node_id, args.tries)
    told = {"description": text_of(work.node, work.given), "source_id": key}
    made = await call_approved(job, partial(work.actor, job), "create_work_task", told, session=key)
    task = made.structured
    if not settings.wait_for_completion:
        output = _task_output(task)
        return lambda tx: (_note_task(tx, args, task["id"]), _done(tx, args, output))
    waiting = TaskArgs(run_id=args.run_id, node_id=args.node_id, tries=args.tries, task_id=task["id"])
    return lambda tx: (_note_task(tx, args, task["id"]), _look_later(tx, job.tenant, waiting))


@job("workflows.await_task", attempts=10)
async def await_task(job: Running, args: TaskArgs) -> Finish:
    """Look once whether the task is over. A worker that waited for it would take the room of the task itself."""
    work = await _work(job, args)
    if work is None:
        return None
    task = (await job.platform.calls.call(await work.actor(job), "get_work_task", {"task_id": args.task_id})).structured
    if task["status"] not in TASK_OVER:
        again = args.model_copy(update={"polls": args.polls + 1})
        return lambda tx: _look_later(tx, job.tenant, again)
    if task["status"] == "completed":
        return _completed(args, _task_output(task))
    error = f"the work task {args.task_id} failed: {task.get('error') or 'no reason was given'}"
    if args.tries < work.settings.retries:
        return lambda tx: _try_again(tx, job.tenant, args, work.settings)
    return lambda tx: settle_node(tx, args.run_id, args.node_id, NodeState("failed", error=fit_text(error)))


def _task_output(task: Json) -> Json:
    return {"workTaskId": task["id"], "branchName": task.get("branch_name"), "status": task["status"]}


def _note_task(tx: Tx, args: NodeArgs, task_id: str) -> None:
    # The run first and its node then, as everybody does.
    held_run(tx, args.run_id)
    note(tx, args.run_id, args.node_id, work_task_id=task_id)


def _done(tx: Tx, args: NodeArgs, output: Json) -> None:
    settle_node(tx, args.run_id, args.node_id, NodeState("completed", output=output))


def _look_later(tx: Tx, tenant: str, args: TaskArgs) -> None:
    pause = POLLS_MS[args.polls] if args.polls < len(POLLS_MS) else LONGEST_POLL_MS
    key = f"await:{args.run_id}:{args.node_id}:{args.tries}:{args.polls}"
    _carry_on(tx, args, lambda: Jobs(tx, tenant).defer(await_task, args, delay_ms=pause, key=key))


def _try_again(tx: Tx, tenant: str, args: TaskArgs, settings: WorkConfig) -> None:
    """Start the work over, with a task of its own."""
    tries = args.tries + 1
    again = NodeArgs(run_id=args.run_id, node_id=args.node_id, tries=tries)
    key, pause = node_key(args.run_id, args.node_id, tries), settings.retry_delay_ms
    _carry_on(tx, args, lambda: Jobs(tx, tenant).defer(work_task, again, delay_ms=pause, key=key))


def _carry_on(tx: Tx, args: NodeArgs, defer: Callable[[], int]) -> None:
    """Hand the node to another job, unless the run has ended meanwhile."""
    held_run(tx, args.run_id)
    row = node_row(tx, args.run_id, args.node_id)
    if row is not None and row.status in UNDER_WAY:
        note(tx, args.run_id, args.node_id, job_id=defer())


@job("workflows.delay", attempts=10)
async def delay(job: Running, args: DelayArgs) -> Finish:
    return _completed(args, {"delayed": True, "delayMs": args.delay_ms})


@job("workflows.webhook_timeout", attempts=10)
async def webhook_timeout(job: Running, args: TimeoutArgs) -> Finish:
    late = NodeState("failed", error=f"nothing was delivered within {args.timeout_ms} ms")
    return lambda tx: settle_node(tx, args.run_id, args.node_id, late)


for _kind in (agent_session, work_task, await_task, delay, webhook_timeout):
    _kind.ended(_given_up)

"""Tools with which work is given to an agent and looked after."""

from typing import Annotated, Any

from pydantic import AfterValidator, ConfigDict, Field

from rookery.core.actor import Actor
from rookery.core.context import Context
from rookery.core.errors import Conflict, PermissionDenied, ValidationFailed
from rookery.core.tool import ToolInput, ToolOutput, tool
from rookery.domains.work.jobs import cancel_work, defer_work
from rookery.domains.work.shown import short, whole
from rookery.domains.work.states import TASK
from rookery.domains.work.store import NewTask, WorkTasks
from rookery.identity.binding import inherited
from rookery.identity.store import DEFAULT_AGENT, IdentityStore

MAX_DESCRIPTION = 20_000
MAX_REFERENCE = 200
MAX_LISTED = 50
DEFAULT_LISTED = 20


def _described(text: str) -> str:
    if not text.strip() or len(text) > MAX_DESCRIPTION:
        raise ValueError(f"must have 1 to {MAX_DESCRIPTION} characters")
    return text.strip()


def _named(text: str) -> str:
    if not text or len(text) > MAX_REFERENCE:
        raise ValueError(f"must have 1 to {MAX_REFERENCE} characters")
    return text


def _state(text: str) -> str:
    if text not in TASK.states:
        raise ValueError(f"must be one of {', '.join(TASK.states)}")
    return text


def _few(number: int) -> int:
    if not 1 <= number <= MAX_LISTED:
        raise ValueError(f"must be from 1 to {MAX_LISTED}")
    return number


# Validators rather than limits that every agent would read in the schema.
Reference = Annotated[str, AfterValidator(_named)]


class CreateWorkTask(ToolInput):
    description: Annotated[str, AfterValidator(_described)] = Field(description="What to do")
    project_id: Reference | None = Field(None, description="If another")
    source_id: Reference | None = Field(None, description="Idempotency key")


class TaskRef(ToolInput):
    task_id: Reference = Field(description="Id")


class ListWorkTasks(ToolInput):
    status: Annotated[str, AfterValidator(_state)] | None = Field(None, description="State")
    limit: Annotated[int, AfterValidator(_few)] | None = Field(None, description="Up to 50")


class WorkTask(ToolOutput):
    """One task with all its fields, which are listed for no agent: shown.py has them."""

    model_config = ConfigDict(extra="allow")


class WorkTaskList(ToolOutput):
    tasks: list[dict[str, Any]]


@tool(
    title="Create work task", effect="write", action="work:create", tier="act", group="Write", profiles="",
    default=True, requires="work_tasks", bundles=("preset-devops", "preset-full-stack"),
)  # fmt: skip
def create_work_task(ctx: Context, args: CreateWorkTask) -> WorkTask:
    """Have code written on a new branch. Use it for what can wait. Returns id and branch. Limited per day."""
    store = IdentityStore(ctx.tx, ctx.actor.tenant)
    agent_id, agent_name = _worker(store, ctx.actor)
    project = store.project(args.project_id or ctx.actor.project or "", ctx.actor.closed)
    if project.path is None:
        raise ValidationFailed(
            f"project {project.slug} has no folder to work in", hint="name a project that was created with a path"
        )
    new = NewTask(
        agent_id=agent_id,
        agent_name=agent_name,
        project_id=project.id,
        description=args.description,
        source=ctx.actor.source,
        source_id=args.source_id,
        requester=_requester(ctx.actor),
    )
    limit = ctx.platform.facts["settings"].work_task_max_per_day
    task, is_new = WorkTasks(ctx.tx, ctx.actor.tenant).create(new, limit)
    if is_new:
        defer_work(ctx.tx, task)
        ctx.publish("WorkTaskCreated", subject=task.id)
    elif task.project_id in ctx.actor.closed:
        raise Conflict("source_id: stands for another task already", hint="choose another key")
    ctx.emit_status(f"work task {task.id} is {task.status}")
    return WorkTask(**whole(task))


def _worker(store: IdentityStore, actor: Actor) -> tuple[str, str]:
    """The id and name of the agent that works: the caller, or for people the default agent."""
    if actor.kind == "human":
        row = store.agent(DEFAULT_AGENT)
        return row.id, row.name
    if actor.agent is None:
        raise PermissionDenied(
            "work is done by agents of this installation, and this caller is none",
            hint="ask one of them, or its owner",
            layer="principal",
        )
    return actor.agent, actor.agent_name or actor.agent


def _requester(actor: Actor) -> dict[str, Any]:
    """Who asks, and what its session is held to: the work must not reach further than whoever asked for it."""
    return {"subject": actor.subject, "kind": actor.kind, **inherited(actor)}


@tool(
    title="Get work task", effect="read", action="work:read", tier="observe", group="Read", profiles="",
    default=True, bundles=("preset-devops", "preset-full-stack"),
)  # fmt: skip
def get_work_task(ctx: Context, args: TaskRef) -> WorkTask:
    """Use it to look at a task. Returns only yours."""
    return WorkTask(**whole(WorkTasks(ctx.tx, ctx.actor.tenant, ctx.actor).of(args.task_id)))


@tool(
    title="List work tasks", effect="read", action="work:read", tier="observe", group="Read", profiles="",
    default=True, bundles=("preset-devops", "preset-full-stack"),
)  # fmt: skip
def list_work_tasks(ctx: Context, args: ListWorkTasks) -> WorkTaskList:
    """Use it to find tasks. Returns only yours."""
    rows = WorkTasks(ctx.tx, ctx.actor.tenant, ctx.actor).newest(args.limit or DEFAULT_LISTED, args.status)
    return WorkTaskList(tasks=[short(row) for row in rows])


@tool(
    title="Cancel work task", effect="write", action="work:create", tier="act", group="Write", profiles="",
    default=True, bundles=("preset-devops", "preset-full-stack"),
)  # fmt: skip
def cancel_work_task(ctx: Context, args: TaskRef) -> WorkTask:
    """Use it to stop a task. Returns it. Only yours."""
    actor = ctx.actor
    tasks = WorkTasks(ctx.tx, actor.tenant, actor)
    seen = tasks.of(args.task_id)
    who = actor.agent_name or actor.role or actor.subject
    # The job before its task: whoever works on it takes them in this order, and two that cross wait for each other.
    cancel_work(ctx.tx, seen)
    cancelled = tasks.fail(seen.id, f"cancelled by {who}")
    if cancelled is None:
        TASK.check(tasks.of(seen.id).status, "failed", "human" if actor.kind == "human" else "agent")
        raise Conflict(f"the work task {seen.id} ended at the same moment", hint="look at it: get_work_task")
    return WorkTask(**whole(cancelled))

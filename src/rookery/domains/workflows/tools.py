"""The tool with which agents and people make workflows, run them and look at their runs."""

from collections.abc import Callable
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field, ValidationError, WithJsonSchema

from rookery.core.context import Context
from rookery.core.errors import InvalidParams, PermissionDenied
from rookery.core.tool import ToolInput, ToolOutput, tool
from rookery.domains.workflows import engine
from rookery.domains.workflows.graph import NODE_TYPES, Graph, check_graph
from rookery.domains.workflows.payload import refuse_unfit
from rookery.domains.workflows.run_store import Row, Runs
from rookery.domains.workflows.shown import run_line, whole_run, whole_workflow, workflow_line
from rookery.domains.workflows.store import Workflows, owner_of
from rookery.identity.store import DEFAULT_AGENT, IdentityStore

MAX_GRAPH_BYTES = 512 * 1024
MAX_INPUT_BYTES = 64 * 1024
SHAPE = "a node is {id, type, label, config}, an edge {id, sourceNodeId, targetNodeId, condition}"
MAX_DEPTH = 3
"""How deep sessions may be nested that start workflows, whose sessions start workflows."""
Json = dict[str, Any]
Open = Annotated[Json, WithJsonSchema({"type": "object"})]
"""An object of any fields. Each field that the listing told would be paid for in every agent's context."""


def _run_is_trigger(value: Any) -> Any:
    return "run" if value == "trigger" else value


Action = Annotated[
    Literal[
        "list", "get", "create", "update", "delete", "activate", "pause", "run", "runs", "run_status", "cancel",
        "pause_run", "resume_run",
    ],
    BeforeValidator(_run_is_trigger),
]  # fmt: skip


def _short(limit: int) -> AfterValidator:
    """A text of 1 to `limit` characters. Not told in the listing, where every limit costs."""

    def check(text: str) -> str:
        if not 0 < len(text) <= limit:
            raise ValueError(f"must have 1 to {limit} characters")
        return text

    return AfterValidator(check)


class ManageWorkflow(ToolInput):
    action: Action = Field(description="What to do.")
    workflow_id: str | None = Field(None, description="Its id.")
    run_id: str | None = Field(None, description="Its id.")
    name: Annotated[str, _short(200)] | None = Field(None, description="Title.")
    description: Annotated[str, _short(5_000)] | None = Field(None, description="Purpose.")
    nodes: list[Open] | None = Field(
        None, description=f"All: id, type ({', '.join(NODE_TYPES)}), label, config, position."
    )
    edges: list[Open] | None = Field(
        None, description="All: id, sourceNodeId, targetNodeId, condition (true, false), label."
    )
    default_project_id: str | None = Field(None, description="Where its nodes work.")
    max_concurrency: int | None = Field(None, ge=1, le=20, description="Working nodes at once; 2.")
    input: Open | None = Field(None, description="For run.")
    agent_id: str | None = Field(None, description="Whose; people only.")


class Managed(ToolOutput):
    workflows: list[Json] = Field(default_factory=list[Json])
    runs: list[Json] = Field(default_factory=list[Json])


@tool(
    title="Manage workflows", effect="write", action="workflow:manage", tier="act", group="Write", profiles="",
    default=True,
)  # fmt: skip
def manage_workflow(ctx: Context, args: ManageWorkflow) -> Managed:
    """Make and run your workflows: graphs of agent sessions, work tasks, waits and decisions. Use it for work of
    several steps. Returns the workflows or runs concerned. Only active ones run. In config, {{path}} is filled in."""
    return ACTIONS[args.action](ctx, args)


def _workflows(ctx: Context) -> Workflows:
    return Workflows(ctx.tx, ctx.actor.tenant, owner_of(ctx.actor))


def _runs(ctx: Context) -> Runs:
    return Runs(ctx.tx, ctx.actor.tenant, owner_of(ctx.actor))


def _needed(args: ManageWorkflow, name: Literal["workflow_id", "run_id", "name", "nodes"]) -> Any:
    value = getattr(args, name)
    if value is None:
        raise InvalidParams(f"{name}: {args.action} needs it", hint="list and runs show ids" if "_id" in name else None)
    return value


def _one(row: Row) -> Managed:
    return Managed(workflows=[whole_workflow(row)])


def _list(ctx: Context, args: ManageWorkflow) -> Managed:
    return Managed(workflows=[workflow_line(row) for row in _workflows(ctx).page()])


def _get(ctx: Context, args: ManageWorkflow) -> Managed:
    return _one(_workflows(ctx).get(_needed(args, "workflow_id")))


def _create(ctx: Context, args: ManageWorkflow) -> Managed:
    name = _needed(args, "name")
    _needed(args, "nodes")
    agent_id = _agent(ctx, args)
    graph = _graph(ctx, args, None, agent_id)
    made = _workflows(ctx).create(
        agent_id=agent_id,
        name=name,
        description=args.description or "",
        **graph,
        default_project_id=_project(ctx, args),
        max_concurrency=args.max_concurrency or 2,
        made_by=ctx.actor.subject,
    )
    return _one(made)


def _update(ctx: Context, args: ManageWorkflow) -> Managed:
    store = _workflows(ctx)
    row = store.get(_needed(args, "workflow_id"), held=True)
    values: Json = args.model_dump(include={"name", "description", "max_concurrency"}, exclude_none=True)
    if args.agent_id is not None:
        values["agent_id"] = _agent(ctx, args)
    if args.default_project_id is not None:
        values["default_project_id"] = _project(ctx, args)
    if args.nodes is not None or args.edges is not None:
        values |= _graph(ctx, args, row, row.agent_id)
    if not values:
        raise InvalidParams("update: nothing is to be changed", hint="give name, nodes, edges or another field")
    return _one(store.update(row.id, **values))


def _agent(ctx: Context, args: ManageWorkflow) -> str:
    """Whose workflow it becomes: an agent's own; a person says whose, or it is the default agent's."""
    own = owner_of(ctx.actor)
    if own is None:
        return IdentityStore(ctx.tx, ctx.actor.tenant).agent(args.agent_id or DEFAULT_AGENT).id
    if args.agent_id not in (None, own, ctx.actor.agent_name):
        raise PermissionDenied("an agent makes workflows for itself", hint="leave agent_id out", layer="principal")
    return own


def _project(ctx: Context, args: ManageWorkflow) -> str | None:
    if args.default_project_id is None:
        return None
    return IdentityStore(ctx.tx, ctx.actor.tenant).project(args.default_project_id, ctx.actor.closed).id


def _graph(ctx: Context, args: ManageWorkflow, row: Row | None, agent_id: str) -> Json:
    """The columns of the graph that is asked for, once it is known that it can run."""
    refuse_unfit([args.nodes, args.edges], "nodes", MAX_GRAPH_BYTES)
    given = {
        "nodes": args.nodes if args.nodes is not None or row is None else row.nodes,
        "edges": (args.edges or []) if args.edges is not None or row is None else row.edges,
    }
    try:
        graph = Graph.model_validate(given)
    except ValidationError as error:
        faults = "; ".join(
            f"{'.'.join(str(part) for part in fault['loc'])}: {fault['msg']}"
            for fault in error.errors(include_url=False, include_input=False, include_context=False)[:8]
        )
        raise InvalidParams(faults, hint=SHAPE) from None
    check_graph(graph)
    _check_names(ctx, graph, agent_id)
    kept = graph.model_dump(mode="json", exclude_none=True)
    return {"nodes": kept["nodes"], "edges": kept["edges"], "by_person": ctx.actor.kind == "human"}


def _check_names(ctx: Context, graph: Graph, agent_id: str) -> None:
    """Refuse nodes that name agents or projects which are not there, or which the caller may not send to work."""
    store = IdentityStore(ctx.tx, ctx.actor.tenant)
    for node in graph.nodes:
        if (project := node.config.get("projectId")) is not None:
            store.project(project, ctx.actor.closed)
        named: str | None = node.config.get("agentId")
        if named is None:
            continue
        if ctx.actor.kind != "human" and named not in (agent_id, ctx.actor.agent_name):
            raise PermissionDenied(
                f'node "{node.name}": an agent\'s workflow acts as that agent alone',
                hint="leave agentId out, or ask the owner to make the workflow",
                layer="principal",
            )
        store.agent(named)


def _delete(ctx: Context, args: ManageWorkflow) -> Managed:
    return Managed(workflows=[workflow_line(_workflows(ctx).delete(_needed(args, "workflow_id")))])


def _activate(ctx: Context, args: ManageWorkflow) -> Managed:
    return Managed(workflows=[workflow_line(_workflows(ctx).activate(_needed(args, "workflow_id")))])


def _pause(ctx: Context, args: ManageWorkflow) -> Managed:
    return Managed(workflows=[workflow_line(_workflows(ctx).pause(_needed(args, "workflow_id")))])


def _run(ctx: Context, args: ManageWorkflow) -> Managed:
    store = _workflows(ctx)
    workflow = store.get(_needed(args, "workflow_id"), held=True)
    store.check_room()
    given = args.input or {}
    refuse_unfit(given, "input", MAX_INPUT_BYTES)
    if ctx.actor.kind == "agent" and ctx.actor.depth >= MAX_DEPTH:
        raise PermissionDenied(
            f"depth {ctx.actor.depth} has reached the maximum of {MAX_DEPTH}: workflows start no deeper sessions",
            hint="answer with what you know",
            layer="depth",
        )
    run_id = engine.start_run(ctx.tx, workflow, given, ctx.actor)
    ctx.publish("WorkflowRunStarted", subject=run_id, workflow=workflow.id)
    return _run_shown(ctx, run_id)


def _run_shown(ctx: Context, run_id: str) -> Managed:
    return Managed(runs=[whole_run(ctx.tx, _runs(ctx).get(run_id))])


def _list_runs(ctx: Context, args: ManageWorkflow) -> Managed:
    workflow = _workflows(ctx).get(_needed(args, "workflow_id"))
    return Managed(runs=[run_line(row) for row in _runs(ctx).page(workflow.id)])


def _run_status(ctx: Context, args: ManageWorkflow) -> Managed:
    return _run_shown(ctx, _needed(args, "run_id"))


def _turned(turn: Callable[[Any, Row], None]) -> Callable[[Context, ManageWorkflow], Managed]:
    def act(ctx: Context, args: ManageWorkflow) -> Managed:
        run = _runs(ctx).get(_needed(args, "run_id"))
        turn(ctx.tx, run)
        return _run_shown(ctx, run.id)

    return act


ACTIONS: dict[str, Callable[[Context, ManageWorkflow], Managed]] = {
    "list": _list,
    "get": _get,
    "create": _create,
    "update": _update,
    "delete": _delete,
    "activate": _activate,
    "pause": _pause,
    "run": _run,
    "runs": _list_runs,
    "run_status": _run_status,
    "cancel": _turned(engine.cancel_run),
    "pause_run": _turned(engine.pause_run),
    "resume_run": _turned(engine.resume_run),
}

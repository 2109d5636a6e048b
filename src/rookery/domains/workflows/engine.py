"""Moves runs on. Every step is one transaction that holds the run, so that no two steps of a run happen at once."""

import json
from typing import Any, cast

from pydantic import BaseModel, ConfigDict

from rookery.core.actor import Actor
from rookery.core.errors import Conflict
from rookery.db.server_keys import server_key_in
from rookery.db.tx import Tx
from rookery.domains.workflows.graph import Graph, Node
from rookery.domains.workflows.machine import NodeState, advance
from rookery.domains.workflows.node_config import DelayConfig, WebhookWaitConfig, WorkConfig
from rookery.domains.workflows.run_store import (
    UNDER_WAY,
    Json,
    Row,
    decide_nodes,
    end_run,
    held_run,
    new_run,
    node_rows,
    note,
    settle,
    skip_open_nodes,
    states_of,
    turn_run,
)
from rookery.identity.binding import inherited
from rookery.jobs.store import Jobs

HOOK_KEY = "workflow-hooks"
"""The name of the server's key that secrets of waiting nodes are made with."""
MAX_NODE_BYTES = 2 << 20
MAX_STEP_BYTES = 16 << 20
"""A node may be given and may give so much, and the nodes that are decided at once so much together; without limits a
few nodes that copy would fill the disk.
"""
WORKERS = ("agent_session", "work_task")
"""The types of nodes whose work is worth stopping."""


class Snapshot(BaseModel):
    """What a run needs of its workflow and of whoever started it, as it was when it began."""

    model_config = ConfigDict(frozen=True)

    graph: Graph
    name: str
    agent_id: str
    project_id: str | None
    max_concurrency: int
    by_person: bool
    binding: Json
    """How sessions of the run are bound."""


def snapshot_of(run: Row) -> Snapshot:
    """The snapshot that a run keeps."""
    return Snapshot.model_validate(run.workflow_snapshot)


def start_run(tx: Tx, workflow: Row, given: Json, starter: Actor) -> str:
    """Start a run of an active workflow, as far as it gets without anybody else; its id."""
    if workflow.status != "active":
        raise Conflict(f"the workflow {workflow.id} is {workflow.status}, not active", hint="action activate first")
    snapshot = {
        "graph": {"nodes": workflow.nodes, "edges": workflow.edges},
        "name": workflow.name,
        "agent_id": workflow.agent_id,
        "project_id": workflow.default_project_id,
        "max_concurrency": workflow.max_concurrency,
        "by_person": bool(workflow.by_person),
        "binding": _binding(starter),
    }
    if any(node["type"] == "webhook_wait" for node in workflow.nodes):
        # Whoever delivers may only look the key up.
        server_key_in(tx, HOOK_KEY)
    run_id = new_run(tx, workflow, snapshot, given, starter.subject)
    advance_run(tx, run_id)
    return run_id


def _binding(starter: Actor) -> Json:
    """How sessions are bound that this actor starts: they reach no further than it does, and depth counts on."""
    if starter.kind != "agent":
        return inherited(starter) | {"depth": 1, "source": "stdio"}
    return inherited(starter) | {"depth": starter.depth + 1, "source": "agent"}


def advance_run(tx: Tx, run_id: str) -> None:
    """Let everything happen that can happen now: nodes decided, work deferred, the run ended. Paused runs stand still.

    Asking again changes nothing more.
    """
    run = held_run(tx, run_id)
    if run is None or run.status != "running":
        return
    snapshot = snapshot_of(run)
    step = advance(snapshot.graph, states_of(node_rows(tx, run_id)), run.input, snapshot.max_concurrency)
    if too_much := _too_much(snapshot.graph, step.changed):
        _stop(tx, run, "failed", too_much)
        return
    decide_nodes(tx, run_id, step.changed)
    for node_id in step.begin:
        note(tx, run_id, node_id, job_id=_defer(tx, run, snapshot.graph.node(node_id)))
    if step.finished is not None:
        status, output, error = step.finished
        end_run(tx, run_id, status, output, error)


def settle_node(tx: Tx, run_id: str, node_id: str, state: NodeState) -> bool:
    """A node under way has ended like this, and the run goes on; False, and nothing done, if it was over before."""
    if held_run(tx, run_id) is None or not settle(tx, run_id, node_id, state):
        return False
    advance_run(tx, run_id)
    return True


def pause_run(tx: Tx, run: Row) -> None:
    """Let nothing new begin. What is under way ends."""
    if not turn_run(tx, run.id, "running", "paused"):
        raise _not_so(run, "running")


def resume_run(tx: Tx, run: Row) -> None:
    """Let a paused run go on."""
    if not turn_run(tx, run.id, "paused", "running"):
        raise _not_so(run, "paused")
    advance_run(tx, run.id)


def cancel_run(tx: Tx, run: Row) -> None:
    """End the run now: what is under way is stopped, what has not ended is skipped."""
    # Jobs first, the run then: a job that ends goes the same way, and two that cross would wait for each other.
    _cancel_jobs(tx, run)
    current = held_run(tx, run.id)
    if current is None or current.status not in ("running", "paused"):
        raise _not_so(current or run, "running or paused")
    _stop(tx, current, "cancelled", None)


def _stop(tx: Tx, run: Row, status: str, error: str | None) -> None:
    """End a held run before its nodes have."""
    _cancel_jobs(tx, run, only=WORKERS)
    skip_open_nodes(tx, run.id)
    end_run(tx, run.id, status, None, error)


def _cancel_jobs(tx: Tx, run: Row, only: tuple[str, ...] | None = None) -> None:
    jobs = Jobs(tx, run.tenant)
    for row in node_rows(tx, run.id):
        if row.status in UNDER_WAY and row.job_id is not None and (only is None or row.node_type in only):
            jobs.cancel(row.job_id, f"the run {run.id} was ended")


def _not_so(run: Row, wanted: str) -> Conflict:
    return Conflict(f"the run {run.id} is {run.status}, not {wanted}", hint="action run_status shows it")


def _too_much(graph: Graph, changed: dict[str, NodeState]) -> str | None:
    whole = 0
    for node_id, state in changed.items():
        size = len(json.dumps([state.input, state.output], ensure_ascii=False))
        if size > MAX_NODE_BYTES:
            return f'node "{graph.node(node_id).name}" has {size} bytes of input and output, too many to go on'
        whole += size
    if whole > MAX_STEP_BYTES:
        return f"{len(changed)} nodes have {whole} bytes of input and output together, too many to go on"
    return None


def node_key(run_id: str, node_id: str, tries: int = 0) -> str:
    """The key of what carries out a node: a session and a job have the same."""
    return f"node:{run_id}:{node_id}" + (f":{tries}" if tries else "")


def _defer(tx: Tx, run: Row, node: Node) -> int:
    """The job that will settle a node which has just begun."""
    args: Json = {"run_id": run.id, "node_id": node.id}
    how: dict[str, Any] = {"key": node_key(run.id, node.id)}
    settings = node.settings()
    if isinstance(settings, DelayConfig):
        kind, how["delay_ms"] = "workflows.delay", settings.delay_ms
        args["delay_ms"] = settings.delay_ms
    elif isinstance(settings, WebhookWaitConfig):
        kind, how["delay_ms"] = "workflows.webhook_timeout", settings.timeout_ms
        args["timeout_ms"] = settings.timeout_ms
    else:
        work = cast(WorkConfig, settings)
        kind, how["attempts"], how["backoff_s"] = f"workflows.{node.type}", work.retries + 1, work.retry_delay_ms / 1000
    return Jobs(tx, run.tenant).defer(kind, args, **how)

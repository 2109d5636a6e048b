"""Workflows and runs as their readers see them: what goes without saying is left out, what is long is cut."""

from collections.abc import Sequence
from typing import Any, cast

from rookery.core.moments import iso, with_moments
from rookery.db.tx import Tx
from rookery.domains.workflows.engine import snapshot_of
from rookery.domains.workflows.graph import Node, in_order
from rookery.domains.workflows.hooks import hook_path, hook_secret
from rookery.domains.workflows.machine import BEGUN
from rookery.domains.workflows.node_config import WebhookWaitConfig
from rookery.domains.workflows.run_store import UNDER_WAY, Json, Row, node_rows

SHORT = 500
LONG = 20_000
"""How much of a text is shown: of a node, and of the end of a run."""
TELLING = {*BEGUN, "condition"}
"""The types whose output is worth showing; the others hand on what they were given."""


def workflow_line(row: Row) -> Json:
    """A workflow in a list."""
    return {
        "id": row.id,
        "name": row.name,
        "status": row.status,
        "agent_id": row.agent_id,
        "nodes": len(row.nodes),
        "updated_at": iso(row.updated_ms),
    }


def whole_workflow(row: Row) -> Json:
    """A workflow with its graph."""
    names = ("description", "nodes", "edges", "default_project_id", "max_concurrency", "created_ms")
    return workflow_line(row) | with_moments({name: getattr(row, name) for name in names})


def run_line(row: Row) -> Json:
    """A run in a list."""
    names = ("id", "workflow_id", "status", "error", "started_by", "started_ms", "ended_ms")
    return with_moments({name: getattr(row, name) for name in names})


def whole_run(tx: Tx, row: Row) -> Json:
    """A run with what became of its nodes, and how to deliver to those that wait."""
    snapshot = snapshot_of(row)
    rows = {each.node_id: each for each in node_rows(tx, row.id)}
    nodes = in_order(snapshot.graph)
    waiting = [node for node in nodes if rows[node.id].status == "waiting" and row.status in ("running", "paused")]
    return run_line(row) | {
        "name": snapshot.name,
        "input": cut(row.input, LONG),
        "output": cut(row.output, LONG),
        "current": [node.id for node in nodes if rows[node.id].status in UNDER_WAY],
        "nodes": [_node(node, rows[node.id]) for node in nodes],
        "waiting": [_waiting(tx, row.id, node) for node in waiting],
    }


def _node(node: Node, row: Row) -> Json:
    more: Json = {
        "output": cut(row.output, SHORT) if node.type in TELLING else None,
        "error": row.error,
        "session_id": row.session_id,
        "work_task_id": row.work_task_id,
    }
    told = {"id": node.id, "type": node.type, "label": node.name, "status": row.status}
    return told | {name: value for name, value in more.items() if value is not None}


def _waiting(tx: Tx, run_id: str, node: Node) -> Json:
    event = cast(WebhookWaitConfig, node.settings()).webhook_event
    return {
        "node": node.id,
        "path": hook_path(run_id, node.id),
        "secret": hook_secret(tx, run_id, node.id),
        **({"event": event} if event else {}),
    }


def cut(value: Any, limit: int) -> Any:
    """The value with its long texts cut."""
    if isinstance(value, str):
        return value if len(value) <= limit else f"{value[:limit]}…"
    if isinstance(value, dict):
        return {name: cut(each, limit) for name, each in cast(Json, value).items()}
    if isinstance(value, list):
        return [cut(each, limit) for each in cast("Sequence[Any]", value)]
    return value

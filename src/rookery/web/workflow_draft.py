"""A workflow while somebody draws it. The form carries all of it, so nothing is kept until it is saved. Pure."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast

from rookery.core.errors import InvalidParams
from rookery.domains.workflows.graph import ID, MAX_EDGES, MAX_NODES, NODE_TYPES
from rookery.domains.workflows.node_config import CONFIGS
from rookery.web.editing import editable

Json = dict[str, Any]
MAX_LETTERS = 600_000
KINDS = {
    "start": "where a run begins",
    "agent_session": "an agent works on a prompt",
    "work_task": "a work task is made, and waited for if you like",
    "condition": "goes one way if something holds, else the other",
    "delay": "waits for a while",
    "webhook_wait": "waits until something outside delivers",
    "transform": "makes a text of what came so far",
    "parallel": "goes several ways at once",
    "join": "waits until all ways have come in",
    "end": "where a run ends",
}
NEW: Json = {
    "nodes": [
        {"id": "start", "type": "start", "label": "Start", "config": {}},
        {"id": "end", "type": "end", "label": "End", "config": {}},
    ],
    "edges": [{"id": "start-end", "sourceNodeId": "start", "targetNodeId": "end"}],
}
_LABELS = {
    "prompt": ("Prompt", "What the agent is told. {{output}} is filled in with what the node before gave."),
    "description": ("Description", "What the task is. {{output}} is filled in with what the node before gave."),
    "template": ("Template", "Such as {{output}}, which is filled in."),
    "expression": ("Condition", "Such as output.includes('done') or output == 'yes'."),
    "delayMs": ("Wait, in milliseconds", ""),
    "timeoutMs": ("Give up after, in milliseconds", ""),
    "webhookEvent": ("Name of the event", "Empty: any."),
    "branchCount": ("Ways", "Empty: as many as there are edges."),
    "agentId": ("Agent", "Empty: the agent of the workflow."),
    "projectId": ("Project", "Empty: the project of the workflow."),
    "maxTurns": ("Turns at most", ""),
    "retries": ("Tries after a failure", ""),
    "retryDelayMs": ("Wait before a try, in milliseconds", ""),
    "waitForCompletion": ("Wait until it is done", ""),
}
_LONG = ("prompt", "description", "template")


@dataclass(frozen=True, slots=True)
class ConfigField:
    """One setting of a node, as a form asks for it. `shape` is text, long, number or check."""

    name: str
    label: str
    hint: str
    shape: str
    value: Any
    needed: bool


def read_draft(text: str) -> Json:
    """The graph that a form carries: nodes and edges, not checked any further."""
    if len(text) > MAX_LETTERS:
        raise InvalidParams(f"graph: has {len(text):,} characters, at most {MAX_LETTERS:,} are read", hint="split it")
    try:
        found: Any = json.loads(text or "{}")
    except (ValueError, RecursionError) as error:
        raise InvalidParams(f"graph: is not JSON: {error}", hint='write {"nodes": […], "edges": […]}') from None
    given = cast(Json, found) if isinstance(found, dict) else {}
    nodes, edges = given.get("nodes"), given.get("edges", [])
    if not _objects(nodes) or not _objects(edges):
        raise InvalidParams("graph: needs lists of nodes and edges", hint='write {"nodes": […], "edges": […]}')
    return {"nodes": nodes, "edges": edges}


def _objects(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(each, dict) for each in cast("list[Any]", value))


def listed(draft: Json) -> tuple[list[dict[str, str]], list[dict[str, str]]]:
    """The nodes and edges as lists show them, whatever somebody wrote into the JSON."""
    nodes = [{name: str(node.get(name) or "") for name in ("id", "type", "label")} for node in draft["nodes"]]
    ends = ("id", "sourceNodeId", "targetNodeId", "condition")
    return nodes, [{name: str(edge.get(name) or "") for name in ends} for edge in draft["edges"]]


def as_text(draft: Json) -> str:
    """The draft as the form carries it. What would not be seen is spelled out as JSON does it."""
    told = json.dumps(draft, indent=1, ensure_ascii=False)
    return "".join(sign if sign.isprintable() or sign == "\n" else json.dumps(sign)[1:-1] for sign in told)


def add_node(draft: Json, kind: str, label: str, after: str) -> str:
    """Add a node, behind another one if `after` names it; its id."""
    if kind not in NODE_TYPES:
        raise InvalidParams(f"kind: there is no {kind[:40]}", hint=f"kinds are {', '.join(NODE_TYPES)}")
    if len(draft["nodes"]) >= MAX_NODES:
        raise InvalidParams(f"a workflow has at most {MAX_NODES} nodes", hint="split it into several")
    node_id = _new_id(label or kind, {str(node.get("id")) for node in draft["nodes"]})
    draft["nodes"].append({"id": node_id, "type": kind, "label": label or kind.replace("_", " "), "config": {}})
    if after:
        _insert(draft, after, node_id, ends=kind == "end")
    return node_id


def _insert(draft: Json, after: str, node_id: str, *, ends: bool) -> None:
    """Let the only way out of a plain node go through the new one; else it is one more way out."""
    source = find_node(draft, after)
    ways = [edge for edge in draft["edges"] if edge.get("sourceNodeId") == after]
    if len(ways) == 1 and not ends and source is not None and source.get("type") not in ("condition", "parallel"):
        target = ways[0]["targetNodeId"]
        draft["edges"].remove(ways[0])
        connect(draft, after, node_id, "")
        connect(draft, node_id, target, "")
    else:
        connect(draft, after, node_id, "")


def connect(draft: Json, source: str, target: str, condition: str) -> None:
    """Draw an edge between two nodes that are there."""
    if find_node(draft, source) is None or find_node(draft, target) is None:
        raise InvalidParams("connect: choose two nodes that are there", hint="add the node first")
    if source == target:
        raise InvalidParams("connect: a node cannot lead to itself", hint="choose two different nodes")
    if len(draft["edges"]) >= MAX_EDGES:
        raise InvalidParams(f"a workflow has at most {MAX_EDGES} edges", hint="split it into several")
    same = (edge for edge in draft["edges"] if (edge.get("sourceNodeId"), edge.get("targetNodeId")) == (source, target))
    if any(edge.get("condition") in (None, condition or None) for edge in same):
        raise InvalidParams(f"connect: {source} leads to {target} already", hint="remove that edge first")
    edge_id = _new_id(f"{source}-{target}", {str(edge.get("id")) for edge in draft["edges"]})
    more = {"condition": condition} if condition else {}
    draft["edges"].append({"id": edge_id, "sourceNodeId": source, "targetNodeId": target, **more})


def remove_node(draft: Json, node_id: str) -> None:
    """Take a node away with its edges."""
    draft["nodes"] = [node for node in draft["nodes"] if node.get("id") != node_id]
    ends = ("sourceNodeId", "targetNodeId")
    draft["edges"] = [edge for edge in draft["edges"] if node_id not in (edge.get(end) for end in ends)]


def remove_edge(draft: Json, edge_id: str) -> None:
    draft["edges"] = [edge for edge in draft["edges"] if edge.get("id") != edge_id]


def find_node(draft: Json, node_id: str) -> Json | None:
    return next((node for node in draft["nodes"] if node.get("id") == node_id), None)


def config_fields(node: Json) -> list[ConfigField]:
    """What a form asks for a node of this type, with what it has."""
    model = CONFIGS.get(str(node.get("type")))
    config = node.get("config")
    given = cast(Json, config) if isinstance(config, dict) else {}
    if model is None:
        return []
    return [
        ConfigField(
            name=(name := str(field.alias)),
            label=_LABELS.get(name, (name, ""))[0],
            hint=_LABELS.get(name, (name, ""))[1],
            shape=(shape := _shape(name, field.annotation)),
            value=_value(shape, given.get(name, None if field.is_required() else field.default)),
            needed=field.is_required(),
        )
        for field in model.model_fields.values()
    ]


def _value(shape: str, value: Any) -> Any:
    return editable(str(value or "")) if shape == "long" else value


def _shape(name: str, annotation: Any) -> str:
    if name in _LONG:
        return "long"
    told = str(annotation)
    return "check" if "bool" in told else "number" if "int" in told else "text"


def change_node(draft: Json, node_id: str, label: str, given: Mapping[str, str]) -> None:
    """Give a node another label and settings; `given` has what the form sent, by the names of the settings."""
    node = find_node(draft, node_id)
    if node is None:
        raise InvalidParams(f"there is no node {node_id[:64]}", hint="choose one of the list")
    config: Json = {}
    for field in config_fields(node):
        value = given.get(field.name, "").strip()
        if field.shape == "check":
            config |= {field.name: True} if value else {}
        elif value:
            config[field.name] = int(value) if field.shape == "number" and re.fullmatch(r"-?\d{1,12}", value) else value
    node["label"], node["config"] = label, config


def _new_id(text: str, taken: set[str]) -> str:
    """An id of the words of a text that no other has."""
    plain = re.sub(r"[^A-Za-z0-9]+", "-", text).strip("-").lower()[:48] or "node"
    tried = (plain if number == 1 else f"{plain}-{number}" for number in range(1, MAX_EDGES + 2))
    return next(each for each in tried if each not in taken and ID.fullmatch(each))

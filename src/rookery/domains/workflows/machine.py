"""What a run does next: a pure function of the graph and of what its nodes have come to so far.

A node is settled when it is completed, failed or skipped, and decided when all edges into it come from settled nodes.
An edge is live if its source completed and, if the edge asks for an answer of a condition node, that was the answer. A
node runs if any edge into it is live. A join also needs that no branch into it was lost: a branch that was not taken
does not hold it up, one that failed does, whether the failed node is next to the join or further back. What does not
run is skipped. So the end of a run depends on what its nodes gave, never on when.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, cast

from rookery.domains.workflows.condition import parse
from rookery.domains.workflows.graph import Edge, Graph, Node, in_order, incoming
from rookery.domains.workflows.node_config import (
    AgentSessionConfig,
    ConditionConfig,
    TransformConfig,
    WorkTaskConfig,
)
from rookery.domains.workflows.template import MissingPath, TooLong, render

Json = dict[str, Any]

BEGUN: dict[str, str] = {
    "agent_session": "running",
    "work_task": "running",
    "delay": "running",
    "webhook_wait": "waiting",
}
"""The types that somebody else carries out, and the status of such a node meanwhile."""
LIMITED = frozenset({"agent_session", "work_task"})
"""The types that `max_concurrency` is about."""
SETTLED = frozenset({"completed", "failed", "skipped"})


@dataclass(frozen=True, slots=True)
class NodeState:
    """What one node of a run has come to: pending, running, waiting, completed, failed or skipped."""

    status: str = "pending"
    input: Json | None = None
    output: Json | None = None
    error: str | None = None


@dataclass(frozen=True, slots=True)
class Advance:
    """One step of a run.

    `changed` are the new states of nodes, those of `begin` among them; `begin` are the nodes to carry out now; and
    `finished` is how the run ended: status, output and error, or None while it goes on.
    """

    changed: dict[str, NodeState] = field(default_factory=dict[str, NodeState])
    begin: list[str] = field(default_factory=list[str])
    finished: tuple[str, Json, str | None] | None = None


def advance(graph: Graph, states: Mapping[str, NodeState], run_input: Json, max_concurrency: int) -> Advance:
    """Everything that can be said of the run now. A node that `states` lacks is pending.

    Asking again with `changed` taken in changes nothing more. The graph has passed `check_graph`.
    """
    into = incoming(graph)
    order = in_order(graph)
    now = {node.id: states.get(node.id) or NodeState() for node in order}
    lost: set[str] = set()
    step = Advance()
    # A run that may do nothing would never end.
    room = max(1, max_concurrency) - sum(node.type in LIMITED and now[node.id].status == "running" for node in order)
    for node in order:
        edges = into[node.id]
        if now[node.id].status == "pending" and all(now[edge.source].status in SETTLED for edge in edges):
            state = _decided(node, edges, now, lost, run_input)
            if state.status == "running" and node.type in LIMITED:
                if room <= 0:
                    continue
                room -= 1
            now[node.id] = step.changed[node.id] = state
            if state.status not in SETTLED:
                step.begin.append(node.id)
        if now[node.id].status == "failed" or (
            now[node.id].status == "skipped" and any(edge.source in lost for edge in edges)
        ):
            lost.add(node.id)
    return Advance(step.changed, step.begin, _finished(order, now))


def text_of(node: Node, node_input: Json) -> str:
    """The prompt or description of an agent_session or work_task node, filled in. MissingPath names what is missing."""
    settings = node.settings()
    if isinstance(settings, AgentSessionConfig):
        return render(settings.prompt, node_input)
    return render(cast(WorkTaskConfig, settings).description, node_input)


def is_live(edge: Edge, source: NodeState) -> bool:
    """Whether the run goes along the edge. One that asks for an answer leaves a condition node."""
    if source.status != "completed" or edge.condition is None:
        return source.status == "completed"
    return edge.condition == ("true" if (source.output or {}).get("conditionResult") else "false")


def input_of(edges: list[Edge], states: Mapping[str, NodeState], run_input: Json) -> Json:
    """What a node is given: the run's input, overlaid by what its completed sources were given, then by their outputs.

    Both in the order of the edges, so what stood before a condition or a delay can be asked for behind it. `prev` is
    the output of the last of them.
    """
    done = [state for edge in edges if (state := states[edge.source]).status == "completed"]
    given: Json = dict(run_input)
    for state in done:
        given |= state.input or {}
    for state in done:
        given |= state.output or {}
    if done:
        given["prev"] = done[-1].output or {}
    return given


def _decided(
    node: Node,
    edges: list[Edge],
    now: Mapping[str, NodeState],
    lost: set[str],
    run_input: Json,
) -> NodeState:
    """The state of a pending node all of whose sources are settled."""
    runs = node.type == "start" or any(is_live(edge, now[edge.source]) for edge in edges)
    if not runs or (node.type == "join" and any(edge.source in lost for edge in edges)):
        return NodeState("skipped")
    given = input_of(edges, now, run_input)
    try:
        if node.type in LIMITED:
            # Nobody need be asked to carry out what cannot be told to them.
            text_of(node, given)
        if node.type in BEGUN:
            return NodeState(BEGUN[node.type], given)
        return NodeState("completed", given, _output(node, given))
    except (MissingPath, TooLong) as missing:
        return NodeState("failed", given, error=str(missing))


def _output(node: Node, given: Json) -> Json:
    """What a node gives that needs nobody else."""
    settings = node.settings()
    if isinstance(settings, ConditionConfig):
        return {"conditionResult": parse(settings.expression).holds(given)}
    # `prev` is about the node that reads it; handed on it would grow with every node.
    passed = {name: value for name, value in given.items() if name != "prev"}
    if isinstance(settings, TransformConfig):
        return {**passed, "transformed": render(settings.template, given)}
    return {**passed, "completed": True} if node.type == "end" else passed


def _finished(order: list[Node], now: Mapping[str, NodeState]) -> tuple[str, Json, str | None] | None:
    if any(state.status not in SETTLED for state in now.values()):
        return None
    output: Json = {}
    for node in order:
        if now[node.id].status == "completed":
            output |= now[node.id].output or {}
    failed = next((node for node in order if now[node.id].status == "failed"), None)
    if failed is None:
        return "completed", output, None
    return "failed", output, f'node "{failed.name}" failed: {now[failed.id].error or "no reason was given"}'

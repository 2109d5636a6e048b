"""What a workflow is: nodes and edges, and whether they make a graph that can run."""

import heapq
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from rookery.core.errors import ValidationFailed
from rookery.domains.workflows.node_config import CONFIGS, NodeConfig, config_faults
from rookery.domains.workflows.template import cut

NODE_TYPES: tuple[str, ...] = tuple(CONFIGS)
MAX_NODES = 100
MAX_EDGES = 1_000
MAX_LABEL = 200
MAX_FAULTS = 30
# An id is a part of an address and of a job's key.
ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")


def _truth_as_text(value: Any) -> Any:
    """Callers write true as well as "true", and "" for no condition."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return None if value == "" else value


class Position(BaseModel):
    """Where an editor shows the node. It means nothing to a run."""

    x: float = Field(allow_inf_nan=False)
    y: float = Field(allow_inf_nan=False)


class Node(BaseModel):
    """One step. `config` depends on the type, see node_config.py."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    id: str
    type: str = Field(json_schema_extra={"enum": list(NODE_TYPES)})
    label: str = ""
    config: dict[str, Any] = Field(default_factory=dict)
    position: Position | None = None

    @property
    def name(self) -> str:
        """What people call it: its label, or its id if it has none."""
        return self.label or self.id

    def settings(self) -> NodeConfig:
        """The config with its defaults, as the model of the node's type. The graph has passed `check_graph`."""
        return CONFIGS[self.type].model_validate(self.config)


class Edge(BaseModel):
    """A way from one node to another. One that leaves a condition node may ask for its answer."""

    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True, serialize_by_alias=True)

    id: str
    source: str = Field(alias="sourceNodeId")
    target: str = Field(alias="targetNodeId")
    condition: Annotated[str | None, BeforeValidator(_truth_as_text)] = None
    label: str | None = None


class Graph(BaseModel):
    """Nodes and edges as they were given. `model_dump(mode="json")` is what a run keeps as its snapshot."""

    model_config = ConfigDict(frozen=True)

    nodes: list[Node]
    edges: list[Edge] = Field(default_factory=list[Edge])

    def node(self, node_id: str) -> Node:
        """The node of this id; KeyError if there is none."""
        for node in self.nodes:
            if node.id == node_id:
                return node
        raise KeyError(node_id)


def incoming(graph: Graph) -> dict[str, list[Edge]]:
    """The edges into each node, in the order of the graph's edges."""
    found: dict[str, list[Edge]] = {node.id: [] for node in graph.nodes}
    for edge in graph.edges:
        found[edge.target].append(edge)
    return found


def outgoing(graph: Graph) -> dict[str, list[Edge]]:
    """The edges out of each node, in the order of the graph's edges."""
    found: dict[str, list[Edge]] = {node.id: [] for node in graph.nodes}
    for edge in graph.edges:
        found[edge.source].append(edge)
    return found


def in_order(graph: Graph) -> list[Node]:
    """The nodes so that each stands behind all its sources; of those that could be next, the first given.

    Nodes on a cycle and behind one are left out.
    """
    place = {node.id: index for index, node in enumerate(graph.nodes)}
    sources = {target: len(edges) for target, edges in incoming(graph).items()}
    ways = outgoing(graph)
    ready = [place[node.id] for node in graph.nodes if not sources[node.id]]
    ordered: list[Node] = []
    while ready:
        node = graph.nodes[heapq.heappop(ready)]
        ordered.append(node)
        for edge in ways[node.id]:
            sources[edge.target] -= 1
            if not sources[edge.target]:
                heapq.heappush(ready, place[edge.target])
    return ordered


def check_graph(graph: Graph) -> None:
    """Refuse a graph that cannot run, with all its faults in one message. Costs no more than reading it twice."""
    if not graph.nodes:
        raise ValidationFailed("the workflow has no nodes", hint="give at least one node of type start")
    if len(graph.nodes) > MAX_NODES or len(graph.edges) > MAX_EDGES:
        raise ValidationFailed(
            f"the workflow has {len(graph.nodes)} nodes and {len(graph.edges)} edges;"
            f" at most {MAX_NODES} and {MAX_EDGES} are allowed",
            hint="split it into several workflows",
        )
    # What an edge means can be asked only once every name stands for one node.
    faults = [*_nodes(graph.nodes), *_names(graph)] or [*_shape(graph), *_paths(graph)]
    if faults:
        shown = "; ".join(faults[:MAX_FAULTS]) + (f"; and {len(faults) - MAX_FAULTS} more" * (len(faults) > MAX_FAULTS))
        raise ValidationFailed(f"the workflow cannot run: {shown}", hint="mend the nodes and edges named")


def _called(node: Node) -> str:
    return f"{node.type} node {cut(node.id)!r}"


def _nodes(nodes: Sequence[Node]) -> Iterator[str]:
    for node in nodes:
        if not ID.fullmatch(node.id):
            yield f"node id {cut(node.id)!r} is not 1 to 64 letters, digits, _ . or -, starting with a letter or digit"
        if len(node.label) > MAX_LABEL:
            yield f"the label of node {cut(node.id)!r} is longer than {MAX_LABEL} characters"
        if node.type not in CONFIGS:
            yield f"node {cut(node.id)!r} has the unknown type {cut(node.type)!r}; types are {', '.join(NODE_TYPES)}"
        else:
            yield from (f"{_called(node)} {fault}" for fault in config_faults(node.type, node.config))
    if not any(node.type == "start" for node in nodes):
        yield "there is no start node"


def _names(graph: Graph) -> Iterator[str]:
    yield from (f"there are two nodes {cut(each)!r}" for each in _twice(node.id for node in graph.nodes))
    yield from (f"there are two edges {cut(each)!r}" for each in _twice(edge.id for edge in graph.edges))
    known = {node.id for node in graph.nodes}
    for edge in graph.edges:
        if edge.source not in known:
            yield f"edge {cut(edge.id)!r} comes from the missing node {cut(edge.source)!r}"
        if edge.target not in known:
            yield f"edge {cut(edge.id)!r} leads to the missing node {cut(edge.target)!r}"


def _twice(names: Iterable[str]) -> list[str]:
    seen: set[str] = set()
    again: dict[str, None] = {}
    for name in names:
        if name in seen:
            again[name] = None
        seen.add(name)
    return list(again)


def _shape(graph: Graph) -> Iterator[str]:
    """Faults of single nodes and edges."""
    into, out = incoming(graph), outgoing(graph)
    for node in graph.nodes:
        ways_in = len({edge.source for edge in into[node.id]})
        ways_out = len({edge.target for edge in out[node.id]})
        if node.type == "start" and ways_in:
            yield f"{_called(node)} has an edge into it"
        if node.type == "end" and ways_out:
            yield f"{_called(node)} has an edge out of it"
        if node.type == "join" and ways_in < 2:
            yield f"{_called(node)} joins {ways_in} node(s) and needs edges from at least two"
        if node.type == "condition" and not ways_out:
            yield f"{_called(node)} has no edge out of it"
        if node.type == "parallel":
            yield from _branches(node, ways_out)
        for edge in out[node.id]:
            if edge.condition is not None and node.type != "condition":
                yield f"edge {cut(edge.id)!r} has a condition, but {_called(node)} is not a condition node"
            elif edge.condition not in (None, "true", "false"):
                yield f"edge {cut(edge.id)!r} has the condition {cut(edge.condition)!r}; it can be true or false"


def _branches(node: Node, ways_out: int) -> Iterator[str]:
    told = node.config.get("branchCount")
    if ways_out < 2:
        yield f"{_called(node)} leads to {ways_out} node(s) and needs edges to at least two"
    elif told is not None and told != ways_out:
        yield f"{_called(node)} says {told} branches and leads to {ways_out} nodes"


def _paths(graph: Graph) -> Iterator[str]:
    """Faults of the graph as a whole: a cycle, and nodes that no start node leads to."""
    if cycle := _cycle(graph):
        yield f"there is a cycle: {' → '.join(cycle)}"
    out = outgoing(graph)
    reached = {node.id for node in graph.nodes if node.type == "start"}
    walk = list(reached)
    while walk:
        for edge in out[walk.pop()]:
            if edge.target not in reached:
                reached.add(edge.target)
                walk.append(edge.target)
    for node in graph.nodes:
        if node.id not in reached:
            yield f"{_called(node)} cannot be reached from a start node"


def _cycle(graph: Graph) -> list[str]:
    """The ids along one cycle, the first again at the end; empty if there is none."""
    ordered = {node.id for node in in_order(graph)}
    into = incoming(graph)
    left = [node.id for node in graph.nodes if node.id not in ordered]
    if not left:
        return []
    # What is left has a source that is left too, so going back must come to a node again.
    path = [left[0]]
    while path.count(path[-1]) < 2:
        path.append(next(edge.source for edge in into[path[-1]] if edge.source not in ordered))
    loop = path[path.index(path[-1]) :]
    return loop[::-1]

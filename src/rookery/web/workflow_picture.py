"""A graph as a template draws it: boxes and lines with their places, whatever state the graph is in."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError

from rookery.core.errors import RookeryError
from rookery.domains.workflows.graph import Edge, Graph, Node, check_graph
from rookery.domains.workflows.layout import BOX_HEIGHT, BOX_WIDTH, lay_out
from rookery.domains.workflows.picture import ROUND, curve, plain, shortened

STATES = ("pending", "running", "waiting", "completed", "failed", "skipped")
"""In the order of the legend."""


@dataclass(frozen=True, slots=True)
class Box:
    """One node: its place, its label and what it has come to; `state` is empty in a picture of no run."""

    id: str
    type: str
    name: str
    short: str
    state: str
    x: float
    y: float
    round: int
    width: int = BOX_WIDTH
    height: int = BOX_HEIGHT


@dataclass(frozen=True, slots=True)
class Line:
    """One edge: the way it goes, its tip, and what stands beside it. `taken`: both ends have been reached.

    The tip is no marker, which would need an id: what has one cannot be changed in place within an SVG.
    """

    path: str
    tip: str
    label: str
    x: float
    y: float
    taken: bool


@dataclass(frozen=True, slots=True)
class Picture:
    width: int
    height: int
    boxes: Sequence[Box]
    lines: Sequence[Line]


def read_graph(nodes: Any, edges: Any) -> tuple[Graph | None, str]:
    """The graph, as far as it has the right shape, and what keeps it from running; empty if nothing does."""
    try:
        graph = Graph.model_validate({"nodes": nodes, "edges": edges})
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False, include_context=False)[0]
        return None, f"{'.'.join(str(part) for part in first['loc'])}: {first['msg']}"
    try:
        check_graph(graph)
    except RookeryError as error:
        return graph, error.message
    return graph, ""


def draw(graph: Graph, states: Mapping[str, str] | None = None) -> Picture | None:
    """The picture of a graph, with the states of a run if there is one; None if there is nothing to draw.

    Of a graph that cannot run, edges that lead nowhere or back are left out.
    """
    whole = _drawable(graph)
    if not whole.nodes:
        return None
    layout = lay_out(whole)
    known = states or {}
    boxes = [_box(node, layout.boxes[node.id], known.get(node.id, "pending" if states else "")) for node in whole.nodes]
    lines = [_line(edge, way, known) for edge, way in zip(whole.edges, layout.ways, strict=True)]
    return Picture(layout.width, layout.height, boxes, lines)


def _box(node: Node, corner: tuple[float, float], state: str) -> Box:
    name = plain(node.name)
    known = state if state in STATES or not state else "pending"
    return Box(node.id, node.type, name, shortened(name), known, *corner, ROUND.get(node.type, 6))


def _line(edge: Edge, way: list[tuple[float, float]], states: Mapping[str, str]) -> Line:
    (x1, y1), (x2, y2), (x, y) = way[0], way[1], way[-1]
    reached = ("running", "waiting", "completed", "failed")
    taken = states.get(edge.source) == "completed" and states.get(edge.target) in reached
    tip = f"M {x - 4.5} {y - 9} L {x + 4.5} {y - 9} L {x} {y} z"
    label = shortened(plain(edge.label or edge.condition or ""))
    return Line(curve(way), tip, label, (x1 + x2) / 2, (y1 + y2) / 2, taken)


def _drawable(graph: Graph) -> Graph:
    nodes = list({node.id: node for node in graph.nodes}.values())
    after: dict[str, set[str]] = {node.id: set() for node in nodes}
    edges: list[Edge] = []
    for edge in graph.edges:
        known = edge.source in after and edge.target in after
        if known and not _leads(after, edge.target, edge.source):
            after[edge.source].add(edge.target)
            edges.append(edge)
    return Graph(nodes=nodes, edges=edges)


def _leads(after: Mapping[str, set[str]], start: str, goal: str) -> bool:
    seen, walk = {start}, [start]
    while walk:
        here = walk.pop()
        if here == goal:
            return True
        fresh = after[here] - seen
        seen |= fresh
        walk += fresh
    return False

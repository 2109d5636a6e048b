"""Where the boxes and lines of a graph go: layers from top to bottom, no box on another, lines around boxes."""

import unicodedata
from dataclasses import dataclass
from itertools import pairwise

from rookery.domains.workflows.graph import Graph, in_order, incoming

BOX_WIDTH, BOX_HEIGHT = 200, 52
GAP_X, GAP_Y, MARGIN = 28, 48, 20
LINE_WIDTH = 16

Point = tuple[float, float]
# A node by its id, or the place where the edge of this number crosses a layer.
Item = str | tuple[int, int]


@dataclass(frozen=True, slots=True)
class Layout:
    """The size of the picture, the upper left corner of every node's box, and the points of every edge in order."""

    width: int
    height: int
    boxes: dict[str, Point]
    ways: list[list[Point]]


def lay_out(graph: Graph) -> Layout:
    """Place a graph that has passed `check_graph`. The same graph is always placed the same way."""
    depth = _depths(graph)
    layers: list[list[Item]] = [[] for _ in range(max(depth.values()) + 1)]
    for node in in_order(graph):
        layers[depth[node.id]].append(node.id)
    for number, edge in enumerate(graph.edges):
        for layer in range(depth[edge.source] + 1, depth[edge.target]):
            layers[layer].append((number, layer))
    _untangle(layers, graph, depth)
    width = max(_extent(layer) for layer in layers) + 2 * MARGIN
    centres: dict[Item, Point] = {}
    for row, layer in enumerate(layers):
        x = (width - _extent(layer)) / 2
        y = MARGIN + row * (BOX_HEIGHT + GAP_Y) + BOX_HEIGHT / 2
        for item in layer:
            centres[item] = (x + _size(item) / 2, y)
            x += _size(item) + GAP_X
    boxes = {node.id: _corner(centres[node.id]) for node in graph.nodes}
    ways = [_way(number, graph, depth, centres) for number in range(len(graph.edges))]
    return Layout(int(width), 2 * MARGIN + len(layers) * (BOX_HEIGHT + GAP_Y) - GAP_Y, boxes, ways)


def width_of(text: str) -> int:
    """How many columns the text takes: wide signs take two, those that combine with the one before none."""
    return sum(
        0 if unicodedata.combining(sign) else 2 if unicodedata.east_asian_width(sign) in "WF" else 1 for sign in text
    )


def _depths(graph: Graph) -> dict[str, int]:
    """The layer of each node: one below the lowest of its sources."""
    into = incoming(graph)
    depth: dict[str, int] = {}
    for node in in_order(graph):
        depth[node.id] = max((depth[edge.source] + 1 for edge in into[node.id]), default=0)
    return depth


def _untangle(layers: list[list[Item]], graph: Graph, depth: dict[str, int]) -> None:
    """Put each item of a layer below the middle of what leads to it, so that few lines cross."""
    above: dict[Item, list[Item]] = {}
    for number in range(len(graph.edges)):
        for upper, lower in pairwise(_chain(number, graph, depth)):
            above.setdefault(lower, []).append(upper)
    for row in range(1, len(layers)):
        place = {item: index / len(layers[row - 1]) for index, item in enumerate(layers[row - 1])}
        middle = {
            item: sum(place[upper] for upper in above[item]) / len(above[item]) if item in above else 0.0
            for item in layers[row]
        }
        layers[row].sort(key=lambda item: middle[item])


def _chain(number: int, graph: Graph, depth: dict[str, int]) -> list[Item]:
    """What an edge goes through, its ends included, one item a layer."""
    edge = graph.edges[number]
    return [edge.source, *((number, row) for row in range(depth[edge.source] + 1, depth[edge.target])), edge.target]


def _way(number: int, graph: Graph, depth: dict[str, int], centres: dict[Item, Point]) -> list[Point]:
    points: list[Point] = []
    for item in _chain(number, graph, depth):
        x, y = centres[item]
        # Between two boxes of a layer a line goes straight down past both.
        points += [(x, y - BOX_HEIGHT / 2), (x, y + BOX_HEIGHT / 2)]
    return points[1:-1]


def _size(item: Item) -> int:
    return BOX_WIDTH if isinstance(item, str) else LINE_WIDTH


def _extent(layer: list[Item]) -> int:
    return sum(_size(item) for item in layer) + GAP_X * (len(layer) - 1)


def _corner(centre: Point) -> Point:
    return centre[0] - BOX_WIDTH / 2, centre[1] - BOX_HEIGHT / 2

"""A workflow or one of its runs as a picture: Mermaid for documents and chats, SVG for everything else.

Labels are other people's text: in neither picture can they become anything but text.
"""

import re
from collections.abc import Mapping
from itertools import pairwise
from xml.sax.saxutils import escape

from rookery.domains.workflows.graph import Graph, Node, in_order
from rookery.domains.workflows.layout import BOX_HEIGHT, BOX_WIDTH, Layout, Point, lay_out, width_of
from rookery.domains.workflows.machine import NodeState

# Fill and stroke. The status is written too: nobody has to tell colours apart.
COLOURS: dict[str, tuple[str, str]] = {
    "pending": ("#f6f8fa", "#8c959f"),
    "running": ("#ddf4ff", "#0969da"),
    "waiting": ("#fff8c5", "#9a6700"),
    "completed": ("#dafbe1", "#1a7f37"),
    "failed": ("#ffebe9", "#cf222e"),
    "skipped": ("#eaeef2", "#afb8c1"),
}
SHAPES: dict[str, tuple[str, str]] = {
    "start": ('(["', '"])'),
    "end": ('(["', '"])'),
    "condition": ('{"', '"}'),
    "parallel": ('{{"', '"}}'),
    "join": ('{{"', '"}}'),
    "delay": ('("', '")'),
    "webhook_wait": ('("', '")'),
}
ROUND = {"start": 26, "end": 26, "delay": 14, "webhook_wait": 14}
STYLE = (
    "<style>text{font:13px sans-serif;text-anchor:middle;fill:#1f2328}.under,.way{font-size:11px;fill:#57606a}"
    ".way{stroke:#ffffff;stroke-width:4px;paint-order:stroke}</style>"
)
LABEL_WIDTH = 24
NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def mermaid(graph: Graph, states: Mapping[str, NodeState]) -> str:
    """A Mermaid flowchart. With no states it shows the workflow alone, else every node has a class for its status."""
    # A node may be called "end", which means something to Mermaid, so nodes are numbered.
    number = {node.id: f"n{index}" for index, node in enumerate(graph.nodes)}
    lines = ["flowchart TD"]
    for node in graph.nodes:
        opened, closed = SHAPES.get(node.type, ('["', '"]'))
        status = _status(node, states)
        under = node.type if status is None else f"{node.type} · {status}"
        mark = "" if status is None else f":::{status}"
        lines.append(f"    {number[node.id]}{opened}{_entities(node.name)}<br/>{under}{closed}{mark}")
    for edge in graph.edges:
        label = edge.label or edge.condition
        arrow = f'-->|"{_entities(label)}"|' if label else "-->"
        lines.append(f"    {number[edge.source]} {arrow} {number[edge.target]}")
    for status in dict.fromkeys(filter(None, (_status(node, states) for node in graph.nodes))):
        fill, stroke = COLOURS[status]
        lines.append(f"    classDef {status} fill:{fill},stroke:{stroke},color:#1f2328")
    return "\n".join(lines) + "\n"


def svg(graph: Graph, states: Mapping[str, NodeState]) -> str:
    """An SVG document of the same, laid out from top to bottom, that needs nothing else to be shown."""
    layout = lay_out(graph)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {layout.width} {layout.height}"'
        f' width="{layout.width}" height="{layout.height}">',
        STYLE,
        '<defs><marker id="tip" viewBox="0 0 10 10" refX="9" refY="5" markerWidth="7" markerHeight="7" orient="auto">'
        '<path d="M 0 0 L 10 5 L 0 10 z" fill="#57606a"/></marker></defs>',
        f'<rect width="{layout.width}" height="{layout.height}" fill="#ffffff"/>',
        *_edges(graph, layout),
        *(_box(node, layout.boxes[node.id], _status(node, states)) for node in in_order(graph)),
        "</svg>",
    ]
    return "\n".join(parts) + "\n"


def _status(node: Node, states: Mapping[str, NodeState]) -> str | None:
    """The node's status, or None if this is a picture of no run."""
    if not states:
        return None
    status = states[node.id].status if node.id in states else "pending"
    return status if status in COLOURS else "pending"


def plain(text: str) -> str:
    """The text on one line, without what XML cannot hold."""
    return " ".join(NOT_XML.sub("", text).split())


def _entities(text: str) -> str:
    """The text with everything that Mermaid could take for its own written as a number."""
    return "".join(sign if sign.isalnum() or sign in " .,_-" else f"#{ord(sign)};" for sign in plain(text))


def shortened(text: str) -> str:
    """As much of a label as fits into a box."""
    kept = text
    while width_of(kept) > LABEL_WIDTH:
        kept = kept[:-1]
    return text if kept == text else f"{kept[:-1].rstrip()}…"


def _edges(graph: Graph, layout: Layout) -> list[str]:
    parts: list[str] = []
    for edge, points in zip(graph.edges, layout.ways, strict=True):
        parts.append(f'<path d="{curve(points)}" fill="none" stroke="#57606a" marker-end="url(#tip)"/>')
        if label := plain(edge.label or edge.condition or ""):
            (x1, y1), (x2, y2) = points[0], points[1]
            parts.append(_text((x1 + x2) / 2, (y1 + y2) / 2, "way", shortened(label)))
    return parts


def curve(points: list[Point]) -> str:
    """A line that leaves and enters every point straight down."""
    steps = [f"M {points[0][0]} {points[0][1]}"]
    for (x1, y1), (x2, y2) in pairwise(points):
        middle = (y1 + y2) / 2
        steps.append(f"C {x1} {middle} {x2} {middle} {x2} {y2}")
    return " ".join(steps)


def _box(node: Node, corner: Point, status: str | None) -> str:
    x, y = corner
    fill, stroke = COLOURS[status or "pending"]
    name = plain(node.name)
    under = node.type if status is None else f"{node.type} · {status}"
    edge = ' stroke-dasharray="4 3"' if status == "skipped" else ""
    return (
        f'<g class="{status or "node"}"><title>{escape(name)}</title>'
        f'<rect x="{x}" y="{y}" width="{BOX_WIDTH}" height="{BOX_HEIGHT}" rx="{ROUND.get(node.type, 6)}"'
        f' fill="{fill}" stroke="{stroke}" stroke-width="1.5"{edge}/>'
        f"{_text(x + BOX_WIDTH / 2, y + 22, 'name', shortened(name))}"
        f"{_text(x + BOX_WIDTH / 2, y + 40, 'under', under)}</g>"
    )


def _text(x: float, y: float, kind: str, text: str) -> str:
    return f'<text class="{kind}" x="{x}" y="{y}">{escape(text)}</text>'

"""Pictures: whatever a label says, the Mermaid stays a flowchart and the SVG stays XML, and no box covers another."""

import re
from itertools import combinations, pairwise
from typing import Any
from xml.etree import ElementTree

from hypothesis import given
from hypothesis import strategies as st

from rookery.domains.workflows.graph import Graph
from rookery.domains.workflows.layout import BOX_HEIGHT, BOX_WIDTH, lay_out
from rookery.domains.workflows.machine import NodeState
from rookery.domains.workflows.picture import COLOURS, mermaid, svg
from tests.domains.workflows.drawing import draw, graphs

SVG = "{http://www.w3.org/2000/svg}"
NASTY = '"]; click n0 "javascript:alert(1)" <script>&amp; `x` #quot; %%{init}%%\n    n9 --> n0 \x00\ud800'


def labelled(label: str) -> Graph:
    plain = draw("s>c c>e:true", s="start", c="condition", e="end").model_dump()
    for part in (*plain["nodes"], *plain["edges"]):
        part["label"] = label
    return Graph.model_validate(plain)


def texts(document: str) -> list[str]:
    return [each.text or "" for each in ElementTree.fromstring(document).iter(f"{SVG}text")]


def test_a_run_is_drawn_with_a_class_for_every_status() -> None:
    graph = draw("s>c c>a:true c>end:false", s="start", c="condition", a="delay", end="end")
    states = {"s": NodeState("completed"), "c": NodeState("failed")}
    assert mermaid(graph, states).splitlines() == [
        "flowchart TD",
        '    n0(["S<br/>start · completed"]):::completed',
        '    n1{"C<br/>condition · failed"}:::failed',
        '    n2("A<br/>delay · pending"):::pending',
        '    n3(["END<br/>end · pending"]):::pending',
        "    n0 --> n1",
        '    n1 -->|"true"| n2',
        '    n1 -->|"false"| n3',
        "    classDef completed fill:#dafbe1,stroke:#1a7f37,color:#1f2328",
        "    classDef failed fill:#ffebe9,stroke:#cf222e,color:#1f2328",
        "    classDef pending fill:#f6f8fa,stroke:#8c959f,color:#1f2328",
    ]
    drawn = ElementTree.fromstring(svg(graph, states))
    assert [each.get("class") for each in drawn.iter(f"{SVG}g")] == ["completed", "failed", "pending", "pending"]


def test_a_workflow_that_does_not_run_is_drawn_without_statuses() -> None:
    graph = draw("s>e", s="start", e="end")
    assert "class" not in mermaid(graph, {})
    assert texts(svg(graph, {})) == ["S", "start", "E", "end"]


def test_a_label_cannot_become_anything_but_text() -> None:
    graph = labelled(NASTY)
    lines = mermaid(graph, {}).splitlines()
    assert len(lines) == 6
    for line in lines[1:]:
        inside = re.search(r'"(.*)"', line)
        assert inside
        assert re.fullmatch(r"[\w .,#;<>/-]*", inside[1].replace("<br/>", ""))
        assert "<" not in inside[1].replace("<br/>", "")
    drawn = ElementTree.fromstring(svg(graph, {}))
    assert {each.tag for each in drawn.iter()} <= {
        f"{SVG}{tag}" for tag in ("svg", "style", "defs", "marker", "path", "rect", "g", "title", "text")
    }
    assert [each.text for each in drawn.iter(f"{SVG}title")] == [" ".join(NASTY.replace("\x00\ud800", "").split())] * 3


def test_a_long_label_is_cut_and_told_whole_as_the_title() -> None:
    document = svg(labelled("wide 漢字" * 20), {})
    assert texts(document)[0].endswith("…")
    assert ElementTree.fromstring(document).findtext(f".//{SVG}title") == "wide 漢字" * 20


@given(st.text())
def test_any_label_gives_whole_pictures(label: str) -> None:
    graph = labelled(label)
    assert len(mermaid(graph, {}).split("\n")) == 7
    svg(graph, {}).encode()
    assert len(ElementTree.fromstring(svg(graph, {})).findall(f".//{SVG}rect")) == 4


@given(graphs(max_nodes=20), st.lists(st.sampled_from([*COLOURS, "unheard of"]), min_size=20, max_size=20))
def test_boxes_and_lines_keep_clear_of_each_other(graph: Graph, statuses: list[str]) -> None:
    states = {node.id: NodeState(status) for node, status in zip(graph.nodes, statuses, strict=False)}
    drawn = ElementTree.fromstring(svg(graph, states))
    assert len(drawn.findall(f"{SVG}path")) == len(graph.edges)
    layout = lay_out(graph)
    for x, y in layout.boxes.values():
        assert 0 <= x <= layout.width - BOX_WIDTH
        assert 0 <= y <= layout.height - BOX_HEIGHT
    for (x1, y1), (x2, y2) in combinations(layout.boxes.values(), 2):
        assert abs(x1 - x2) >= BOX_WIDTH or abs(y1 - y2) >= BOX_HEIGHT
    for edge, points in zip(graph.edges, layout.ways, strict=True):
        assert points[0] == middle(layout.boxes[edge.source], BOX_HEIGHT)
        assert points[-1] == middle(layout.boxes[edge.target], 0)
        others = [corner for name, corner in layout.boxes.items() if name not in (edge.source, edge.target)]
        assert not any(covers(corner, point) for corner in others for point in points)
        assert all(one[1] <= other[1] for one, other in pairwise(points))


def middle(corner: tuple[float, float], below: int) -> tuple[float, float]:
    return corner[0] + BOX_WIDTH / 2, corner[1] + below


def covers(corner: tuple[float, float], point: tuple[Any, Any]) -> bool:
    return corner[0] < point[0] < corner[0] + BOX_WIDTH and corner[1] <= point[1] <= corner[1] + BOX_HEIGHT

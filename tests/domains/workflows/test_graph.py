"""Graphs: everything that is wrong with one is named, and one that passes can run."""

import re
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given

from rookery.core.errors import ValidationFailed
from rookery.domains.workflows.graph import Graph, check_graph, in_order
from tests.domains.workflows.drawing import draw, edges, graphs, node


def faults(graph: Graph) -> str:
    with pytest.raises(ValidationFailed) as caught:
        check_graph(graph)
    return caught.value.message


def with_config(kind: str, **config: Any) -> Graph:
    """A graph in which only the config of one node can be wrong."""
    written = {"id": "x", "type": kind, "label": "X", "config": config}
    if kind == "start":
        return draw("", written)
    if kind == "join":
        return draw("s>x t>x", written, s="start", t="start")
    return draw("s>x x>e x>f" if kind != "end" else "s>x s>e s>f", written, s="start", e="end", f="end")


def test_a_graph_needs_nodes_and_a_start() -> None:
    assert faults(Graph(nodes=[])) == "the workflow has no nodes"
    assert "there is no start node" in faults(draw("", a="end"))


def test_an_unknown_type_is_named_with_those_there_are() -> None:
    said = faults(draw("s>a", s="start", a="loop"))
    assert "node 'a' has the unknown type 'loop'" in said
    assert "webhook_wait, transform" in said


@pytest.mark.parametrize("name", ["", "a b", "a/b", "a:b", "-a", "x" * 65, "ä"])
def test_an_id_that_cannot_stand_in_an_address_is_refused(name: str) -> None:
    assert "is not 1 to 64 letters" in faults(draw("", node(name, "start")))


def test_ids_are_unique() -> None:
    said = faults(draw("s>a s>a", node("a", "end"), node("a", "end"), s="start"))
    assert "there are two nodes 'a'" in said
    assert "there are two edges 's>a'" in said


def test_an_edge_of_a_missing_node_is_named() -> None:
    said = faults(draw("s>gone lost>s", s="start"))
    assert "edge 's>gone' leads to the missing node 'gone'" in said
    assert "edge 'lost>s' comes from the missing node 'lost'" in said


def test_a_cycle_is_shown_as_its_path() -> None:
    said = faults(draw("s>a a>b b>c c>a c>d", s="start", a="delay", b="delay", c="delay", d="end"))
    cycle = re.search("there is a cycle: (.*)", said)
    assert cycle
    assert cycle[1] in {"a → b → c → a", "b → c → a → b", "c → a → b → c"}


def test_a_node_that_leads_to_itself_is_a_cycle() -> None:
    assert "there is a cycle: a → a" in faults(draw("s>a a>a", s="start", a="delay"))


def test_nodes_that_nothing_leads_to_are_named() -> None:
    said = faults(draw("a>b", s="start", a="delay", b="end"))
    assert "delay node 'a' cannot be reached from a start node" in said
    assert "end node 'b' cannot be reached from a start node" in said


def test_conditions_of_edges_are_true_or_false_and_leave_condition_nodes() -> None:
    said = faults(draw("s>c:true c>a:maybe c>b:false", s="start", c="condition", a="end", b="end"))
    assert "edge 's>c:true' has a condition, but start node 's' is not a condition node" in said
    assert "edge 'c>a:maybe' has the condition 'maybe'; it can be true or false" in said
    assert "c>b" not in said


def test_degrees_that_make_no_sense_are_named() -> None:
    said = faults(draw("s>p p>j j>e e>c c>t", s="start", p="parallel", j="join", e="end", c="delay", t="start"))
    assert "parallel node 'p' leads to 1 node(s) and needs edges to at least two" in said
    assert "join node 'j' joins 1 node(s) and needs edges from at least two" in said
    assert "end node 'e' has an edge out of it" in said
    assert "start node 't' has an edge into it" in said
    assert "condition node 'c' has no edge out of it" in faults(draw("s>c", s="start", c="condition"))


def test_two_edges_to_one_node_are_one_branch() -> None:
    graph = draw("s>p", node("p", "parallel"), s="start", a="end")
    double = [{"id": name, "source": "p", "target": "a"} for name in ("one", "two")]
    assert "leads to 1 node(s)" in faults(
        Graph.model_validate({"nodes": graph.model_dump()["nodes"], "edges": [*edges("s>p"), *double]})
    )


@pytest.mark.parametrize(
    ("kind", "config", "said"),
    [
        ("delay", {"delayMs": 3_600_001}, "delay node 'x' has a bad delayMs: Input should be less than or equal"),
        ("delay", {"delayMs": -1}, "delayMs"),
        ("delay", {"delayMs": "soon"}, "delayMs"),
        ("delay", {"delayMS": 5}, "has no setting delayMS; it takes delayMs"),
        ("webhook_wait", {"timeoutMs": 0}, "timeoutMs"),
        ("webhook_wait", {"timeoutMs": 31 * 24 * 3_600_000}, "timeoutMs"),
        ("agent_session", {}, "agent_session node 'x' needs prompt"),
        ("agent_session", {"prompt": ""}, "prompt"),
        ("agent_session", {"prompt": "{{a b}}"}, "has a bad prompt: the template has {{a b}}, which is not a path"),
        ("agent_session", {"prompt": "go", "retries": 11}, "retries"),
        ("agent_session", {"prompt": "go", "retries": -1}, "retries"),
        ("agent_session", {"prompt": "go", "retryDelayMs": -1}, "retryDelayMs"),
        ("agent_session", {"prompt": "go", "maxTurns": 0}, "maxTurns"),
        ("work_task", {"prompt": "go"}, "work_task node 'x' needs description"),
        ("work_task", {"description": "{{a"}, "has a bad description: the template opens {{ without closing it: {{a"),
        ("condition", {"expression": "__import__('os')"}, "has a bad expression: the condition"),
        ("condition", {"expression": ""}, "the condition is empty"),
        ("transform", {"template": "{{}}"}, "has a bad template"),
        ("transform", {"retries": 1}, "has no setting retries; it takes template"),
        ("parallel", {"branchCount": 3}, "says 3 branches and leads to 2 nodes"),
        ("join", {"any": 1}, "has no setting any; it takes none"),
        ("start", {"prompt": "go"}, "has no setting prompt"),
        ("end", {"prompt": "go"}, "has no setting prompt"),
    ],
)
def test_a_bad_config_is_named_with_its_node_and_setting(kind: str, config: dict[str, Any], said: str) -> None:
    assert said in faults(with_config(kind, **config))


@pytest.mark.parametrize(
    ("kind", "config"),
    [
        ("delay", {"delayMs": 3_600_000}),
        ("delay", {}),
        ("webhook_wait", {"timeoutMs": 30 * 24 * 3_600_000, "webhookEvent": "deployed"}),
        ("agent_session", {"prompt": "{{prev}}", "agentId": "a", "projectId": "p", "maxTurns": 3, "retries": 10}),
        ("work_task", {"description": "x", "waitForCompletion": True, "retries": 0, "retryDelayMs": 1}),
        ("condition", {"expression": "prev.output.includes('ok')"}),
        ("transform", {"template": "{{a}}"}),
        ("parallel", {"branchCount": 2}),
    ],
)
def test_configs_of_every_type_pass(kind: str, config: dict[str, Any]) -> None:
    check_graph(with_config(kind, **config))


def test_defaults_are_read_with_the_config() -> None:
    graph = draw("s>d d>w", s="start", d="delay", w="webhook_wait")
    assert graph.node("d").settings().model_dump() == {"delay_ms": 1_000}
    assert graph.node("w").settings().model_dump() == {"webhook_event": None, "timeout_ms": 3_600_000}


def test_everything_that_is_wrong_is_said_at_once() -> None:
    said = faults(draw("s>a s>gone", node("a", "delay", delayMs=-1), node("b", "nothing"), s="start"))
    assert all(name in said for name in ("'gone'", "delayMs", "'nothing'"))


def test_a_message_stays_readable_however_much_is_wrong() -> None:
    said = faults(draw("", *(node(f"n{each}", "z" * 5_000) for each in range(90))))
    assert said.endswith("; and 61 more")
    assert len(said) < 10_000


def test_a_hundred_nodes_pass_and_one_more_does_not() -> None:
    chain = [node("s", "start"), *(node(f"n{each}", "delay") for each in range(99))]
    names = [each["id"] for each in chain]
    line = " ".join(f"{one}>{other}" for one, other in pairwise(names))
    check_graph(draw(line, *chain))
    assert "has 101 nodes" in faults(draw(line, *chain, node("more", "delay")))
    assert "1001 edges" in faults(Graph.model_validate({"nodes": chain, "edges": edges("s>n1 " * 1_001)}))


def test_both_spellings_of_an_edge_are_read_and_the_advertised_one_is_written() -> None:
    plain = Graph.model_validate(
        {"nodes": [node("s", "start"), node("e", "end")], "edges": [{"id": "1", "source": "s", "target": "e"}]}
    )
    spelled = Graph.model_validate(
        {"nodes": [node("s", "start"), node("e", "end")], "edges": [{**edges("s>e")[0], "id": "1"}]}
    )
    assert plain == spelled
    assert plain.model_dump(mode="json")["edges"][0]["sourceNodeId"] == "s"
    assert Graph.model_validate(plain.model_dump(mode="json")) == plain


def test_a_condition_of_an_edge_may_be_written_as_a_truth() -> None:
    given_as = [{"id": "1", "source": "c", "target": "e", "condition": True}, *edges("s>c")]
    graph = Graph.model_validate(
        {"nodes": [node("s", "start"), node("c", "condition"), node("e", "end")], "edges": given_as}
    )
    check_graph(graph)
    assert graph.edges[0].condition == "true"


@given(graphs())
def test_a_graph_that_passes_has_every_node_behind_its_sources(graph: Graph) -> None:
    check_graph(graph)
    place = {each.id: index for index, each in enumerate(in_order(graph))}
    assert len(place) == len(graph.nodes)
    assert all(place[edge.source] < place[edge.target] for edge in graph.edges)


@given(graphs(max_nodes=6))
def test_an_edge_back_is_always_found(graph: Graph) -> None:
    if not graph.edges:
        return
    forth = graph.edges[0]
    back = {"id": "back", "source": forth.target, "target": forth.source}
    closed = Graph.model_validate({"nodes": graph.model_dump()["nodes"], "edges": [*graph.model_dump()["edges"], back]})
    assert "there is a cycle: " in faults(closed)

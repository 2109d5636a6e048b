"""What a run does next: told by examples first, then against the plain interpreter on random graphs in random order."""

import random
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from rookery.domains.workflows.graph import Graph, Node, check_graph
from rookery.domains.workflows.machine import LIMITED, SETTLED, Advance, NodeState, advance, text_of
from tests.domains.workflows.drawing import draw, graphs, node, values
from tests.domains.workflows.reference import Ended, Interpreter, Outside


class Run:
    """A run whose nodes are carried out by the test."""

    def __init__(self, graph: Graph, run_input: dict[str, Any] | None = None, max_concurrency: int = 2) -> None:
        check_graph(graph)
        self.graph = graph
        self.input = run_input or {}
        self.limit = max_concurrency
        self.states: dict[str, NodeState] = {}
        self.begun: list[str] = []
        self.last = self.go_on()

    def go_on(self) -> Advance:
        self.last = advance(self.graph, self.states, self.input, self.limit)
        self.states |= self.last.changed
        self.begun += self.last.begin
        return self.last

    def end(self, name: str, output: dict[str, Any] | None = None, error: str | None = None) -> Advance:
        """Let a node under way end, and the run go on."""
        assert self.states[name].status in ("running", "waiting")
        status = "failed" if error else "completed"
        self.states[name] = NodeState(status, self.states[name].input, None if error else output or {}, error)
        return self.go_on()

    def of(self, status: str) -> str:
        """The names of the nodes with this status, in order."""
        return "".join(sorted(name for name, state in self.states.items() if state.status == status))


def test_a_start_alone_is_a_whole_run() -> None:
    run = Run(draw("", s="start"), {"x": 1})
    assert run.last.finished == ("completed", {"x": 1}, None)
    assert run.states["s"] == NodeState("completed", {"x": 1}, {"x": 1})


def test_nothing_more_happens_when_nothing_has_happened() -> None:
    run = Run(draw("s>a a>e", s="start", a="agent_session", e="end"))
    assert run.last.begin == ["a"]
    assert run.go_on() == Advance()


def test_a_node_waits_for_all_that_lead_to_it_before_it_is_decided() -> None:
    run = Run(draw("s>a s>b a>c b>c", s="start", a="agent_session", b="delay", c="agent_session"))
    assert run.end("a").begin == []
    assert run.end("b").begin == ["c"]


def test_the_way_not_taken_is_skipped_to_its_end_and_does_not_hold_up_the_join() -> None:
    graph = draw(
        "s>c c>a:true c>b:false b>d a>j d>j j>e",
        node("c", "condition", expression="n > 1"),
        s="start",
        a="agent_session",
        b="agent_session",
        d="delay",
        j="join",
        e="end",
    )
    run = Run(graph, {"n": 2})
    assert run.states["c"].output == {"conditionResult": True}
    assert run.of("skipped") == "bd"
    assert run.end("a", {"output": "x"}).finished
    assert run.of("completed") == "acejs"
    assert Run(graph, {}).begun == ["b"]


def test_an_edge_without_a_condition_is_taken_either_way() -> None:
    graph = draw("s>c c>a:true c>b", node("c", "condition", expression="false"), s="start", a="delay", b="delay")
    assert Run(graph).begun == ["b"]


def test_a_join_of_ways_none_of_which_was_taken_is_skipped() -> None:
    graph = draw(
        "s>c c>a:true c>b:true a>j b>j",
        node("c", "condition", expression="false"),
        s="start",
        a="delay",
        b="delay",
        j="join",
    )
    assert Run(graph).of("skipped") == "abj"


def test_a_failure_skips_what_follows_lets_the_rest_end_and_fails_the_run() -> None:
    run = Run(draw("s>a s>b a>c b>d", s="start", a="agent_session", b="agent_session", c="end", d="end"))
    assert run.end("a", error="out of tokens").finished is None
    assert run.of("skipped") == "c"
    last = run.end("b", {"output": "fine"})
    assert last.finished == (
        "failed",
        {"output": "fine", "completed": True},
        'node "A" failed: out of tokens',
    )


def test_a_join_does_not_run_behind_a_failed_branch_however_far_back_it_failed() -> None:
    lines = ("s>a s>b a>j b>j j>e", "s>a s>b a>c c>j b>j j>e")
    for line in lines:
        run = Run(
            draw(
                line,
                s="start",
                a="agent_session",
                b="delay",
                j="join",
                e="end",
                **({"c": "delay"} if "c" in line else {}),
            )
        )
        run.end("a", error="no")
        assert run.end("b").finished
        assert "j" in run.of("skipped")
        assert "e" in run.of("skipped")


def test_a_node_that_is_no_join_runs_behind_one_that_failed_and_one_that_did_not() -> None:
    run = Run(draw("s>a s>b a>c b>c", s="start", a="agent_session", b="delay", c="transform"))
    run.end("a", error="no")
    run.end("b", {"delayed": True})
    assert run.states["c"].output == {"delayed": True, "transformed": '{"delayed":true}'}


def test_of_several_failures_the_first_in_the_graph_is_told_whichever_came_first() -> None:
    graph = draw("s>a s>b", s="start", a="agent_session", b="agent_session")
    for first, second in ("ab", "ba"):
        run = Run(graph)
        run.end(first, error=f"{first} broke")
        last = run.end(second, error=f"{second} broke")
        assert last.finished
        assert last.finished[2] == 'node "A" failed: a broke'


def test_a_template_with_a_missing_path_fails_its_node_before_anybody_begins_it() -> None:
    nodes = node("a", "agent_session", prompt="about {{topic.name}}"), node("t", "transform", template="{{gone}}")
    run = Run(draw("s>a s>t", *nodes, s="start"), {"topic": "tea"})
    assert run.begun == []
    assert run.states["a"].error == "the template asks for topic.name, which the node's input does not have"
    assert run.last.finished
    assert run.last.finished[0] == "failed"


def test_a_node_is_given_the_input_then_what_its_sources_were_given_then_what_they_gave() -> None:
    run = Run(
        draw("s>a a>c s>b c>d b>d", s="start", a="agent_session", b="agent_session", c="condition", d="delay"),
        {"topic": "tea", "output": "of the run"},
    )
    run.end("a", {"output": "of a", "sessionId": "1"})
    run.end("b", {"output": "of b"})
    assert run.states["d"].input == {
        "topic": "tea",
        "output": "of b",
        "sessionId": "1",
        "conditionResult": True,
        "prev": {"output": "of b"},
    }


def test_the_order_of_edges_decides_which_output_covers_which() -> None:
    for line, last in (("s>a s>b a>c b>c", "b"), ("s>a s>b b>c a>c", "a")):
        run = Run(draw(line, s="start", a="agent_session", b="agent_session", c="delay"))
        run.end("b", {"output": "b"})
        run.end("a", {"output": "a"})
        assert run.states["c"].input == {"output": last, "prev": {"output": last}}


def test_prev_does_not_grow_from_node_to_node() -> None:
    run = Run(draw("s>t t>u u>e", s="start", t="transform", u="transform", e="end"), {"x": 1})
    assert run.states["t"].output == {"x": 1, "transformed": '{"x":1}'}
    assert run.states["u"].output == {"x": 1, "transformed": '{"x":1,"transformed":"{\\"x\\":1}"}'}
    assert run.states["e"].output == {**(run.states["u"].output or {}), "completed": True}


def test_only_so_many_sessions_and_tasks_are_under_way_and_waits_do_not_count() -> None:
    names = {"a": "agent_session", "b": "work_task", "c": "agent_session", "d": "delay", "w": "webhook_wait"}
    run = Run(draw("s>a s>b s>c s>d s>w", s="start", **names), max_concurrency=2)
    assert run.begun == ["a", "b", "d", "w"]
    assert run.states["w"].status == "waiting"
    assert "c" not in run.states
    assert run.end("d").begin == []
    assert run.end("b").begin == ["c"]


def test_a_limit_of_nothing_still_lets_one_run() -> None:
    assert Run(draw("s>a s>b", s="start", a="work_task", b="work_task"), max_concurrency=0).begun == ["a"]


def test_the_text_of_a_node_is_its_prompt_or_description() -> None:
    graph = draw("", node("a", "agent_session", prompt="{{x}}!"), node("b", "work_task", description="{{x}}?"))
    assert [text_of(each, {"x": "hey"}) for each in graph.nodes] == ["hey!", "hey?"]


def outside(seed: int, outputs: list[dict[str, Any]]) -> Outside:
    """Ends of nodes that depend on the node and its input alone."""

    def carry_out(node: Node, node_input: dict[str, Any]) -> Ended:
        dice = random.Random(f"{seed} {node.id} {sorted(node_input)}")
        if dice.random() < 0.2:
            return "failed", None, f"{node.id} broke"
        return "completed", {**dice.choice(outputs), "by": node.id}, None

    return carry_out


@settings(max_examples=300, deadline=None)
@given(
    graph=graphs(max_nodes=14),
    run_input=values(),
    outputs=st.lists(values(), min_size=1, max_size=4),
    limit=st.integers(1, 3),
    seed=st.integers(0, 2**32),
)
def test_any_graph_ends_as_the_plain_interpreter_says_in_whatever_order_its_nodes_end(
    graph: Graph, run_input: dict[str, Any], outputs: list[dict[str, Any]], limit: int, seed: int
) -> None:
    carry_out = outside(seed, outputs)
    reference = Interpreter(graph, run_input, carry_out)
    expected = reference.run()
    dice = random.Random(seed)
    run = Run(graph, run_input, limit)
    for _ in graph.nodes:
        open_nodes = sorted(name for name, state in run.states.items() if state.status not in SETTLED)
        assert sum(graph.node(name).type in LIMITED for name in open_nodes) <= limit
        assert run.go_on().changed == {}
        if not open_nodes:
            break
        name = dice.choice(open_nodes)
        _, output, error = carry_out(graph.node(name), run.states[name].input or {})
        run.end(name, output, error)
    assert run.last.finished == expected
    assert len(run.begun) == len(set(run.begun))
    assert {name: (state.status, state.input, state.output, state.error) for name, state in run.states.items()} == {
        name: (end.status, end.input, end.output, end.error) for name, end in reference.ends.items()
    }

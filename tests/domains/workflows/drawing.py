"""Graphs for tests: written in one line, or drawn at random."""

from typing import Any

from hypothesis import strategies as st

from rookery.domains.workflows.graph import Graph

SPARE = ["start", "agent_session", "work_task", "delay", "webhook_wait", "transform", "end"]
EXPRESSIONS = ["true", "false", "flag", "n > 2", "n <= 2", "output.includes('a')", "kind === 'x'", "prev.flag == true"]
TEXTS = ["go", "{{topic}}", "n is {{n}}", "{{prev}}", "{{output}} {{kind}}", "{{prev.flag}}", "{{a.b.0}}"]
NEEDED: dict[str, dict[str, Any]] = {"agent_session": {"prompt": "go"}, "work_task": {"description": "do"}}


def node(name: str, kind: str, /, **config: Any) -> dict[str, Any]:
    """A node as a caller writes it, labelled with its name in capitals."""
    return {"id": name, "type": kind, "label": name.upper(), "config": {**NEEDED.get(kind, {}), **config}}


def edges(line: str) -> list[dict[str, Any]]:
    """`a>b c>d:true` as a caller writes edges."""
    found: list[dict[str, Any]] = []
    for word in line.split():
        ends, _, condition = word.partition(":")
        source, target = ends.split(">")
        found.append({"id": word, "sourceNodeId": source, "targetNodeId": target})
        if condition:
            found[-1]["condition"] = condition
    return found


def draw(line: str, *nodes: dict[str, Any], **kinds: str) -> Graph:
    """A graph of these edges, its nodes given whole or as name=type."""
    written = [*nodes, *(node(name, kind) for name, kind in kinds.items())]
    return Graph.model_validate({"nodes": written, "edges": edges(line)})


def values() -> st.SearchStrategy[dict[str, Any]]:
    """What a run is given or a node gives."""
    return st.fixed_dictionaries(
        {},
        optional={
            "topic": st.sampled_from(["tea", "", "{{n}}"]),
            "flag": st.booleans(),
            "n": st.integers(0, 5),
            "kind": st.sampled_from(["x", "y", None]),
            "output": st.sampled_from(["a", "bab", "none"]),
            "a": st.just({"b": [1, {"c": 2}]}),
            "prev": st.just("mine"),
        },
    )


@st.composite
def graphs(draw: st.DrawFn, min_nodes: int = 1, max_nodes: int = 12, kinds: tuple[str, ...] = ()) -> Graph:
    """A graph that `check_graph` lets pass, its nodes and edges given in any order. `kinds`: only these spare types."""
    size = draw(st.integers(min_nodes, max_nodes))
    pairs = [
        (source, target)
        for target in range(1, size)
        for source in draw(st.sets(st.integers(0, target - 1), max_size=3) if target > 1 else st.just({0}))
    ]
    into, out = _degrees(size, [target for _, target in pairs]), _degrees(size, [source for source, _ in pairs])
    types = [draw(st.sampled_from(_possible(into[each], out[each], kinds))) for each in range(size)]
    written = [node(f"n{each}", kind, **draw(_config(kind))) for each, kind in enumerate(types)]
    drawn: list[dict[str, Any]] = []
    for source, target in pairs:
        asked = draw(st.sampled_from([None, "true", "false"])) if types[source] == "condition" else None
        drawn.append({"id": f"{source}-{target}", "source": f"n{source}", "target": f"n{target}", "condition": asked})
    order = {"nodes": draw(st.permutations(written)), "edges": draw(st.permutations(drawn))}
    return Graph.model_validate(order)


def _degrees(size: int, ends: list[int]) -> list[int]:
    return [ends.count(each) for each in range(size)]


def _possible(into: int, out: int, kinds: tuple[str, ...]) -> list[str]:
    if not into:
        return ["start"]
    found = [kind for kind in kinds or SPARE if kind != "start" and (kind != "end" or not out)]
    return found + ["join"] * 2 * (into > 1) + ["parallel"] * (out > 1) + ["condition"] * 2 * (out > 0)


def _config(kind: str) -> st.SearchStrategy[dict[str, Any]]:
    text = st.sampled_from(TEXTS)
    if kind == "agent_session":
        return st.fixed_dictionaries({"prompt": text, "retries": st.integers(0, 2), "retryDelayMs": st.just(0)})
    if kind == "work_task":
        return st.fixed_dictionaries({"description": text})
    if kind == "transform":
        return st.fixed_dictionaries({"template": text})
    if kind == "condition":
        return st.fixed_dictionaries({"expression": st.sampled_from(EXPRESSIONS)})
    if kind == "delay":
        return st.fixed_dictionaries({"delayMs": st.integers(0, 30)})
    return st.just({})

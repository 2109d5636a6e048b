"""`decide` against a second description of the same rules, on random actors and tools."""

from collections import Counter

import pytest

from rookery.core.actor import Actor
from rookery.core.decide import LAYERS, decide, explain
from rookery.core.registry import Registry
from rookery.core.tool import Tool
from tests.core.random_cases import Cases
from tests.core.reference_model import answers

ACTORS, TOOLS = 1000, 250
PARTS = 4
EVERY_OUTCOME = {"allow", "ask", "hide", "deny"}


def compare(seed: int) -> tuple[Counter[str], Counter[str]]:
    """Ask both about every actor and tool of `seed`; how often which outcome and which layer came."""
    cases = Cases(seed)
    tools = cases.tools(TOOLS)
    outcomes: Counter[str] = Counter()
    layers: Counter[str] = Counter()
    for actor in cases.actors(ACTORS, [tool.name for tool in tools]):
        expected = answers(actor, tools)
        for tool in tools:
            found = decide(actor, tool)
            assert found.outcome == expected[tool.name], disagreement(seed, actor, tool, expected[tool.name])
            outcomes[found.outcome] += 1
            layers[found.layer] += 1
    return outcomes, layers


def disagreement(seed: int, actor: Actor, tool: Tool, expected: str) -> str:
    found = decide(actor, tool)
    return f"seed {seed}: decide says {found}, the model says {expected}\nactor: {actor}\ntool: {tool}"


@pytest.mark.parametrize("seed", range(PARTS))
def test_decide_agrees_with_the_model_on_a_million_random_cases(seed: int) -> None:
    assert PARTS * ACTORS * TOOLS == 1_000_000
    outcomes, layers = compare(seed)
    assert outcomes.total() == ACTORS * TOOLS
    assert set(outcomes) == EVERY_OUTCOME
    assert min(outcomes.values()) > 1000
    spoke = {name: layers[name] for name, _ in LAYERS}
    assert min(spoke.values()) > 50, f"a layer hardly ever spoke, so it was hardly tested: {spoke}"


@pytest.mark.parametrize("left_out", [name for name, _ in LAYERS])
def test_the_model_would_notice_if_a_layer_were_left_out(left_out: str) -> None:
    cases = Cases(76)
    tools = cases.tools(200)
    rest = [layer for name, layer in LAYERS if name != left_out]
    for actor in cases.actors(200, [tool.name for tool in tools]):
        expected = answers(actor, tools)
        for tool in tools:
            refusal = next(filter(None, (layer(actor, tool) for layer in rest)), None)
            if (refusal.outcome if refusal else "allow") != expected[tool.name]:
                return
    pytest.fail(f"nobody missed the layer {left_out}")


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(1000, 1000 + 10 * PARTS))
def test_decide_agrees_with_the_model_on_ten_million_random_cases(seed: int) -> None:
    compare(seed)


def test_a_tool_is_listed_exactly_if_the_decision_says_so() -> None:
    cases = Cases(77)
    registry = Registry()
    for tool in cases.tools(300):
        registry.add(tool, "random")
    for actor in cases.actors(100, [tool.name for tool in registry]):
        listed = {tool.name for tool in registry.listed(actor)}
        assert listed == {tool.name for tool in registry if decide(actor, tool).listed}
        assert listed == {name for name, answer in answers(actor, registry).items() if answer in ("allow", "ask")}


def test_the_first_layer_that_explain_shows_refusing_is_the_one_that_decided() -> None:
    cases = Cases(78)
    tools = cases.tools(200)
    for actor in cases.actors(100, [tool.name for tool in tools]):
        for tool in tools:
            decision, verdicts = decide(actor, tool), explain(actor, tool)
            assert [verdict.layer for verdict in verdicts] == [name for name, _ in LAYERS]
            first = next((verdict for verdict in verdicts if verdict.outcome != "allow"), None)
            spoke = (first.layer, first.outcome, first.reason) if first else ("all", "allow", decision.reason)
            assert (decision.layer, decision.outcome, decision.reason) == spoke


def test_every_refusal_gives_a_reason_and_a_hint() -> None:
    cases = Cases(79)
    tools = cases.tools(200)
    for actor in cases.actors(50, [tool.name for tool in tools]):
        said = [decision for tool in tools if (decision := decide(actor, tool)).outcome != "allow"]
        assert all(decision.reason and decision.hint for decision in said)

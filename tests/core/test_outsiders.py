"""Outsiders, who have a token and no role: `decide` against the second description of the rules, and by hand."""

from collections import Counter
from dataclasses import replace

import pytest

from rookery.core.actor import NOTHING, Actor
from rookery.core.decide import decide, explain, held_by
from rookery.domains.system.tools import ping
from tests.core.random_cases import Cases
from tests.core.reference_model import answers

OUTSIDER = Actor(kind="external", tenant="default", subject="external:remote", project="prj-1")


@pytest.mark.parametrize("seed", range(200, 204))
def test_decide_agrees_with_the_model_about_outsiders(seed: int) -> None:
    cases = Cases(seed)
    tools = cases.tools(150)
    said: Counter[str] = Counter()
    for someone in cases.actors(300, [tool.name for tool in tools]):
        actor = replace(someone, kind="external", role=None)
        expected = answers(actor, tools)
        for tool in tools:
            found = decide(actor, tool)
            assert found.outcome == expected[tool.name], (seed, actor, tool, found)
            assert not found.listed or (tool.tier != "privileged" and tool.principals == "any")
            said[found.outcome] += 1
    assert min(said[outcome] for outcome in ("allow", "ask", "hide", "deny")) > 300, said


def test_more_than_its_scopes_can_only_be_given_by_name() -> None:
    everything = frozenset({ping.name})
    lists = replace(OUTSIDER, permissions=everything, bundle_tools=everything, project_bundle_tools=everything)
    assert held_by(lists, ping) is None
    assert held_by(replace(lists, scopes=NOTHING), ping) is None
    assert held_by(replace(OUTSIDER, grants=everything), ping) == "granted by the owner"


def test_explain_says_that_the_token_grants_it() -> None:
    told = {verdict.layer: verdict for verdict in explain(replace(OUTSIDER, scopes=frozenset({"system:*"})), ping)}
    assert told["role"].reason == "granted by the token's scopes"
    refused = decide(replace(OUTSIDER, scopes=frozenset({"memory:*"})), ping)
    assert (refused.layer, refused.reason) == ("scopes", "the token lacks system:read")
    alone = decide(OUTSIDER, ping)
    assert (alone.layer, alone.reason) == ("role", "ping is not among the tools of this caller")


def test_a_profile_narrows_the_scopes_of_a_token() -> None:
    scoped = replace(OUTSIDER, scopes=frozenset({"*"}), profile="worker")
    assert decide(scoped, replace(ping, profiles=frozenset({"worker"}))).listed
    assert decide(scoped, replace(ping, profiles=NOTHING)).layer == "role"


def test_a_privileged_tool_is_refused_however_it_was_given() -> None:
    privileged = replace(ping, tier="privileged")
    mighty = replace(
        OUTSIDER,
        scopes=frozenset({"*", "tool:*", "tool:ping"}),
        grants=frozenset({"ping"}),
        permissions=frozenset({"ping"}),
    )
    assert decide(mighty, privileged).layer == "role"

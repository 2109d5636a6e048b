"""Each layer of the decision by itself: one who is refused, and who is not."""

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from rookery.core.actor import Actor
from rookery.core.decide import LAYERS, Decision, decide, explain, held_by
from rookery.core.tool import Tool
from rookery.domains.code.tools import code_symbols
from rookery.domains.credits.tools import grant_credits
from rookery.domains.messages.tools import send_message
from rookery.domains.owner.ask_tools import ask_owner
from rookery.domains.research.tools import web_search
from rookery.domains.system.tools import ping
from rookery.domains.tracker.issue_tools import get_issue
from rookery.domains.tracker.issue_write_tools import add_comment
from rookery.domains.tracker.verdict_tools import approve_phase
from rookery.identity.agent_tools import create_agent, list_projects

PAGE = Path(__file__).parents[2] / "docs" / "permissions.md"


def agent(**fields: Any) -> Actor:
    return Actor(kind="agent", tenant="default", subject="ada", **{"project": "prj-1", **fields})


def person(role: Any, **fields: Any) -> Actor:
    return Actor(kind="human", tenant="default", subject="per-1", role=role, **{"project": "prj-1", **fields})


def refusal(actor: Actor, tool: Tool) -> str | None:
    decision = decide(actor, tool)
    return None if decision.outcome == "allow" else decision.layer


def names(*listed: str) -> frozenset[str]:
    return frozenset(listed)


def test_a_tool_whose_service_is_missing_is_hidden_and_what_it_merely_needs_is_not() -> None:
    conditional, wanting = code_symbols, replace(ping, needs="mail")
    assert decide(agent(), conditional).outcome == "hide"
    assert decide(agent(services=names("code_index")), conditional).outcome == "allow"
    assert decide(agent(), wanting).outcome == "allow"
    assert decide(agent(hide_unavailable=True), wanting).outcome == "hide"
    assert decide(agent(hide_unavailable=True, services=names("mail")), wanting).outcome == "allow"


def test_a_tool_for_people_is_refused_to_an_agent_whatever_it_was_given() -> None:
    given = names("create_agent")
    assert refusal(agent(permissions=given, grants=given, scope_file=given), create_agent) == "principal"
    assert refusal(person("owner"), create_agent) is None


def test_the_roles_of_people_reach_as_far_as_they_should() -> None:
    reach = {
        "owner": {"create_agent", "list_projects", "grant_credits", "send_message", "ping"},
        "operator": {"list_projects", "send_message", "ping"},
        "viewer": {"list_projects", "ping"},
        None: set[str](),
    }
    tools = [create_agent, list_projects, grant_credits, send_message, ping]
    for role, expected in reach.items():
        assert {tool.name for tool in tools if refusal(person(role), tool) is None} == expected


def test_a_token_needs_every_scope_of_the_tool() -> None:
    tool = replace(ping, scopes=("tracker:write", "owner:notify"))
    enough = [
        {"tracker:write", "owner:notify"},
        {"tracker:*", "owner:*"},
        {"*"},
        {"tool:ping"},
        {"tool:ping:*"},
        {"tool:*"},
    ]
    short = [
        set[str](),
        {"tracker:write"},
        {"owner:*"},
        {"admin"},
        {"tracker:read", "owner:notify"},
        {"tool:pong"},
        {"tool"},
    ]
    assert all(refusal(agent(scopes=frozenset(scopes)), tool) is None for scopes in enough)
    assert all(refusal(agent(scopes=frozenset(scopes)), tool) == "scopes" for scopes in short)
    assert refusal(agent(scopes=None), tool) is None


def test_the_scope_admin_satisfies_only_itself() -> None:
    assert refusal(agent(scopes=names("admin")), replace(ping, scopes=("admin",))) is None
    assert refusal(agent(scopes=names("admin")), replace(ping, scopes=("system:read", "admin"))) == "scopes"
    assert refusal(agent(scopes=names("system:*")), replace(ping, scopes=("system:read", "admin"))) == "scopes"


def test_an_outsider_has_nothing_but_what_it_was_given() -> None:
    outsider = Actor(kind="external", tenant="default", subject="remote", project="prj-1")
    assert refusal(outsider, ping) == "role"
    assert refusal(replace(outsider, grants=names("ping")), ping) is None


def test_a_profile_replaces_the_default_set() -> None:
    assert refusal(agent(profile="judge"), web_search) == "role"
    assert refusal(agent(profile="judge", issue="iss-1"), approve_phase) is None
    assert refusal(agent(issue="iss-1"), approve_phase) == "role"


def test_under_a_profile_a_list_narrows_and_never_widens() -> None:
    judge = agent(profile="judge", issue="iss-1", permissions=names("approve_phase", "web_search", "grant_credits"))
    assert refusal(judge, approve_phase) is None
    assert refusal(judge, get_issue) == "role"
    assert refusal(judge, web_search) == "role"
    assert refusal(judge, grant_credits) == "role"
    assert refusal(replace(judge, grants=names("grant_credits")), grant_credits) == "gate"


def test_bundles_add_to_whatever_the_base_is() -> None:
    bundled = names("get_issue")
    for base in ({}, {"permissions": names("ping")}, {"permissions": names()}, {"profile": "judge"}):
        assert refusal(agent(bundle_tools=bundled, **base), get_issue) is None
    assert refusal(agent(bundle_tools=bundled), ping) is None


def test_a_projects_bundles_pass_an_agent_with_a_list_by() -> None:
    ours = names("get_issue")
    assert refusal(agent(project_bundle_tools=ours), get_issue) is None
    assert refusal(agent(project_bundle_tools=ours, permissions=names("ping")), get_issue) == "role"
    assert refusal(agent(project_bundle_tools=ours, permissions=names()), get_issue) == "role"


def test_a_privileged_tool_comes_by_grant_or_list_and_by_nothing_else() -> None:
    wanted, tool = names("grant_credits"), grant_credits
    assert refusal(agent(grants=wanted), tool) == "gate"
    assert refusal(agent(grants=wanted, unasked=wanted), tool) is None
    assert refusal(agent(permissions=wanted), tool) is None
    assert refusal(agent(unasked=wanted), tool) == "role"
    for other in ("bundle_tools", "project_bundle_tools", "scope_file", "allowed"):
        assert refusal(agent(**{other: wanted}), tool) == "role"
    assert refusal(agent(), replace(tool, default=True)) == "role"
    assert refusal(agent(profile="worker"), replace(tool, profiles=names("worker"))) == "role"


def test_a_scope_file_is_the_base_of_a_session_that_has_no_other() -> None:
    assert refusal(agent(scope_file=names("get_issue")), get_issue) is None
    assert refusal(agent(scope_file=names("get_issue")), ping) == "role"
    assert refusal(agent(scope_file=names("get_issue"), profile="worker"), ping) == "scope_file"
    assert refusal(agent(scope_file=names("approve_phase"), profile="worker"), approve_phase) == "role"
    assert refusal(agent(scope_file=names("get_issue"), permissions=names("ping")), get_issue) == "role"
    assert refusal(person("owner", scope_file=names("get_issue")), ping) == "scope_file"
    assert refusal(agent(scope_file=names()), ping) == "role"


def test_allowed_disallowed_and_the_scope_file_take_even_what_was_granted() -> None:
    granted = {"grants": names("ping")}
    assert refusal(agent(allowed=names("get_issue"), **granted), ping) == "allowed"
    assert refusal(agent(allowed=names(), **granted), ping) == "allowed"
    assert refusal(agent(disallowed=names("ping"), **granted), ping) == "disallowed"
    assert refusal(agent(scope_file=names("get_issue"), **granted), ping) == "scope_file"
    assert refusal(agent(allowed=names("ping"), disallowed=names("ping"), **granted), ping) == "disallowed"


def test_a_scheduled_session_loses_blocked_tools_even_as_owner_on_the_web() -> None:
    assert refusal(person("owner", source="web", scheduler=True), send_message) == "scheduler"
    assert refusal(agent(scheduler=True, grants=names("send_message")), send_message) == "scheduler"
    assert refusal(agent(scheduler=True), web_search) is None


def test_nobody_is_asked_in_an_unattended_session() -> None:
    asking = replace(ask_owner, scheduler_blocked=False)
    assert refusal(agent(unattended=True), asking) == "unattended"
    assert refusal(agent(), asking) is None


def test_the_networking_filter_is_off_unless_set_and_only_for_sessions_of_agents() -> None:
    tool = send_message
    assert refusal(agent(source="agent"), tool) is None
    assert refusal(agent(source="agent", restrict_networking=True), tool) == "source"
    assert refusal(agent(source="telegram", restrict_networking=True), tool) is None
    assert refusal(agent(source="agent", restrict_networking=True), web_search) is None


@pytest.mark.parametrize(("depth", "expected"), [(1, None), (2, None), (3, "depth"), (4, "depth")])
def test_the_third_agent_of_a_chain_sends_no_messages(depth: int, expected: str | None) -> None:
    assert refusal(agent(depth=depth), send_message) == expected


def test_what_acts_on_a_bound_issue_or_project_needs_one() -> None:
    assert refusal(agent(profile="worker"), add_comment) == "binding"
    assert refusal(agent(profile="worker", issue="iss-1"), add_comment) is None
    assert refusal(agent(project=None), replace(ping, binds="project")) == "binding"
    assert refusal(agent(), replace(ping, binds="project")) is None


def test_a_phase_closes_the_tools_of_other_phases() -> None:
    tool = replace(ping, phases=names("research", "ready"))
    assert refusal(agent(phase="grooming"), tool) == "phase"
    assert refusal(agent(phase="ready"), tool) is None
    assert refusal(agent(phase=None), tool) is None


def test_trust_counts_for_agents_and_none_is_the_least() -> None:
    tool = replace(ping, min_trust=2)
    assert [refusal(agent(trust=trust), tool) for trust in (None, 0, 1, 2, 3)] == ["trust"] * 3 + [None] * 2
    assert refusal(person("owner"), tool) is None


def test_a_budget_that_is_used_up_closes_the_tools_that_draw_on_it() -> None:
    tool = replace(ping, budget="credits")
    assert refusal(agent(exhausted=names("credits")), tool) == "budget"
    assert refusal(agent(exhausted=names("messages")), tool) is None
    assert refusal(person("owner", exhausted=names("credits")), tool) == "budget"


def test_without_credits_an_agent_can_observe_and_no_more() -> None:
    tools = [replace(ping, tier=tier) for tier in ("observe", "act", "destructive", "privileged")]
    spent = agent(exhausted=names("credits"), grants=names("ping"))
    assert [refusal(spent, tool) for tool in tools] == [None, "budget", "budget", "budget"]
    assert "grant_credits" in decide(spent, tools[1]).hint
    other = agent(exhausted=names("messages"), grants=names("ping"))
    assert [refusal(other, tool) for tool in tools] == [None, None, None, "gate"]


def test_whoever_is_paused_can_observe_and_no_more_and_is_told_why_and_people_go_on() -> None:
    tools = [replace(ping, tier=tier) for tier in ("observe", "act", "destructive", "privileged")]
    why = "everything was paused by owner: too many mails"
    held = agent(paused=why, grants=names("ping"), unasked=names("ping"))
    assert [refusal(held, tool) for tool in tools] == [None, "paused", "paused", "paused"]
    assert decide(held, tools[1]).reason == why
    assert [refusal(person("owner", paused=why), tool) for tool in tools] == [None] * 4


def test_the_gate_asks_by_mode_and_tier() -> None:
    tiers = ("observe", "act", "destructive", "privileged")
    tools = [replace(ping, tier=tier) for tier in tiers]
    asked = {
        mode: [decide(agent(mode=mode, grants=names("ping")), tool).outcome for tool in tools]
        for mode in ("ask", "act", "autonomy")
    }
    assert asked == {
        "ask": ["allow", "ask", "ask", "ask"],
        "act": ["allow", "allow", "ask", "ask"],
        "autonomy": ["allow", "allow", "allow", "ask"],
    }
    agreed = [decide(agent(mode="ask", grants=names("ping"), unasked=names("ping")), tool).outcome for tool in tools]
    assert agreed == ["allow"] * 4


def test_a_list_spares_approvals_of_privileged_tools_alone_and_not_under_a_profile() -> None:
    tools = [replace(ping, tier=tier) for tier in ("act", "destructive", "privileged")]
    listed = agent(mode="ask", permissions=names("ping"))
    assert [decide(listed, tool).outcome for tool in tools] == ["ask", "ask", "allow"]
    worker = replace(listed, profile="worker", grants=names("ping"))
    assert [decide(worker, tool).outcome for tool in tools] == ["ask"] * 3


def test_an_unattended_session_asks_too() -> None:
    assert decide(agent(mode="ask", unattended=True), web_search) == Decision(
        "ask", "gate", "web_search is act and the session's mode is ask", "the owner has to approve it"
    )


def test_explain_names_where_the_tool_comes_from_and_every_layer_that_refuses() -> None:
    actor = agent(permissions=names(), disallowed=names("send_message"), depth=3)
    verdicts = {verdict.layer: verdict for verdict in explain(actor, send_message)}
    refusing = [layer for layer, verdict in verdicts.items() if verdict.outcome != "allow"]
    assert refusing == ["role", "disallowed", "depth"]
    sources = {
        "a person has every tool": person("owner"),
        "granted by the owner": agent(grants=names("ping")),
        "named in the agent's own list": agent(permissions=names("ping")),
        "named in the scope file": agent(scope_file=names("ping")),
        "in the default set": agent(),
        "in the defaults of the profile judge": agent(profile="judge"),
        "in a bundle of the agent": agent(bundle_tools=names("ping"), permissions=names()),
        "in a bundle of the project": agent(project_bundle_tools=names("ping"), scope_file=names()),
    }
    assert {expected: held_by(actor, ping) for expected, actor in sources.items()} == {key: key for key in sources}


def test_the_page_for_people_has_the_layers_in_their_order() -> None:
    rows = re.findall(r"^\| (\d+) \| `(\w+)` \|", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    assert rows == [(str(number), name) for number, (name, _) in enumerate(LAYERS, 1)]

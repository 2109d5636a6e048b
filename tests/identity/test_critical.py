"""A session that lacks a critical tool of its profile is warned, whatever took it away, and starts all the same."""

from typing import Any

import pytest

from rookery.identity.critical import lost_tools
from tests.identity.callers import own
from tests.platform_fixtures import Fleet

BUT_APPROVE = frozenset({"get_issue", "ping"})


def lost(fleet: Fleet, **binding: Any) -> list[str]:
    """The critical tools that a session with this binding is warned of."""
    warnings = lost_tools(fleet.actor(**binding), fleet.platform.registry)
    said = [warning.partition(": ") for warning in warnings]
    assert all(reason for _, _, reason in said)
    return [sentence.removeprefix(f"{binding['profile']} cannot do its work without ") for sentence, _, _ in said]


def judges(fleet: Fleet) -> list[str]:
    return sorted(fleet.platform.registry.critical("judge") - BUT_APPROVE)


def test_a_scope_file_that_leaves_a_critical_tool_out_is_warned_of_by_name_and_reason(fleet: Fleet) -> None:
    actor = fleet.actor(profile="judge", scope_file=BUT_APPROVE)
    warnings = lost_tools(actor, fleet.platform.registry)
    assert (
        "judge cannot do its work without approve_phase: the scope file of this session leaves out approve_phase"
    ) in warnings
    assert fleet.names(actor) == {"ping", "get_issue"}


async def test_every_way_to_lose_a_tool_for_the_whole_session_counts(fleet: Fleet) -> None:
    assert lost(fleet, profile="judge", scope_file=BUT_APPROVE) == judges(fleet)
    await own(fleet, "create_agent", name="ada", permissions=sorted(BUT_APPROVE))
    assert lost(fleet, profile="judge", agent="ada") == judges(fleet)
    scopes = [f"tool:{name}" for name in sorted(BUT_APPROVE)]
    token = (await own(fleet, "create_token", name="t", agent="default", scopes=scopes)).secret
    assert lost(fleet, profile="judge", token=token) == judges(fleet)
    await own(fleet, "set_profile_tools", profile="judge", disallowed=["get_issue"])
    assert lost(fleet, profile="judge") == ["get_issue"]
    await own(fleet, "set_profile_tools", profile="judge", disallowed=[], allowed=sorted(BUT_APPROVE))
    assert lost(fleet, profile="judge") == judges(fleet)


async def test_what_may_still_come_in_the_session_is_no_loss(fleet: Fleet) -> None:
    unbound = fleet.actor(profile="judge")
    assert "approve_phase" not in fleet.names(unbound)
    assert lost(fleet, profile="judge") == []
    await own(fleet, "update_agent", agent="default", mode="ask")
    assert lost(fleet, profile="judge", scheduler=True) == []


@pytest.mark.parametrize("scope", [frozenset[str](), frozenset({"ping"})])
def test_without_a_profile_nothing_is_critical(fleet: Fleet, scope: frozenset[str]) -> None:
    assert lost_tools(fleet.actor(scope_file=scope), fleet.platform.registry) == []

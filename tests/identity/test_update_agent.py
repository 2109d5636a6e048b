import pytest

from rookery.core.actor import Actor
from rookery.core.errors import ApprovalRequired, InvalidParams, NotFound, PermissionDenied
from tests.identity.callers import agents_are_refused, fails_with, is_not_found, own
from tests.platform_fixtures import Fleet


async def test_an_agent_cannot_widen_itself(fleet: Fleet) -> None:
    await agents_are_refused(fleet, "update_agent", agent="default", permissions=["grant_credits"])
    assert fleet.actor().permissions is None


async def test_the_agents_of_another_tenant_are_not_found(fleet: Fleet, stranger: Actor) -> None:
    eve = await fleet.call(stranger, "create_agent", name="eve")
    for name in (eve.id, "eve"):
        await is_not_found(fleet, fleet.owner, "update_agent", agent=name, permissions=[])
    assert fleet.actor(tenant="other", agent="eve").permissions is None
    await fails_with(NotFound, fleet, "update_agent", agent="nobody")


async def test_a_list_replaces_the_default_set_and_default_brings_it_back(fleet: Fleet) -> None:
    usual = fleet.names(fleet.actor())
    changed = await own(fleet, "update_agent", agent="default", permissions=["web_search", "corvid_grant_credits"])
    assert changed.permissions == ["grant_credits", "web_search"]
    assert fleet.names(fleet.actor()) == {"web_search", "grant_credits"}
    await own(fleet, "update_agent", agent="default", permissions=[])
    assert fleet.actor().permissions == frozenset()
    assert fleet.names(fleet.actor()) == set()
    back = await own(fleet, "update_agent", agent="default", permissions="default")
    assert back.permissions is None
    assert fleet.names(fleet.actor()) == usual


async def test_what_is_not_named_stays_as_it_is(fleet: Fleet) -> None:
    await own(fleet, "update_agent", agent="default", permissions=["ping"], mode="ask", trust=3)
    same = await own(fleet, "update_agent", agent="default", restrict_networking=True)
    assert (same.permissions, same.mode, same.trust, same.restrict_networking) == (["ping"], "ask", 3, True)
    assert await own(fleet, "update_agent", agent="default") == same


async def test_mode_and_networking_filter_count_from_the_next_call_on(fleet: Fleet) -> None:
    await own(fleet, "update_agent", agent="default", mode="ask")
    with pytest.raises(ApprovalRequired) as asked:
        await fleet.call(fleet.actor(), "web_search", query="rooks")
    assert asked.value.layer == "gate"
    assert "web_search" in fleet.names(fleet.actor())
    await own(fleet, "update_agent", agent="default", mode="autonomy", restrict_networking=True)
    await fleet.call(fleet.actor(), "web_search", query="rooks")
    await fleet.call(fleet.actor(), "discover_agent", query="anybody")
    with pytest.raises(PermissionDenied) as refused:
        await fleet.call(fleet.actor(source="agent"), "discover_agent", query="anybody")
    assert refused.value.layer == "source"


async def test_values_out_of_range_are_refused(fleet: Fleet) -> None:
    for wrong in ({"trust": 5}, {"trust": -1}, {"mode": "yolo"}, {"permissions": "all"}, {"permissions": ["nope"]}):
        await fails_with(InvalidParams, fleet, "update_agent", agent="default", **wrong)

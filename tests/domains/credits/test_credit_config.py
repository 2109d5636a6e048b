"""The six rates: shown to whoever was granted the tool, changed with everything checked."""

from typing import Any

import pytest

from rookery.core.actor import Actor
from rookery.core.errors import InvalidParams, PermissionDenied
from rookery.ledger.rates import DEFAULTS, KEYS
from tests.platform_fixtures import Fleet


async def config(fleet: Fleet, actor: Actor | None = None, **arguments: Any) -> dict[str, int]:
    return (await fleet.call(actor or fleet.owner, "credit_config", **arguments)).config


async def test_an_agent_neither_sees_nor_sets_rates_unless_it_was_granted_the_tool(fleet: Fleet) -> None:
    for arguments in ({}, {"key": "credits_per_turn", "value": 0}):
        with pytest.raises(PermissionDenied) as caught:
            await config(fleet, fleet.actor(), **arguments)
        assert caught.value.layer == "role"
    await fleet.call(fleet.owner, "grant_tool", agent="default", tool="credit_config", without_approval=True)
    with pytest.raises(PermissionDenied) as caught:
        await config(fleet, fleet.actor(scheduler=True))
    assert caught.value.layer == "scheduler"
    assert await config(fleet, fleet.actor()) == DEFAULTS


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        ({"action": "delete"}, "action"),
        ({"action": "update"}, "key: is needed"),
        ({"action": "update", "key": "credits_per_turn"}, "value: is needed"),
        ({"action": "update", "value": 5}, "key: is needed"),
        ({"value": 5}, "key: is needed"),
        ({"action": "get", "key": "credits_per_turn", "value": 5}, "value: is only for action update"),
        ({"key": "credits_per_day", "value": 5}, "key"),
        ({"key": "", "value": 5}, "key"),
        *(
            ({"key": "credits_per_turn", "value": value}, "value")
            for value in (-1, 1.5, float("nan"), 1_000_001, 2**63, True, "free")
        ),
    ],
)
async def test_what_makes_no_sense_is_refused_and_nothing_changes(
    fleet: Fleet, wrong: dict[str, Any], told: str
) -> None:
    with pytest.raises(InvalidParams, match=told):
        await config(fleet, **wrong)
    assert await config(fleet) == DEFAULTS


@pytest.mark.parametrize("action", [{}, {"action": "update"}])
@pytest.mark.parametrize("key", KEYS)
async def test_every_rate_can_be_set_with_and_without_the_action(
    fleet: Fleet, action: dict[str, Any], key: str
) -> None:
    assert await config(fleet, key=key, value=7, **action) == {key: 7}
    assert await config(fleet, action="get") == DEFAULTS | {key: 7}
    assert await config(fleet, key=key) == {key: 7}
    told = await fleet.call(fleet.actor(), "check_credits")
    assert told.rates == DEFAULTS | {key: 7}


async def test_another_tenant_keeps_its_rates(fleet: Fleet, stranger: Actor) -> None:
    await config(fleet, key="credits_per_turn", value=0)
    assert await config(fleet, stranger) == DEFAULTS

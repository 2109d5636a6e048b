"""Rate limits: so many calls a minute, for a tool and for an identity, and not one more."""

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from rookery.around import rate
from rookery.around.rate import RateLimit
from rookery.core.actor import Actor
from rookery.core.call import new_call
from rookery.core.context import Call, SilentDoor
from rookery.core.errors import InvalidParams, PermissionDenied, RateLimited
from rookery.identity.store import IdentityStore
from tests.around import workload
from tests.platform_fixtures import Fleet


class Clock:
    """Stands still until it is moved."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


def make_call(subject: str = "ada", tool: str = "look_twice_a_minute", tenant: str = "default") -> Call:
    actor = Actor(kind="agent", tenant=tenant, subject=subject)
    declared = {found.name: found for found in workload.TOOLS}[tool]
    return new_call(actor, declared, {}, SilentDoor(), None, None)


def taken(limit: RateLimit, call: Call, tries: int) -> int:
    """How many of so many calls are let through."""
    passed = 0
    for _ in range(tries):
        try:
            limit.before(call)
            passed += 1
        except RateLimited:
            continue
    return passed


def test_a_tool_takes_as_many_calls_as_it_declares(clock: Clock) -> None:
    limit = RateLimit(clock=clock)
    assert taken(limit, make_call(), 10) == 2
    assert taken(limit, make_call(tool="count_pairs"), 100) == 100


def test_the_refusal_says_when_to_try_again_and_that_is_true(clock: Clock) -> None:
    limit = RateLimit(clock=clock)
    taken(limit, make_call(), 2)
    clock.now += 7
    with pytest.raises(RateLimited, match="look_twice_a_minute is limited to 2 calls a minute") as caught:
        limit.before(make_call())
    assert caught.value.hint == "try again in 23.0 s"
    assert (caught.value.code, caught.value.layer, caught.value.retryable) == ("RATE_LIMITED", "rate", True)
    clock.now += 23
    assert taken(limit, make_call(), 5) == 1


def test_refused_calls_cost_nothing(clock: Clock) -> None:
    limit = RateLimit(clock=clock)
    passed = 0
    for _ in range(600):
        passed += taken(limit, make_call(), 1)
        clock.now += 1
    assert passed == 2 + 19


def test_waiting_fills_no_more_than_a_minute(clock: Clock) -> None:
    limit = RateLimit(clock=clock)
    taken(limit, make_call(), 2)
    clock.now += 3600
    assert taken(limit, make_call(), 10) == 2


def test_identities_do_not_share_a_limit(clock: Clock) -> None:
    limit = RateLimit(per_minute=3, clock=clock)
    for call in (make_call(), make_call("bob"), make_call(tenant="other")):
        assert taken(limit, call, 10) == 2


def test_an_identity_has_a_limit_over_all_its_tools(clock: Clock) -> None:
    limit = RateLimit(per_minute=5, clock=clock)
    assert taken(limit, make_call(tool="count_pairs"), 4) == 4
    assert taken(limit, make_call(tool="add_pair"), 4) == 1
    with pytest.raises(RateLimited, match="this identity is limited to 5 calls a minute"):
        limit.before(make_call(tool="count_pairs"))


def test_a_call_that_one_limit_refuses_does_not_use_up_the_other(clock: Clock) -> None:
    limit = RateLimit(per_minute=3, clock=clock)
    assert taken(limit, make_call(), 10) == 2
    assert taken(limit, make_call(tool="count_pairs"), 10) == 1
    clock.now += 30
    assert taken(limit, make_call(), 10) == 1


def test_the_memory_of_a_limit_is_bounded(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rate, "MAX_KEYS", 10)
    limit = RateLimit(clock=clock)
    taken(limit, make_call("frequent"), 2)
    for number in range(100):
        taken(limit, make_call(f"agent {number}"), 2)
        assert taken(limit, make_call("frequent"), 1) == 0
    assert len(limit._buckets) <= 10


async def test_a_setting_limits_every_identity(make_working: Callable[..., Fleet], tmp_path: Path) -> None:
    fleet = make_working(f"sqlite:///{tmp_path / 'rookery.db'}", rate_calls_per_minute=3)
    actor = fleet.actor()
    for _ in range(3):
        await fleet.call(actor, "ping")
    with pytest.raises(RateLimited):
        await fleet.call(actor, "count_pairs")
    await fleet.call(fleet.owner, "ping")


@pytest.mark.parametrize("per_minute", [1, 3, 7, 13, 60, 61, 600, 1001])
def test_whoever_waits_as_long_as_the_hint_says_is_not_refused_again(clock: Clock, per_minute: int) -> None:
    limit, call = RateLimit(clock=clock), make_call()
    call.tool = replace(call.tool, rate_per_minute=per_minute)
    for _ in range(30):
        taken(limit, call, per_minute)
        with pytest.raises(RateLimited) as caught:
            limit.before(call)
        waiting = re.fullmatch(r"try again in (\d+\.\d) s", caught.value.hint or "")
        assert waiting
        assert float(waiting[1]) > 0
        clock.now += float(waiting[1])
        limit.before(call)
        clock.now += 0.0137


def test_ten_thousand_identities_are_remembered_and_those_seen_last_are_kept(clock: Clock) -> None:
    limit = RateLimit(per_minute=1, clock=clock)
    calls = [make_call(f"{number}", tool="count_pairs") for number in range(10_001)]
    assert sum(taken(limit, call, 1) for call in calls[:-1]) == 10_000
    assert taken(limit, calls[0], 1) == 0
    assert taken(limit, calls[-1], 1) == 1
    # One had to go for the newest, and it was not the one that has just been refused.
    assert [taken(limit, call, 1) for call in (calls[0], calls[2], calls[1])] == [0, 0, 1]


async def test_a_refused_call_does_nothing_and_is_in_the_audit_log(working: Fleet) -> None:
    actor = working.actor()
    for _ in range(2):
        await working.call(actor, "look_twice_a_minute")
    with pytest.raises(RateLimited) as caught:
        await working.call(actor, "look_twice_a_minute")
    assert set(caught.value.as_dict()) == {"code", "message", "retryable", "hint", "layer"}
    found = await working.platform.calls.call(working.owner, "list_audit_records", {"tool": "look_twice_a_minute"})
    last, *before = found.structured["records"]
    assert (last["code"], last["layer"], last["agent"]) == ("RATE_LIMITED", "rate", actor.agent)
    assert last["outcome"] not in ("done", "allowed")
    assert [record["outcome"] for record in before] == ["allowed"] * 2


async def test_other_tools_agents_and_tenants_are_not_touched_but_other_sessions_are(working: Fleet) -> None:
    working.platform.database.direct(lambda tx: IdentityStore(tx, "other").set_up(), write=True)
    await working.call(working.owner, "create_agent", name="ada")
    for number in range(2):
        await working.call(working.actor(session=f"ses-{number}"), "look_twice_a_minute")
    with pytest.raises(RateLimited):
        await working.call(working.actor(session="ses-3"), "look_twice_a_minute")
    for actor in (working.actor(agent="ada"), working.owner, working.actor(tenant="other")):
        await working.call(actor, "look_twice_a_minute")
    await working.call(working.actor(), "ping")


async def test_calls_that_are_wrong_or_not_allowed_are_not_counted(working: Fleet) -> None:
    await working.call(working.owner, "create_agent", name="ada", permissions=[])
    for _ in range(3):
        with pytest.raises(InvalidParams):
            await working.call(working.actor(), "look_twice_a_minute", closely=True)
        with pytest.raises(PermissionDenied):
            await working.call(working.actor(agent="ada"), "look_twice_a_minute")
    for _ in range(2):
        await working.call(working.actor(), "look_twice_a_minute")
    await working.call(working.owner, "update_agent", agent="ada", permissions="default")
    for _ in range(2):
        await working.call(working.actor(agent="ada"), "look_twice_a_minute")

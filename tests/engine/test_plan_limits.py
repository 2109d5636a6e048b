"""How much begins at once, in which order, and when the money is spent."""

from typing import Any

import pytest

from rookery.engine.plan import plan
from rookery.engine.world_facts import PrFact, World
from tests.engine.worlds import (
    DAY_MS,
    DEFAULT,
    NOW,
    a_project,
    a_wish,
    a_world,
    an_issue,
    claimed,
    ended,
    live,
    paused,
    started,
    the_start,
    the_wait,
)

PHASE = ("phase", None)


def codes(world: World) -> dict[str | None, str]:
    return {wait.identifier: wait.code for wait in plan(world).waits}


def test_no_more_begin_than_the_installation_allows() -> None:
    issues = [an_issue(number) for number in range(1, 5)]
    world = a_world(*issues, max_agents=3, live=[live()])
    assert started(world) == ["P-001", "P-002"]
    assert codes(world) == {"P-003": "cap_global", "P-004": "cap_global"}
    assert the_wait(a_world(an_issue(), max_agents=0)).code == "cap_global"


def test_agents_of_projects_that_are_off_take_room_too() -> None:
    elsewhere = live(tenant="other", project_id="closed", issue_id="iss-9")
    assert the_wait(a_world(an_issue(), max_agents=1, live=[elsewhere])).code == "cap_global"


def test_no_more_begin_than_the_project_allows() -> None:
    project = a_project(max_agents=2)
    world = a_world(an_issue(1), an_issue(2), project=project, live=[live()])
    assert (started(world), codes(world)) == (["P-001"], {"P-002": "cap_project"})
    assert "2 of at most 2 agents are at work in shop" in plan(world).waits[0].reason


def test_no_more_begin_in_a_role_than_the_project_allows() -> None:
    project = a_project(role_caps={"worker": 1, "planner": 0})
    world = a_world(
        an_issue(1), an_issue(2), an_issue(3, phase="grooming"), an_issue(4, phase="research"), project=project
    )
    assert started(world) == ["P-001", "P-004"]
    assert codes(world) == {"P-002": "cap_role", "P-003": "cap_role"}


def test_a_full_project_does_not_hold_up_another() -> None:
    other = a_project(id="q", slug="other")
    issues = [an_issue(1, priority=1), an_issue(2, priority=4, project_id="q")]
    world = a_world(*issues, projects=[a_project(max_agents=0), other])
    assert (started(world), codes(world)) == (["P-002"], {"P-001": "cap_project"})


def test_roles_then_priority_then_age_then_identifier_decide_who_is_first() -> None:
    issues = [
        an_issue(1, phase="research", priority=1),
        an_issue(2, phase="grooming", priority=1),
        an_issue(3, priority=2, created_ms=NOW - 5),
        an_issue(5, priority=2, created_ms=NOW - 9),
        an_issue(4, priority=2, created_ms=NOW - 9),
        an_issue(6, priority=1, created_ms=NOW - 1),
        an_issue(7, priority=4, status="review", pr=PrFact("pr-1", "open")),
        an_issue(8, priority=3, phase="architecture", status="review", findings=[claimed(phase="architecture")]),
    ]
    project = a_project(max_agents=100)
    first = ["P-008", "P-007", "P-006", "P-004", "P-005", "P-003", "P-002", "P-001"]
    assert started(a_world(*issues, project=project)) == first
    assert started(a_world(*reversed(issues), project=project)) == first


def test_what_was_tried_before_comes_first() -> None:
    again = an_issue(2, phase="research", priority=4, attempts={PHASE: ended("failed", at_ms=NOW - DAY_MS)})
    assert started(a_world(an_issue(1, priority=1), again)) == ["P-002", "P-001"]


def test_scans_and_intakes_come_after_every_issue() -> None:
    project = a_project(attempts={"scan": ended("failed", at_ms=NOW - DAY_MS)})
    world = a_world(an_issue(), project=project, wishes=[a_wish("scan"), a_wish("intake")])
    assert [start.new.work for start in plan(world).starts] == ["phase", "intake", "scan"]
    full = a_world(an_issue(), project=project, wishes=[a_wish("scan")], max_agents=1)
    assert started(full) == ["P-001"]
    (wait,) = plan(full).waits
    assert (wait.code, wait.issue_id, wait.project_id) == ("cap_global", None, "p")


def test_one_scan_and_one_intake_go_on_in_a_project() -> None:
    scan = live(issue_id=None, work="scan", role="scanner")
    world = a_world(wishes=[a_wish("scan"), a_wish("intake"), a_wish("intake")], live=[scan])
    (start,) = plan(world).starts
    assert (start.new.work, start.new.agent, start.identifier) == ("intake", DEFAULT.id, None)
    assert plan(world).waits == []


def test_what_a_wish_says_is_handed_on() -> None:
    new = the_start(a_world(wishes=[a_wish("scan", payload={"concept": "errors"})])).new
    assert (new.payload, new.role, new.agent) == ({"concept": "errors"}, "scanner", DEFAULT.id)


@pytest.mark.parametrize(
    ("values", "code"),
    [
        ({"runtime": False}, "no_runtime"),
        ({"led": False}, "no_leader"),
        ({"pauses": paused("all")}, "paused"),
        ({"pauses": paused("agent", DEFAULT.id)}, "paused"),
        ({"agents": {}}, "no_agent"),
        ({"daily_budget_usd": 1, "spent_today_micros": 1_000_000}, "budget_global"),
    ],
)
def test_a_wish_waits_for_the_same_reasons_as_an_issue(values: dict[str, Any], code: str) -> None:
    assert the_wait(a_world(wishes=[a_wish()], **values)).code == code


def test_a_wish_for_a_project_that_is_off_or_gone_is_none() -> None:
    off = a_world(project=a_project(enabled=False), wishes=[a_wish(), a_wish(project_id="gone")])
    assert (plan(off).starts, plan(off).waits) == ([], [])


def test_an_issue_that_has_cost_its_budget_waits() -> None:
    project = a_project(issue_budget_usd=2.5)
    wait = the_wait(a_world(an_issue(spent_micros=2_500_000), project=project))
    assert (wait.code, wait.until_ms) == ("budget_issue", None)
    assert "2.50 of 2.50 dollars" in wait.reason
    assert started(a_world(an_issue(spent_micros=2_499_999), project=project)) == ["P-001"]
    assert started(a_world(an_issue(spent_micros=10**12))) == ["P-001"]


def test_the_budgets_of_a_day_hold_until_midnight() -> None:
    midnight = (NOW // DAY_MS + 1) * DAY_MS
    spent = a_project(daily_budget_usd=5, spent_today_micros=5_000_000)
    wait = the_wait(a_world(an_issue(), project=spent))
    assert (wait.code, wait.until_ms) == ("budget_project", midnight)
    everywhere = the_wait(a_world(an_issue(), daily_budget_usd=0.5, spent_today_micros=600_000))
    assert (everywhere.code, everywhere.until_ms) == ("budget_global", midnight)
    assert started(a_world(an_issue(), spent_today_micros=10**12)) == ["P-001"]


def test_a_budget_of_nothing_lets_nothing_begin() -> None:
    assert the_wait(a_world(an_issue(), project=a_project(issue_budget_usd=0))).code == "budget_issue"
    assert the_wait(a_world(an_issue(), project=a_project(daily_budget_usd=0))).code == "budget_project"

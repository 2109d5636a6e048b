from typing import Any

import pytest
import sqlalchemy as sa

from rookery.core.actor import Actor
from rookery.core.errors import InvalidParams
from rookery.core.tool import PROFILES
from rookery.lifecycle.issue_tables import issues
from tests.domains.tracker.desk import Desk
from tests.domains.tracker.leasing import claimed, run_out


async def ready(desk: Desk, actor: Actor | None = None, **wanted: Any) -> list[str]:
    found = await desk.call(actor or desk.actor("worker"), "list_ready_issues", **wanted)
    return [issue["title"] for issue in found.issues]


@pytest.mark.parametrize("wanted", [{"limit": 0}, {"limit": 101}, {"phase": "done"}, {"status": "todo"}])
async def test_wrong_arguments_are_refused(desk: Desk, wanted: dict[str, Any]) -> None:
    with pytest.raises(InvalidParams):
        await ready(desk, **wanted)


async def test_other_projects_and_tenants_are_not_listed(desk: Desk) -> None:
    await desk.project("other")
    await desk.issue("theirs", status="todo", project="other")
    await desk.call(desk.stranger, "create_issue", title="far away")
    await desk.issue("ours", status="todo")
    assert await ready(desk) == ["ours"]
    assert await ready(desk, desk.actor("worker", project="other")) == ["theirs"]
    assert await ready(desk, desk.stranger) == ["far away"]


@pytest.mark.parametrize("status", ["in_progress", "review", "blocked", "done", "cancelled"])
async def test_what_is_not_open_for_work_is_not_listed(desk: Desk, status: str) -> None:
    await desk.issue(status=status)
    assert await ready(desk, desk.owner) == []


async def test_what_nobody_has_triaged_is_not_listed(desk: Desk) -> None:
    await desk.call(desk.actor("worker"), "create_issue", title="an idea")
    assert await ready(desk, desk.owner) == []


async def test_an_issue_is_listed_once_everything_it_depends_on_is_done(desk: Desk) -> None:
    first = await desk.issue("first", status="review")
    second = await desk.issue("second", status="review")
    await desk.issue("last", status="todo", depends_on=[first.identifier, second.identifier])
    assert await ready(desk) == []
    await desk.call(desk.owner, "set_issue_status", issue_id=first.id, status="done")
    assert await ready(desk) == []
    await desk.call(desk.owner, "set_issue_status", issue_id=second.id, status="done")
    assert await ready(desk) == ["last"]


async def test_a_cancelled_dependency_is_not_done(desk: Desk) -> None:
    first = await desk.issue("first", status="cancelled")
    last = await desk.issue("last", status="todo", depends_on=[first.identifier])
    assert await ready(desk) == []
    await desk.call(desk.owner, "edit_issue", issue_id=last.id, depends_on=[])
    assert await ready(desk) == ["last"]


async def test_what_is_held_is_listed_again_when_the_lease_has_run_out(desk: Desk) -> None:
    issue = await desk.issue("work", status="todo")
    holder = await claimed(desk, issue, "one")
    assert await ready(desk) == await ready(desk, holder) == []
    run_out(desk, issue)
    assert await ready(desk) == ["work"]


async def test_workers_do_not_see_what_needs_planning(desk: Desk) -> None:
    await desk.issue("vague", status="todo", labels=["needs-planning", "ui"])
    await desk.issue("clear", status="todo", labels=["ui"])
    assert await ready(desk) == ["clear"]
    assert await ready(desk, desk.actor("planner")) == await ready(desk, desk.owner) == ["vague", "clear"]


async def test_the_most_urgent_come_first_and_of_those_the_oldest(desk: Desk) -> None:
    made = [await desk.issue(title, status="todo", priority=priority) for title, priority in WISHES]
    for age, issue in enumerate(made):
        desk.change(sa.update(issues).where(issues.c.id == issue.id).values(created_ms=1000 - age))
    abandoned = made[2]
    await claimed(desk, abandoned, "one")
    run_out(desk, abandoned)
    assert await ready(desk) == ["now", "today", "soon", "later"]
    assert await ready(desk, limit=2) == ["now", "today"]


WISHES = (("soon", 2), ("later", 3), ("today", 2), ("now", 1))


async def test_one_phase_can_be_asked_for(desk: Desk) -> None:
    for phase in ("research", "ready"):
        await desk.issue(phase, status="todo", phase=phase)
    assert await ready(desk, phase="research") == ["research"]
    assert await ready(desk, phase="grooming") == []
    assert await ready(desk) == ["research", "ready"]


async def test_an_issue_is_listed_with_its_labels_and_without_its_description(desk: Desk) -> None:
    issue = await desk.issue("work", status="todo", labels=["ui"], description="long")
    found = await desk.call(desk.actor("scanner"), "list_ready_issues")
    wanted = ("id", "identifier", "title", "status", "priority", "size", "created_ms", "updated_ms")
    assert found.issues == [{**{name: getattr(issue, name) for name in wanted}, "labels": ["phase:ready", "ui"]}]


def test_every_profile_has_it(desk: Desk) -> None:
    assert all("list_ready_issues" in desk.fleet.names(desk.actor(profile)) for profile in PROFILES.values())

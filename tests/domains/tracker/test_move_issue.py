import asyncio
from typing import Any

import pytest
import sqlalchemy as sa

from rookery.core.errors import Conflict, InvalidParams, NotFound, PermissionDenied, RookeryError
from rookery.domains.tracker.tables import (
    comments,
    finding_processing,
    findings,
    issue_changes,
    issue_labels,
    prs,
    tracker_projects,
)
from rookery.lifecycle.issue_tables import issues
from tests.domains.tracker.desk import Desk
from tests.domains.tracker.moving import WHY, accept, move, refused


async def test_only_a_planner_with_an_issue_has_it(desk: Desk) -> None:
    await desk.project("api")
    issue = await desk.issue()
    for profile in ("worker", "researcher", "judge", "scanner", "architect", "intake"):
        await refused(desk, PermissionDenied, desk.actor(profile, issue))
    await refused(desk, PermissionDenied, desk.actor("planner"))


async def test_a_target_that_is_not_there_or_not_open_to_the_actor_is_not_found(desk: Desk) -> None:
    await desk.project("api")
    secret = await desk.project("secret")
    await desk.call(desk.owner, "set_project_members", project="secret", agents=[])
    foreign = await desk.call(desk.stranger, "create_project", slug="foreign")
    planner = desk.actor("planner", await desk.issue())
    wanted = ("nope", "'; DROP TABLE issues", "secret", secret.id, "foreign", foreign.id)
    errors = [await refused(desk, NotFound, planner, target_project_id=name) for name in wanted]
    assert {error.message.replace(name, "X") for error, name in zip(errors, wanted, strict=True)} == {
        "there is no project X"
    }


async def test_arguments_out_of_bounds_are_refused(desk: Desk) -> None:
    await desk.project("api")
    planner = desk.actor("planner", await desk.issue())
    for changes in ({"reason": " "}, {"reason": "x" * 5001}, {"target_project_id": ""}, {"issue_id": "DEF-001"}):
        await refused(desk, InvalidParams, planner, **changes)


async def test_an_issue_cannot_be_moved_to_where_it_is(desk: Desk) -> None:
    issue = await desk.issue()
    for name in ("default", "DEFAULT", issue.project_id):
        error = await refused(desk, Conflict, desk.actor("planner", issue), target_project_id=name)
        assert "in default already" in error.message


@pytest.mark.parametrize("status", ["done", "cancelled"])
async def test_a_finished_issue_stays_where_it_is(desk: Desk, status: str) -> None:
    await desk.project("api")
    issue = await desk.issue(status=status)
    assert status in (await refused(desk, Conflict, desk.actor("planner", issue))).message


async def test_a_family_is_not_torn_apart_while_some_of_it_is_open(desk: Desk) -> None:
    await desk.project("api")
    parent = await desk.issue()
    child = await desk.call(desk.actor("worker", parent), "create_subtask", title="part")
    error = await refused(desk, Conflict, desk.actor("planner", parent))
    assert f"open subtasks {child.identifier}" in error.message
    error = await refused(desk, Conflict, desk.actor("planner", child))
    assert f"open parent {parent.identifier}" in error.message
    await desk.call(desk.person(), "set_issue_status", issue_id=child.id, status="cancelled")
    assert (await move(desk, parent)).status == "todo"


async def test_an_issue_that_another_holds_stays(desk: Desk) -> None:
    await desk.project("api")
    issue = await desk.issue()
    held = {"lease_subject": "agt-other", "lease_session": "s1", "lease_name": "ada", "lease_until_ms": 10**14}
    desk.change(sa.update(issues).where(issues.c.id == issue.id).values(**held, fence=2))
    assert "ada" in (await refused(desk, Conflict, desk.actor("planner", issue))).message
    await refused(desk, Conflict, desk.actor("planner", issue), fence=1)


async def test_a_moved_issue_has_a_new_name_and_answers_to_the_old_one(desk: Desk) -> None:
    api = await desk.project("api")
    await desk.issue(project="api")
    issue = await desk.issue(phase="grooming", labels=["backend"], priority=1)
    moved = await move(desk, issue)
    assert moved.model_dump() == {
        "identifier": "API-002",
        "moved_from": issue.identifier,
        "project": "api",
        "status": "todo",
        "labels": ["phase:grooming", "backend", f"moved-from:{issue.identifier}"],
        "files_copied": 0,
    }
    now = desk.reload(issue)
    assert (now.project_id, now.identifier, now.number, now.priority) == (api.id, "API-002", 2, 1)
    for name in (issue.identifier, "API-002", "api-2"):
        assert desk.actor("worker", name).issue == issue.id
    rows = desk.rows(sa.select(issue_labels).where(issue_labels.c.issue_id == issue.id))
    assert {row.project_id for row in rows} == {api.id}
    again = await desk.issue()
    assert again.identifier != issue.identifier


@pytest.mark.parametrize("status", ["todo", "in_progress", "review", "blocked"])
async def test_from_every_open_status_it_starts_again_as_todo_and_the_history_says_so(desk: Desk, status: str) -> None:
    await desk.project("api")
    issue = await desk.issue(status=status)
    desk.change(sa.update(issues).where(issues.c.id == issue.id).values(rejections=2))
    seen = max(row.seq for row in desk.rows(sa.select(issue_changes))) if desk.count(issue_changes) else 0
    moved = await move(desk, issue)
    now = desk.reload(issue)
    assert (now.status, now.blocked_on, now.rejections, now.lease_until_ms) == ("todo", None, 0, None)
    rows = desk.rows(sa.select(issue_changes).where(issue_changes.c.seq > seen).order_by(issue_changes.c.seq))
    noted = {row.field: (row.old, row.new) for row in rows}
    expected = {"project": ("default", "api"), "identifier": (issue.identifier, moved.identifier)}
    assert noted == expected | ({} if status == "todo" else {"status": (status, "todo")})
    assert {(row.author, row.why) for row in rows} == {("planner", WHY)}
    told = desk.rows(sa.select(comments).where(comments.c.issue_id == issue.id).order_by(comments.c.seq))[-1]
    assert told.content == f"**moved** from {issue.identifier} to {moved.identifier}: {WHY}"


async def test_a_backlog_issue_and_its_holders_lease_go_too(desk: Desk) -> None:
    await desk.project("api")
    issue = await desk.issue()
    planner = desk.actor("planner", issue, session="s1")
    held = {"lease_subject": planner.subject, "lease_session": "s1", "lease_name": "me", "lease_until_ms": 10**14}
    desk.change(sa.update(issues).where(issues.c.id == issue.id).values(**held, fence=3, status="backlog"))
    await desk.call(planner, "move_issue", target_project_id="api", reason=WHY, fence=3)
    now = desk.reload(issue)
    assert (now.status, now.lease_subject, now.lease_session, now.lease_name) == ("todo", None, None, None)
    with pytest.raises(RookeryError):
        await desk.call(planner, "add_comment", content="late", fence=3)


async def test_a_phase_that_the_target_does_not_have_becomes_its_first(desk: Desk) -> None:
    api = await desk.project("api")
    await desk.issue(project="api")
    desk.change(
        sa.update(tracker_projects)
        .where(tracker_projects.c.project_id == api.id)
        .values(settings={"pipeline": ["architecture", "ready"]})
    )
    kept, reset = await desk.issue(phase="ready"), await desk.issue(phase="grooming")
    assert (await move(desk, kept)).labels[0] == "phase:ready"
    assert (await move(desk, reset)).labels[0] == "phase:architecture"
    assert desk.reload(reset).phase == "architecture"


async def test_phases_with_accepted_artifacts_are_to_be_skipped(desk: Desk) -> None:
    await desk.project("api")
    issue = await desk.issue(phase="grooming")
    await accept(desk, issue, "architecture", "design")
    await accept(desk, issue, "research", "research")
    await accept(desk, issue, "grooming", "sent back by a person since")
    other = await desk.issue(phase="grooming")
    await accept(desk, other, "research", "rejected", outcome="rejected")
    moved = await move(desk, issue)
    assert moved.labels == [
        "phase:grooming",
        f"moved-from:{issue.identifier}",
        "skip:architecture",
        "skip:research",
    ]
    assert (await move(desk, other)).labels == ["phase:grooming", f"moved-from:{other.identifier}"]
    assert desk.count(findings) == 4


async def test_waiting_claims_and_open_pull_requests_are_left_behind(desk: Desk) -> None:
    await desk.project("api")
    issue = await desk.issue(status="review")
    await accept(desk, issue, "ready", "claimed")
    desk.change(sa.update(finding_processing).values(outcome="awaiting_verdict", processed_ms=None))
    row: dict[str, Any] = dict.fromkeys(("branch", "base", "diff", "risk_level", "subject"), "x")
    row |= {"stats": {}, "risk_score": 0, "risk_reasons": [], "source_lines": 1, "created_ms": 1, "updated_ms": 1}
    row |= {"tenant": issue.tenant, "project_id": issue.project_id, "issue_id": issue.id}
    for revision, status in enumerate(("closed", "rejected", "approved", "open"), start=1):
        reason = {"rejected": "too big", "approved": "fine"}.get(status)
        desk.change(sa.insert(prs).values(**row, id=f"pr-{revision}", revision=revision, status=status, reason=reason))
    moved = await move(desk, issue)
    (waiting,) = desk.rows(sa.select(finding_processing))
    assert waiting.outcome == "moved"
    assert waiting.processed_ms > 0
    found = desk.rows(sa.select(prs).order_by(prs.c.revision))
    assert [(each.status, each.reason) for each in found] == [
        ("closed", None),
        ("rejected", "too big"),
        ("closed", "fine"),
        ("closed", f"the issue was moved and is {moved.identifier} now"),
    ]


async def test_dependencies_hold_across_projects(desk: Desk) -> None:
    await desk.project("api")
    first = await desk.issue()
    second = await desk.issue(depends_on=[first.identifier])
    moved = await move(desk, first)
    shown = await desk.call(desk.actor("planner", second), "get_issue")
    assert moved.identifier in shown.model_dump_json()


async def test_an_issue_can_go_on_and_come_back(desk: Desk) -> None:
    await desk.project("api")
    issue = await desk.issue()
    await move(desk, issue)
    back = await move(desk, issue, "default")
    assert back.identifier != issue.identifier
    assert back.labels == ["phase:ready", "moved-from:API-001", f"moved-from:{issue.identifier}"]
    for name in (issue.identifier, "API-001", back.identifier):
        assert desk.actor("worker", name).issue == issue.id


async def test_of_two_planners_who_move_it_at_once_one_is_refused(desk: Desk) -> None:
    for slug in ("api", "web"):
        await desk.project(slug)
    issue = await desk.issue()
    planner = desk.actor("planner", issue, project="default")
    calls = [
        desk.call(planner, "move_issue", target_project_id=slug, reason=WHY) for slug in ("api", "web", "api", "web")
    ]
    ends = await asyncio.gather(*calls, return_exceptions=True)
    assert sorted(type(end).__name__ for end in ends) == ["Moved", "NotFound", "NotFound", "NotFound"]
    numbers = desk.rows(sa.select(sa.func.sum(tracker_projects.c.next_number - 1)))
    assert int(numbers[0][0]) == 2


async def test_followers_of_both_boards_and_both_names_hear_of_it(desk: Desk) -> None:
    await desk.project("api")
    issue = await desk.issue()
    heard: list[str | None] = []
    stop = desk.fleet.platform.events.subscribe(lambda event: heard.append(event.subject))
    await move(desk, issue)
    stop()
    assert {f"issue://{issue.identifier}", "issue://API-001", "project://default/board", "project://api/board"} <= {
        *heard
    }

import asyncio

import pytest
import sqlalchemy as sa

from rookery.core.errors import Conflict, InvalidParams, NotFound, PermissionDenied
from rookery.domains.tracker.tables import issue_changes
from tests.domains.tracker.desk import Desk


async def test_no_agent_has_it(desk: Desk) -> None:
    issue = await desk.issue()
    for profile in ("worker", "planner", None):
        with pytest.raises(PermissionDenied):
            await desk.call(desk.actor(profile, issue), "edit_issue", issue_id=issue.id, title="mine now")


async def test_what_is_elsewhere_is_not_found(desk: Desk) -> None:
    await desk.project("other")
    issue = await desk.issue(project="other")
    for person in (desk.owner, desk.stranger):
        with pytest.raises(NotFound):
            await desk.call(person, "edit_issue", issue_id=issue.id, title="mine now")
    assert desk.reload(issue).title == "login fails"


async def test_a_finished_issue_stays_as_it_was(desk: Desk) -> None:
    issue = await desk.issue(status="done")
    with pytest.raises(Conflict, match="is done"):
        await desk.call(desk.owner, "edit_issue", issue_id=issue.id, title="again")


async def test_an_issue_never_waits_for_itself(desk: Desk) -> None:
    first = await desk.issue("first")
    second = await desk.issue("second", depends_on=[first.id])
    third = await desk.issue("third", depends_on=[second.id])
    for waits in (first, second, third):
        with pytest.raises(Conflict, match="would wait for itself"):
            await desk.call(desk.owner, "edit_issue", issue_id=first.id, depends_on=[waits.id], title="changed")
    assert desk.reload(first).title == "first"
    await desk.call(desk.owner, "edit_issue", issue_id=third.id, depends_on=[first.id])


async def test_two_edits_at_once_do_not_close_a_circle(desk: Desk) -> None:
    first, second = await desk.issue("first"), await desk.issue("second")
    edits = [
        desk.call(desk.owner, "edit_issue", issue_id=one.id, depends_on=[other.id])
        for one, other in ((first, second), (second, first)) * 3
    ]
    ended = await asyncio.gather(*edits, return_exceptions=True)
    assert any(isinstance(each, Conflict) for each in ended)
    waiting = [
        bool((await desk.call(desk.owner, "get_issue", issue_id=issue.id)).depends_on) for issue in (first, second)
    ]
    assert sorted(waiting) == [False, True]


async def test_a_phase_must_be_one_of_the_projects(desk: Desk) -> None:
    await desk.call(desk.owner, "configure_project", pipeline=["research", "ready"])
    issue = await desk.issue()
    with pytest.raises(InvalidParams, match="no phase grooming"):
        await desk.call(desk.owner, "edit_issue", issue_id=issue.id, phase="grooming")
    with pytest.raises(InvalidParams, match="phase is no label"):
        await desk.call(desk.owner, "edit_issue", issue_id=issue.id, labels=["phase:research"])


async def test_it_says_what_is_new_and_notes_it(desk: Desk) -> None:
    first = await desk.issue("first")
    issue = await desk.issue("second", labels=["ui"])
    told = await desk.call(
        desk.owner,
        "edit_issue",
        issue_id=issue.id,
        title="second",
        priority=1,
        size="L",
        phase="research",
        labels=["api", "ui"],
        depends_on=[first.id],
    )
    assert told.changed == ["priority", "size", "phase", "labels", "depends_on"]
    shown = await desk.call(desk.owner, "get_issue", issue_id=issue.id, include_history=True)
    assert (shown.priority, shown.size, shown.labels) == (1, "L", ["phase:research", "api", "ui"])
    assert [each["field"] for each in shown.history[-5:]] == told.changed
    again = await desk.call(desk.owner, "edit_issue", issue_id=issue.id, labels=["ui", "api"], depends_on=[first.id])
    assert again.changed == []


async def test_the_history_cannot_be_rewritten(desk: Desk) -> None:
    issue = await desk.issue()
    for statement in (sa.update(issue_changes).values(author="nobody"), sa.delete(issue_changes)):
        with pytest.raises(Exception, match="append-only"):
            desk.change(statement)
    told = await desk.call(desk.owner, "get_issue", issue_id=issue.id, include_history=True)
    assert [each["author"] for each in told.history] == ["owner"]

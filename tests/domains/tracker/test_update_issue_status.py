import asyncio

import pytest

from rookery.core.errors import Conflict, InvalidParams, NotFound, PermissionDenied
from rookery.domains.tracker.tables import comments, issue_changes
from tests.domains.tracker.desk import Desk


async def test_judges_scanners_and_intake_do_not_move_issues(desk: Desk) -> None:
    issue = await desk.issue()
    for profile in ("judge", "scanner", "intake"):
        with pytest.raises(PermissionDenied):
            await desk.call(desk.actor(profile, issue), "update_issue_status", status="review")
    assert desk.reload(issue).status == "in_progress"


async def test_other_statuses_are_not_an_agents_to_give(desk: Desk) -> None:
    issue = await desk.issue()
    for status in ("done", "cancelled", "backlog", "in_progress", "", "REVIEW"):
        with pytest.raises(InvalidParams, match="status"):
            await desk.call(desk.actor("worker", issue), "update_issue_status", status=status)
    with pytest.raises(InvalidParams, match="reason"):
        await desk.call(desk.actor("worker", issue), "update_issue_status", status="todo", reason="x" * 5001)
    assert desk.reload(issue).status == "in_progress"


async def test_only_from_in_progress_and_the_error_names_where_it_could_go(desk: Desk) -> None:
    for status in ("todo", "review", "blocked", "done", "cancelled"):
        issue = await desk.issue(status=status)
        changes = desk.count(issue_changes)
        with pytest.raises(Conflict, match=f"is {status}") as caught:
            await desk.call(desk.actor("worker", issue), "update_issue_status", status="review", reason="done")
        assert caught.value.hint == "from in_progress it can become review, todo or blocked"
        assert desk.reload(issue).status == status
        assert (desk.count(comments), desk.count(issue_changes)) == (0, changes)


async def test_the_reason_is_kept_as_a_comment(desk: Desk) -> None:
    for status in ("review", "todo", "blocked"):
        issue = await desk.issue()
        worker = desk.actor("worker", issue)
        told = await desk.call(worker, "update_issue_status", status=status, reason="all tests pass")
        assert (told.identifier, told.status) == (issue.identifier, status)
        assert desk.reload(issue).status == status
        (comment,) = (await desk.call(worker, "get_issue")).comments
        assert comment["content"] == f"**{status}**: all tests pass"


async def test_of_two_who_move_it_at_once_one_is_refused(desk: Desk) -> None:
    issue = await desk.issue()
    worker = desk.actor("worker", issue)
    moves = [desk.call(worker, "update_issue_status", status=status) for status in ("review", "todo") * 4]
    ended = await asyncio.gather(*moves, return_exceptions=True)
    assert sum(not isinstance(each, Exception) for each in ended) == 1
    assert all(isinstance(each, Conflict) for each in ended if isinstance(each, Exception))


async def test_an_issue_that_was_moved_away_is_out_of_reach(desk: Desk) -> None:
    await desk.project("other")
    issue = await desk.issue(phase="grooming")
    worker = desk.actor("worker", issue)
    await desk.call(desk.actor("planner", issue), "move_issue", target_project_id="other", reason="belongs there")
    with pytest.raises(NotFound, match="OTH-001"):
        await desk.call(worker, "update_issue_status", status="todo")

import pytest

from rookery.core.errors import Conflict, NotFound, PermissionDenied
from tests.domains.tracker.desk import Desk
from tests.domains.tracker.reviewing import author


async def test_no_agent_has_it(desk: Desk) -> None:
    issue = await desk.issue()
    for profile in ("worker", "planner", "judge", None):
        with pytest.raises(PermissionDenied):
            await desk.call(desk.actor(profile, issue), "set_issue_status", issue_id=issue.id, status="done")
    assert desk.reload(issue).status == "in_progress"


async def test_issues_of_other_projects_and_tenants_are_not_found(desk: Desk) -> None:
    await desk.project("other")
    issue = await desk.issue(project="other")
    for person in (desk.owner, desk.stranger):
        with pytest.raises(NotFound):
            await desk.call(person, "set_issue_status", issue_id=issue.id, status="cancelled")
    assert desk.reload(issue).status == "in_progress"


async def test_a_person_cannot_skip_the_review(desk: Desk) -> None:
    issue = await desk.issue()
    with pytest.raises(Conflict, match="cannot become done") as caught:
        await desk.call(desk.owner, "set_issue_status", issue_id=issue.id, status="done")
    assert "review, todo, blocked or cancelled" in (caught.value.hint or "")


async def test_finished_issues_do_not_come_back(desk: Desk) -> None:
    for status in ("done", "cancelled"):
        issue = await desk.issue(status=status)
        for target in ("todo", "in_progress", "backlog", "cancelled", "done"):
            with pytest.raises(Conflict):
                await desk.call(desk.owner, "set_issue_status", issue_id=issue.id, status=target)


async def test_a_person_triages_and_answers(desk: Desk) -> None:
    made = await desk.call(desk.actor("worker"), "create_issue", title="found something")
    told = await desk.call(desk.owner, "set_issue_status", issue_id=made.identifier, status="todo", reason="good find")
    assert told.status == "todo"
    (comment,) = (await desk.call(desk.owner, "get_issue", issue_id=made.id)).comments
    assert (comment["author"], comment["content"]) == ("owner", "**todo**: good find")


async def test_a_finished_issue_leaves_no_pull_request_undecided(desk: Desk) -> None:
    ends = (
        (False, "cancelled", "closed"),
        (True, "cancelled", "closed"),
        (False, "done", "closed"),
        (True, "done", "merged"),
    )
    for approve, status, settled in ends:
        work = await author(desk)
        await work.open()
        if approve:
            await desk.call(work.person, "approve_pr")
        await desk.call(work.person, "set_issue_status", issue_id=work.issue.id, status=status)
        assert [pr.status for pr in work.prs()] == [settled]

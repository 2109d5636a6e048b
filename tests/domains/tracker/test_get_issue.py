import pytest
import sqlalchemy as sa

from rookery.core.errors import NotFound, PermissionDenied
from rookery.domains.tracker.tables import comments
from tests.domains.tracker.desk import Desk


async def test_an_agent_without_a_profile_has_no_tool_of_the_tracker(desk: Desk) -> None:
    issue = await desk.issue()
    with pytest.raises(PermissionDenied):
        await desk.call(desk.fleet.actor(), "get_issue", issue_id=issue.id)


async def test_what_another_tenant_has_is_not_there(desk: Desk) -> None:
    issue = await desk.issue()
    for name in (issue.id, issue.identifier, "DEF-999", "iss-1", "nonsense"):
        with pytest.raises(NotFound, match=f"there is no issue {name}"):
            await desk.call(desk.stranger, "get_issue", issue_id=name)


async def test_a_project_without_a_role_is_not_there_either(desk: Desk) -> None:
    await desk.project("secret")
    hidden = await desk.issue(project="secret")
    assert (await desk.call(desk.actor("worker"), "get_issue", issue_id=hidden.id)).identifier == hidden.identifier
    await desk.call(desk.owner, "set_project_members", project="secret", agents=[])
    told = []
    for name in (hidden.id, "DEF-999"):
        with pytest.raises(NotFound) as caught:
            await desk.call(desk.actor("worker"), "get_issue", issue_id=name)
        told.append((caught.value.message.replace(name, "X"), caught.value.hint))
    assert told[0] == told[1]
    assert (await desk.call(desk.owner, "get_issue", issue_id=hidden.id)).title == "login fails"


async def test_without_a_bound_issue_one_must_be_named(desk: Desk) -> None:
    with pytest.raises(NotFound, match="no issue is bound"):
        await desk.call(desk.actor("worker"), "get_issue")


async def test_it_reads_the_bound_issue_with_everything_recorded(desk: Desk) -> None:
    first = await desk.issue("first", status="todo")
    issue = await desk.issue("second", description="why", labels=["ui"], depends_on=[first.identifier])
    worker = desk.actor("worker", issue)
    await desk.call(worker, "add_comment", content="looking at it")
    await desk.call(worker, "add_finding", category="bug", summary="a race")
    told = await desk.call(worker, "get_issue")
    assert (told.title, told.description, told.status) == ("second", "why", "in_progress")
    assert told.labels == ["phase:ready", "ui"]
    assert [(each["author"], each["content"]) for each in told.comments] == [("worker", "looking at it")]
    assert [(each["category"], each["summary"]) for each in told.findings] == [("bug", "a race")]
    assert [(each["identifier"], each["status"]) for each in told.depends_on] == [("DEF-001", "todo")]
    assert (told.learnings, told.runs) == ([], [])
    assert (told.pr, told.lease, told.test_health, told.history) == (None, None, None, None)
    assert told.totals == {"findings": 1, "comments": 1, "learnings": 0}


async def test_the_identifier_is_understood_in_any_case_and_without_zeros(desk: Desk) -> None:
    issue = await desk.issue()
    for name in ("DEF-001", "def-001", "Def-1", "DEF-0001", " DEF-1 ", issue.id):
        assert (await desk.call(desk.actor("judge"), "get_issue", issue_id=name)).id == issue.id


async def test_the_history_says_who_changed_what(desk: Desk) -> None:
    issue = await desk.issue(status="todo")
    await desk.call(desk.owner, "edit_issue", issue_id=issue.id, title="login is slow", priority=1)
    await desk.call(desk.owner, "set_issue_status", issue_id=issue.id, status="in_progress")
    worker = desk.actor("worker", issue)
    await desk.call(worker, "update_issue_status", status="blocked", reason="needs a decision")
    told = await desk.call(worker, "get_issue", include_history=True)
    assert [(each["field"], each["old"], each["new"], each["author"]) for each in told.history] == [
        ("title", "login fails", "login is slow", "owner"),
        ("priority", 3, 1, "owner"),
        ("status", "todo", "in_progress", "owner"),
        ("status", "in_progress", "blocked", "worker"),
    ]
    assert told.history[-1]["why"] == "needs a decision"
    assert told.blocked_on == "person"


async def test_of_many_comments_the_newest_fifty_are_shown_and_all_are_counted(desk: Desk) -> None:
    issue = await desk.issue()
    row = {"tenant": "default", "issue_id": issue.id, "author": "worker", "subject": "x", "created_ms": 1}
    for number in range(60):
        desk.change(sa.insert(comments).values(id=f"cmt-{number}", content=str(number), **row))
    told = await desk.call(desk.owner, "get_issue", issue_id=issue.id)
    assert [each["content"] for each in told.comments] == [str(number) for number in range(10, 60)]
    assert told.totals["comments"] == 60

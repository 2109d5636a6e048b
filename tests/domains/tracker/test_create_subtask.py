import pytest

from rookery.core.errors import Conflict, InvalidParams, NotFound, PermissionDenied
from rookery.lifecycle.issue_tables import issues
from tests.domains.tracker.desk import Desk


async def test_researchers_judges_scanners_and_intake_do_not_split_work(desk: Desk) -> None:
    issue = await desk.issue()
    for profile in ("researcher", "judge", "scanner", "intake"):
        with pytest.raises(PermissionDenied):
            await desk.call(desk.actor(profile, issue), "create_subtask", title="part")
    assert desk.count(issues) == 1


async def test_without_a_bound_issue_there_is_no_parent(desk: Desk) -> None:
    with pytest.raises(PermissionDenied) as caught:
        await desk.call(desk.actor("worker"), "create_subtask", title="part")
    assert caught.value.layer == "binding"


async def test_only_an_issue_in_progress_can_be_split(desk: Desk) -> None:
    for status in ("todo", "review", "blocked", "done", "cancelled"):
        issue = await desk.issue(status=status)
        before = desk.count(issues)
        with pytest.raises(Conflict):
            await desk.call(desk.actor("worker", issue), "create_subtask", title="part")
        assert desk.count(issues) == before


async def test_labels_of_the_pipeline_are_refused(desk: Desk) -> None:
    issue = await desk.issue()
    with pytest.raises(InvalidParams, match="skip:ready"):
        await desk.call(desk.actor("worker", issue), "create_subtask", title="part", labels=["skip:ready"])
    assert desk.reload(issue).status == "in_progress"


async def test_the_parent_is_blocked_until_its_last_subtask_is_finished(desk: Desk) -> None:
    parent = await desk.issue()
    worker = desk.actor("worker", parent)
    first = await desk.call(worker, "create_subtask", title="one", priority=2)
    second = await desk.call(worker, "create_subtask", title="two")
    assert (first.status, first.labels) == ("todo", ["phase:ready"])
    blocked = desk.reload(parent)
    assert (blocked.status, blocked.blocked_on) == ("blocked", "subtasks")
    told = await desk.call(worker, "get_issue")
    assert [each["identifier"] for each in told.subtasks] == [first.identifier, second.identifier]
    assert (await desk.call(worker, "get_issue", issue_id=first.id)).parent == parent.identifier
    for status in ("in_progress", "review", "done"):
        await desk.call(desk.owner, "set_issue_status", issue_id=first.id, status=status)
        assert desk.reload(parent).status == "blocked"
    await desk.call(desk.owner, "set_issue_status", issue_id=second.id, status="cancelled")
    unblocked = desk.reload(parent)
    assert (unblocked.status, unblocked.blocked_on) == ("todo", None)


async def test_a_parent_that_waits_for_a_person_is_not_unblocked_by_a_subtask(desk: Desk) -> None:
    parent = await desk.issue()
    worker = desk.actor("worker", parent)
    child = await desk.call(worker, "create_subtask", title="one")
    await desk.call(desk.owner, "set_issue_status", issue_id=parent.id, status="todo")
    await desk.call(desk.owner, "set_issue_status", issue_id=parent.id, status="in_progress")
    await desk.call(worker, "update_issue_status", status="blocked", reason="which database?")
    await desk.call(desk.owner, "set_issue_status", issue_id=child.id, status="cancelled")
    assert desk.reload(parent).status == "blocked"


async def test_another_tenants_issue_cannot_be_bound(desk: Desk) -> None:
    theirs = await desk.call(desk.stranger, "create_issue", title="theirs")
    with pytest.raises(NotFound, match="there is no issue"):
        desk.actor("worker", theirs.id)

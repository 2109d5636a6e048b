"""What has changed on a board since a moment."""

from rookery.domains.tracker.board_changes import MOST, Changes, Mark, changes_since, mark_of
from tests.domains.tracker.desk import Desk
from tests.domains.tracker.test_board_resource import fill


def mark(desk: Desk) -> Mark:
    return desk.fleet.platform.database.direct(lambda tx: mark_of(tx, desk.owner.project or ""))


def since(desk: Desk, moment: Mark, known: frozenset[int] = frozenset(), tenant: str = "default") -> Changes:
    project = desk.owner.project or ""
    return desk.fleet.platform.database.direct(lambda tx: changes_since(tx, tenant, project, moment, known))


def test_only_what_we_wrote_is_a_mark() -> None:
    assert Mark.parse("12.3") == Mark(12, 3)
    for text in ("", "12", "12.", "-1.2", "a.b", "1.2.3", "٣.1", "9" * 20 + ".1"):
        assert Mark.parse(text) is None


async def test_changes_of_other_projects_and_tenants_are_none_of_ours(desk: Desk) -> None:
    await desk.project("other")
    issue = await desk.issue(status="todo")
    before = mark(desk)
    await desk.issue(project="other")
    await desk.call(desk.owner, "edit_issue", issue_id=issue.id, priority=1)
    assert since(desk, before).ids == {issue.id}
    assert since(desk, before, tenant="other").ids == frozenset()


async def test_new_and_changed_issues_are_found_once(desk: Desk) -> None:
    issue = await desk.issue(status="todo")
    before = mark(desk)
    assert since(desk, before).ids == frozenset()
    new = await desk.issue("new", status="todo")
    await desk.call(desk.owner, "edit_issue", issue_id=issue.id, labels=["flaky"])
    found = since(desk, before)
    assert found.ids == {issue.id, new.id}
    assert since(desk, found.mark).ids == frozenset()
    assert since(desk, Mark(before.change, found.mark.number), found.seqs).ids == frozenset()


async def test_a_change_that_was_committed_late_is_found_by_its_number(desk: Desk) -> None:
    issue = await desk.issue(status="todo")
    before = mark(desk)
    await desk.call(desk.owner, "edit_issue", issue_id=issue.id, priority=1)
    await desk.call(desk.owner, "edit_issue", issue_id=issue.id, priority=2)
    first, last = sorted(since(desk, before).seqs)
    # As if the first of the two had not been there yet when the second was seen.
    found = since(desk, before, frozenset({last}))
    assert found.ids == {issue.id}
    assert first in found.seqs


async def test_what_was_moved_to_another_project_is_a_change_of_both(desk: Desk) -> None:
    await desk.project("other")
    issue = await desk.issue(status="todo")
    before = mark(desk)
    person = desk.fleet.actor(as_owner=True, issue=issue.id)
    await desk.call(person, "move_issue", target_project_id="other", reason="it belongs there")
    assert since(desk, before).ids == {issue.id}


async def test_with_too_much_at_once_the_board_is_to_be_read_again(desk: Desk) -> None:
    like = await desk.issue(status="todo")
    before = mark(desk)
    fill(desk, like, MOST - 1, 1000)
    assert len(since(desk, Mark(before.change, 1)).ids or ()) == MOST
    fill(desk, like, 1, 2000)
    assert since(desk, Mark(before.change, 1)).ids is None

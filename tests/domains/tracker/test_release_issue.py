from typing import Any

import pytest
import sqlalchemy as sa

from rookery.core.actor import Actor
from rookery.core.errors import Conflict, InvalidParams, NotFound, PermissionDenied
from rookery.domains.tracker.tables import comments, issue_changes
from tests.domains.tracker.desk import Desk
from tests.domains.tracker.leasing import claimed, run_out


async def refusal(desk: Desk, actor: Actor, kind: type[Exception] = Conflict, **wanted: Any) -> str:
    with pytest.raises(kind) as caught:
        await desk.call(actor, "release_issue", **wanted)
    return str(caught.value)


async def test_only_profiles_that_work_on_issues_have_it(desk: Desk) -> None:
    issue = await desk.issue(status="todo")
    await refusal(desk, desk.actor("judge"), PermissionDenied, issue_id=issue.id)


async def test_an_over_long_reason_is_refused(desk: Desk) -> None:
    issue = await desk.issue(status="todo")
    holder = await claimed(desk, issue, "one")
    await refusal(desk, holder, InvalidParams, reason="x" * 5_001)


async def test_what_is_not_in_the_project_is_not_found(desk: Desk) -> None:
    await desk.project("other")
    theirs = await desk.issue(status="todo", project="other")
    await claimed(desk, theirs, "one", project="other")
    for name in ("SYM-999", theirs.identifier):
        await refusal(desk, desk.actor("worker", session="two"), NotFound, issue_id=name)


async def test_a_session_that_holds_nothing_has_nothing_to_release(desk: Desk) -> None:
    assert await refusal(desk, desk.actor("worker")) == "this session holds no issue"


@pytest.mark.parametrize("status", ["todo", "in_progress", "review", "done"])
async def test_what_nobody_holds_cannot_be_released(desk: Desk, status: str) -> None:
    issue = await desk.issue(status=status)
    for actor in (desk.actor("worker", session="one"), desk.owner):
        await refusal(desk, actor, issue_id=issue.id)
    assert desk.reload(issue) == issue


async def test_what_another_holds_cannot_be_released(desk: Desk) -> None:
    issue = await desk.issue(status="todo")
    await desk.call(desk.owner, "create_agent", name="ada")
    await claimed(desk, issue, "one", agent="ada")
    held = desk.reload(issue)
    assert "ada (worker) holds it until" in await refusal(
        desk, desk.actor("worker", session="one"), issue_id=issue.id, fence=1
    )
    await refusal(desk, desk.actor("worker", session="two", agent="ada"), issue_id=issue.id)
    await refusal(desk, desk.actor("worker", session="one", agent="ada"), issue_id=issue.id, fence=2)
    assert desk.reload(issue) == held


async def test_a_lease_that_has_run_out_is_nobodys_to_release(desk: Desk) -> None:
    issue = await desk.issue(status="todo")
    await claimed(desk, issue, "one")
    run_out(desk, issue)
    assert "ran out at" in await refusal(desk, desk.actor("worker", session="one"), issue_id=issue.id)


async def test_a_released_issue_can_be_claimed_with_the_next_number(desk: Desk) -> None:
    issue = await desk.issue(status="todo")
    holder = await claimed(desk, issue, "one")
    done = await desk.call(holder, "release_issue", reason="too hard")
    assert (done.identifier, done.status) == (issue.identifier, "todo")
    row = desk.reload(issue)
    assert (row.fence, row.lease_subject, row.lease_session, row.lease_until_ms) == (1, None, None, None)
    last = desk.rows(sa.select(issue_changes).order_by(issue_changes.c.seq.desc()).limit(1))[0]
    assert (last.field, last.old, last.new, last.why) == ("status", "in_progress", "todo", "too hard")
    assert [row.content for row in desk.rows(sa.select(comments))] == ["**released**: too hard"]
    assert (await desk.call(desk.actor("worker", session="two"), "claim_issue")).fence == 2


async def test_the_holder_need_not_know_that_it_is_bound(desk: Desk) -> None:
    issue = await desk.issue(status="todo")
    actor = desk.actor("worker", session="one")
    await desk.call(actor, "claim_issue")
    assert (await desk.call(actor, "release_issue")).identifier == issue.identifier


async def test_another_session_of_the_holder_releases_with_the_number(desk: Desk) -> None:
    issue = await desk.issue(status="todo")
    await claimed(desk, issue, "one")
    other = desk.actor("worker", session="two")
    assert (await desk.call(other, "release_issue", issue_id=issue.id, fence=1)).status == "todo"


async def test_a_person_releases_what_an_agent_holds(desk: Desk) -> None:
    issue = await desk.issue(status="todo")
    for end in (False, True):
        await claimed(desk, issue, "one")
        if end:
            run_out(desk, issue)
        assert (await desk.call(desk.person(), "release_issue", issue_id=issue.id)).status == "todo"
        assert desk.reload(issue).lease_until_ms is None

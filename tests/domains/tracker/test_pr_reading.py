"""What people read of a pull request: revisions, gates, risk, and why something cannot be done with it."""

from typing import Any

import pytest

from rookery.core.actor import Actor
from rookery.core.errors import Conflict, NotFound, PermissionDenied
from rookery.domains.tracker.pr_reading import OUTPUT_SHOWN, read_pr, read_pr_diff
from tests.domains.tracker.desk import Desk
from tests.domains.tracker.reviewing import PASSED, Author, author


async def read(at: Author, actor: Actor | None = None, **given: Any) -> Any:
    arguments = {"issue_id": at.issue.identifier, **given}
    return (await at.desk.fleet.platform.calls.run(actor or at.person, read_pr, arguments)).value


async def test_agents_other_tenants_and_missing_revisions_get_nothing(desk: Desk) -> None:
    at = await author(desk)
    with pytest.raises(NotFound, match="has no pull request"):
        await read(at)
    await at.open()
    with pytest.raises(PermissionDenied):
        await read(at, at.actor)
    with pytest.raises(NotFound, match="there is no issue"):
        await read(at, desk.stranger)
    with pytest.raises(NotFound, match="has no revision 2"):
        await read(at, revision=2)
    with pytest.raises(NotFound):
        await desk.fleet.platform.calls.run(desk.stranger, read_pr_diff, {"issue_id": at.issue.id})


async def test_every_revision_can_be_read_and_only_the_newest_decided(desk: Desk) -> None:
    at = await author(desk)
    await at.open(gate_results=[{**PASSED, "output": "x" * (OUTPUT_SHOWN + 5)}])
    first = at.diff
    await desk.call(at.person, "reject_pr", reason="no tests", fix_instructions="write some")
    await at.again()
    at.tree.commit("tests/test_login.py", "def test_it(): pass\n")
    await at.open()
    newest, older = await read(at), await read(at, revision=1)
    assert (newest.pr["revision"], newest.pr["status"], newest.newest) == (2, "open", 2)
    assert [each["revision"] for each in newest.revisions] == [2, 1]
    assert (older.pr["status"], older.pr["reason"], older.pr["judged_by"]) == ("rejected", "no tests", "owner")
    assert set(older.refused.values()) == {"revision 2 has replaced this one"}
    assert (older.gates[0]["length"], len(older.gates[0]["output"])) == (OUTPUT_SHOWN + 5, OUTPUT_SHOWN)
    calls = desk.fleet.platform.calls
    diff = (await calls.run(at.person, read_pr_diff, {"issue_id": at.issue.id, "revision": 1})).value
    assert diff.diff == first


async def test_it_says_what_can_be_done_and_why_not(desk: Desk) -> None:
    at = await author(desk)
    await desk.call(at.person, "configure_project", sensitive_paths=["src/login.py"])
    await at.open()
    opened = await read(at)
    assert opened.refused == {"approve": None, "reject": None, "merge": "it has to be approved first"}
    assert opened.sensitive == ["src/login.py"]
    await desk.call(at.person, "approve_pr", revision=1)
    approved = await read(at)
    assert approved.refused["merge"] is None
    assert approved.refused["approve"] == "the pull request is approved already"
    await desk.call(at.person, "set_issue_status", issue_id=at.issue.id, status="todo")
    assert "cannot become done" in (await read(at)).refused["merge"]


async def test_it_says_which_agent_has_judged(desk: Desk) -> None:
    at = await author(desk)
    await at.open()
    await desk.call(at.bound("judge"), "approve_pr", revision=1)
    approved = await read(at)
    assert approved.pr["judged_by"] == "default"
    assert approved.refused["reject"] is None


async def test_another_revision_than_the_one_that_was_read_is_not_merged(desk: Desk) -> None:
    at = await author(desk)
    await at.open()
    await desk.call(at.person, "approve_pr", revision=1)
    with pytest.raises(Conflict, match="is at revision 1, not 7"):
        await desk.call(at.person, "merge_pr", issue_id=at.issue.id, revision=7)
    assert at.status() == "review"
    merged = await desk.call(at.person, "merge_pr", issue_id=at.issue.id, revision=1)
    assert merged.pr_status == "merged"

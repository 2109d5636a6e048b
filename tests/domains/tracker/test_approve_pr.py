import asyncio

import pytest
import sqlalchemy as sa

from rookery.core.errors import Conflict, InvalidParams, NotFound, PermissionDenied
from rookery.core.tool import PROFILES
from rookery.domains.tracker.tables import issue_changes
from rookery.lifecycle.issue_tables import issues
from tests.domains.tracker.desk import Desk
from tests.domains.tracker.reviewing import author, refused

VERDICTS = ("approve_pr", "reject_pr")


@pytest.mark.parametrize("verdict", VERDICTS)
async def test_only_a_judge_with_an_issue_may(desk: Desk, verdict: str) -> None:
    at = await author(desk)
    await at.open()
    for profile in sorted(set(PROFILES.values()) - {"judge"}):
        await refused(desk, PermissionDenied, verdict, at.bound(profile), verdict)
    unbound = await refused(desk, PermissionDenied, "none is bound", desk.actor("judge", project="repo"), verdict)
    assert unbound.layer == "binding"
    assert set(VERDICTS) <= desk.fleet.names(at.bound("judge"))


@pytest.mark.parametrize("verdict", VERDICTS)
async def test_an_issue_of_another_project_or_tenant_is_not_found(desk: Desk, verdict: str) -> None:
    at = await author(desk)
    await at.open()
    judge = at.bound("judge")
    other = await desk.project("other")
    desk.change(sa.update(issues).where(issues.c.id == at.issue.id).values(project_id=other.id))
    await refused(desk, NotFound, "", judge, verdict)
    desk.change(sa.update(issues).where(issues.c.id == at.issue.id).values(tenant="other"))
    await refused(desk, NotFound, "", judge, verdict)


@pytest.mark.parametrize("verdict", VERDICTS)
async def test_there_must_be_an_open_pull_request_of_that_revision(desk: Desk, verdict: str) -> None:
    at = await author(desk)
    judge = at.bound("judge")
    desk.change(sa.update(issues).where(issues.c.id == at.issue.id).values(status="review"))
    await refused(desk, Conflict, "has no pull request", judge, verdict)
    desk.change(sa.update(issues).where(issues.c.id == at.issue.id).values(status="in_progress"))
    await at.open()
    await refused(desk, Conflict, "is at revision 1, not 2", judge, verdict, revision=2)
    for wrong in ({"reason": "x" * 5001}, {"revision": 0}, {"pr_id": "pr-1"}):
        await refused(desk, InvalidParams, next(iter(wrong)), judge, verdict, **wrong)
    await desk.call(judge, verdict, revision=1)
    told = await refused(desk, Conflict, "", judge, verdict)
    assert told.message


@pytest.mark.parametrize("verdict", VERDICTS)
async def test_whoever_opened_it_does_not_judge_it_unless_it_is_a_person(desk: Desk, verdict: str) -> None:
    for name in ("ada", "bob"):
        await desk.call(desk.owner, "create_agent", name=name, permissions=["create_pr", verdict])
    at = await author(desk)
    there = {"worktree": str(at.tree.path), "cwd": str(at.tree.path)}
    await desk.call(at.bound(None, agent="ada", **there), "create_pr", **at.arguments())
    await refused(desk, Conflict, "whoever opened it", at.bound(None, agent="ada", **there), verdict)
    assert (await desk.call(at.bound(None, agent="bob"), verdict)).revision == 1


@pytest.mark.parametrize("verdict", VERDICTS)
async def test_a_person_may_judge_even_their_own(desk: Desk, verdict: str) -> None:
    at = await author(desk)
    place = str(at.tree.path)
    person = desk.fleet.actor(as_owner=True, project="repo", issue=at.issue.id, worktree=place, cwd=place)
    await desk.call(person, "create_pr", **at.arguments())
    assert (await desk.call(person, verdict)).revision == 1


async def test_an_issue_that_was_taken_back_cannot_be_approved(desk: Desk) -> None:
    at = await author(desk)
    await at.open()
    await desk.call(at.person, "set_issue_status", issue_id=at.issue.id, status="todo")
    await refused(desk, Conflict, "not in review", at.bound("judge"), "approve_pr")


async def test_approval_leaves_the_issue_in_review(desk: Desk) -> None:
    at = await author(desk)
    await at.open()
    before = desk.reload(at.issue).updated_ms
    decided = await desk.call(at.bound("judge"), "approve_pr", reason="all gates pass")
    assert decided.model_dump() == {
        "identifier": at.issue.identifier,
        "revision": 1,
        "pr_status": "approved",
        "issue_status": "review",
    }
    (row,) = at.prs()
    assert (row.status, row.reason, row.judged_by) == ("approved", "all gates pass", at.bound("judge").subject)
    assert at.status() == "review"
    assert at.comments() == []
    assert desk.reload(at.issue).updated_ms >= before
    noted = desk.rows(sa.select(issue_changes).order_by(issue_changes.c.seq.desc()))[0]
    assert (noted.field, noted.old, noted.new, noted.why) == ("pr", "open", "approved", "all gates pass")
    await refused(desk, Conflict, "is approved already", at.bound("judge"), "approve_pr")
    told = await refused(desk, Conflict, "only human may move", at.bound("judge"), "reject_pr")
    assert "merged" in str(told.hint)


async def test_of_judges_who_decide_at_once_one_wins(desk: Desk) -> None:
    at = await author(desk)
    await at.open()
    calls = [desk.call(at.bound("judge", session=str(n)), VERDICTS[n % 2], reason=str(n)) for n in range(8)]
    ends = await asyncio.gather(*calls, return_exceptions=True)
    won = [number for number, end in enumerate(ends) if not isinstance(end, BaseException)]
    assert len(won) == 1
    assert all(isinstance(end, Conflict) for number, end in enumerate(ends) if number not in won)
    (row,) = at.prs()
    approved = won[0] % 2 == 0
    assert (row.status, row.reason) == ("approved" if approved else "rejected", str(won[0]))
    assert at.status() == ("review" if approved else "todo")
    assert len(at.comments()) == (0 if approved else 1)

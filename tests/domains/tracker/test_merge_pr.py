import asyncio
from dataclasses import replace

import pytest
import sqlalchemy as sa

from rookery.core.errors import Conflict, InvalidParams, NotFound, PermissionDenied
from rookery.core.tool import PROFILES
from rookery.domains.tracker.advance import orchestrator
from rookery.domains.tracker.branch_merge import Merged
from rookery.domains.tracker.merging import bring_in, candidate, record_merge
from rookery.lifecycle.issue_tables import issues
from tests.domains.tracker.desk import Desk, git
from tests.domains.tracker.reviewing import Author, author, refused


async def approved(desk: Desk) -> Author:
    at = await author(desk)
    await at.open()
    await desk.call(at.bound("judge"), "approve_pr")
    return at


async def test_no_agent_may_merge(desk: Desk) -> None:
    at = await approved(desk)
    await desk.call(desk.owner, "create_agent", name="ada", permissions=["merge_pr"])
    agents = [at.bound(profile) for profile in PROFILES.values()] + [at.bound(None), at.bound(None, agent="ada")]
    for agent in agents:
        told = await refused(desk, PermissionDenied, "", agent, "merge_pr", issue_id=at.issue.identifier)
        assert told.layer == "principal"


async def test_what_is_unknown_or_elsewhere_is_not_found(desk: Desk) -> None:
    at = await approved(desk)
    for unknown in ("REP-999", "iss-0", "nonsense"):
        await refused(desk, NotFound, unknown, at.person, "merge_pr", issue_id=unknown)
    await refused(desk, NotFound, "", desk.person("default"), "merge_pr", issue_id=at.issue.identifier)
    stranger = desk.fleet.actor(tenant=desk.stranger.tenant, as_owner=True, project="default")
    for name in (at.issue.identifier, at.issue.id):
        await refused(desk, NotFound, name, stranger, "merge_pr", issue_id=name)
    await refused(desk, InvalidParams, "issue_id", at.person, "merge_pr", issue_id="")
    await refused(desk, InvalidParams, "reason", at.person, "merge_pr", issue_id="REP-1", reason="x" * 5001)


async def test_only_what_is_approved_can_be_merged(desk: Desk) -> None:
    at = await author(desk)
    name = at.issue.identifier
    await refused(desk, Conflict, "cannot become done", at.person, "merge_pr", issue_id=name)
    desk.change(sa.update(issues).where(issues.c.id == at.issue.id).values(status="review"))
    await refused(desk, Conflict, "has no pull request", at.person, "merge_pr", issue_id=name)
    desk.change(sa.update(issues).where(issues.c.id == at.issue.id).values(status="in_progress"))
    await at.open()
    told = await refused(desk, Conflict, "is open and cannot become merged", at.person, "merge_pr", issue_id=name)
    assert "approved" in str(told.hint)
    assert at.status() == "review"
    await desk.call(at.bound("judge"), "reject_pr")
    desk.change(sa.update(issues).where(issues.c.id == at.issue.id).values(status="review"))
    await refused(desk, Conflict, "is rejected and cannot become merged", at.person, "merge_pr", issue_id=name)


async def test_an_issue_that_was_taken_back_cannot_be_merged(desk: Desk) -> None:
    at = await approved(desk)
    await desk.call(at.person, "set_issue_status", issue_id=at.issue.id, status="todo")
    await refused(desk, Conflict, "cannot become done", at.person, "merge_pr", issue_id=at.issue.identifier)


async def test_a_merged_pull_request_finishes_the_issue_for_good(desk: Desk) -> None:
    at = await approved(desk)
    done = await desk.call(at.person, "merge_pr", issue_id=at.issue.identifier.lower(), reason="shipped")
    tip = git(at.repository, "rev-parse", "main").strip()
    assert done.model_dump() == {
        "identifier": at.issue.identifier,
        "revision": 1,
        "pr_status": "merged",
        "issue_status": "done",
        "commit": tip,
    }
    assert (at.prs()[0].status, at.prs()[0].merged_in, at.status()) == ("merged", tip, "done")
    assert at.comments() == [f"**Merged** (revision 1) into main as {tip[:12]}: shipped"]
    await refused(desk, Conflict, "is done already", at.person, "merge_pr", issue_id=at.issue.id)


async def test_the_last_subtask_that_is_merged_unblocks_its_parent(desk: Desk) -> None:
    parent = await author(desk)
    child = await desk.call(parent.actor, "create_subtask", title="a part")
    assert parent.status() == "blocked"
    await desk.call(parent.person, "set_issue_status", issue_id=child.id, status="in_progress")
    issue = desk.reload(child.id)
    tree = desk.worktree(parent.repository, issue)
    tree.commit("part.py", "x\n")
    worker = desk.actor("worker", issue, project="repo", worktree=str(tree.path))
    at = Author(desk, issue, worker, parent.repository, tree)
    await at.open()
    await desk.call(at.bound("judge"), "approve_pr")
    await desk.call(at.person, "merge_pr", issue_id=issue.id)
    assert parent.status() == "todo"


async def test_of_two_who_merge_at_once_one_does(desk: Desk) -> None:
    at = await approved(desk)
    calls = [desk.call(at.person, "merge_pr", issue_id=at.issue.id, reason=str(n)) for n in range(4)]
    ends = await asyncio.gather(*calls, return_exceptions=True)
    assert sorted(type(end).__name__ for end in ends) == ["Conflict"] * 3 + ["MergedPr"]
    assert len(at.comments()) == 1


async def test_who_has_merged_is_told_so_if_the_orchestrator_wrote_it_down_first(desk: Desk) -> None:
    at = await approved(desk)
    database = desk.fleet.platform.database
    found = database.direct(lambda tx: candidate(tx, at.person, at.issue.id, "human"))
    merged = bring_in(found, "merge", at.person)
    assert isinstance(merged, Merged)
    others = orchestrator(at.person.tenant, found.issue.project_id, "repo")
    seen = replace(merged, already=True)
    database.direct(lambda tx: record_merge(tx, others, found, seen, "orchestrator"), write=True)
    done, pr = database.direct(lambda tx: record_merge(tx, at.person, found, merged, "human"), write=True)
    assert (done.status, pr.status, pr.merged_in) == ("done", "merged", merged.commit)
    with pytest.raises(Conflict):
        database.direct(lambda tx: record_merge(tx, at.person, found, seen, "human"), write=True)

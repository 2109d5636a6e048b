from pathlib import Path
from typing import Any

import pytest

from rookery.core.errors import Conflict, NotFound, PermissionDenied
from rookery.domains.tracker.worktree import MARKER, Marker, write_marker
from tests.domains.tracker.desk import Desk, git


async def refused(desk: Desk, **binding: Any) -> str:
    with pytest.raises(Conflict) as caught:
        await desk.call(desk.actor("worker", **binding), "verify_workspace")
    assert caught.value.hint
    return caught.value.message


async def test_whoever_works_in_no_worktree_does_not_get_it(desk: Desk) -> None:
    issue = await desk.issue()
    for profile in ("judge", "scanner", "intake"):
        with pytest.raises(PermissionDenied):
            await desk.call(desk.actor(profile, issue), "verify_workspace")
    for profile in ("worker", "researcher", "architect", "planner"):
        assert "verify_workspace" in desk.fleet.names(desk.actor(profile, issue))


async def test_without_an_issue_or_a_worktree_there_is_nothing_to_verify(desk: Desk) -> None:
    with pytest.raises(PermissionDenied):
        await desk.call(desk.actor("worker"), "verify_workspace")
    issue = await desk.issue()
    assert f"No worktree is bound for {issue.identifier}" in await refused(desk, issue=issue)


async def test_every_way_to_be_in_the_wrong_place_is_told_apart(desk: Desk, tmp_path: Path) -> None:
    repository = await desk.git_project("repo")
    issue, other = await desk.issue(project="repo"), await desk.issue(project="repo")
    tree, theirs = desk.worktree(repository, issue), desk.worktree(repository, other)
    place = str(tree.path)
    outside = await refused(desk, issue=issue, worktree=place, cwd=str(tmp_path))
    assert outside == (
        f"Worktree marker file not found at {tmp_path}/.symphony-worktree. "
        f"Recovery: run `cd {place}` to return to your worktree."
    )
    assert other.identifier in await refused(desk, issue=issue, worktree=place, cwd=str(theirs.path))
    assert f"belongs to {other.identifier}" in await refused(desk, issue=issue, worktree=str(theirs.path))
    (tree.path / MARKER).unlink()
    assert f"not found at {place}/.symphony-worktree" in await refused(desk, issue=issue, worktree=place, cwd=place)
    git(repository, "worktree", "remove", "--force", place)
    assert "does not exist any more" in await refused(desk, issue=issue, worktree=place)


async def test_in_the_right_place_the_worktree_is_described(desk: Desk) -> None:
    repository = await desk.git_project("repo")
    issue = await desk.issue(project="repo")
    tree = desk.worktree(repository, issue)
    (tree.path / "src").mkdir()
    for cwd in (None, str(tree.path), str(tree.path / "src")):
        worker = desk.actor("worker", issue, worktree=str(tree.path), cwd=cwd)
        assert (await desk.call(worker, "verify_workspace")).model_dump() == {
            "valid": True,
            "path": str(tree.path),
            "issue": issue.identifier,
            "branch": f"symphony/{issue.identifier}",
            "message": "Workspace verified. You are in the correct worktree.",
        }


async def test_another_branch_is_mentioned(desk: Desk) -> None:
    repository = await desk.git_project("repo")
    issue = await desk.issue(project="repo")
    tree = desk.worktree(repository, issue)
    git(tree.path, "checkout", "-q", "-b", "attempt")
    found = await desk.call(desk.actor("worker", issue, worktree=str(tree.path)), "verify_workspace")
    assert found.valid
    assert found.branch == f"symphony/{issue.identifier}"
    assert "The branch attempt is checked out there" in found.message


async def test_a_worktree_from_before_a_move_is_not_the_issues_any_more(desk: Desk, tmp_path: Path) -> None:
    issue = await desk.issue()
    folder = tmp_path / "tree"
    folder.mkdir()
    write_marker(str(folder), Marker("OLD-001", issue.id, "symphony/OLD-001"))
    assert "belongs to OLD-001" in await refused(desk, issue=issue, worktree=str(folder))


async def test_an_issue_that_was_moved_away_cannot_be_verified_by_its_old_session(desk: Desk) -> None:
    issue = await desk.issue(phase="grooming")
    await desk.project("other")
    planner = desk.actor("planner", issue, project="default")
    await desk.call(planner, "move_issue", target_project_id="other", reason="it is theirs")
    with pytest.raises(NotFound, match="moved to another project"):
        await desk.call(planner, "verify_workspace")

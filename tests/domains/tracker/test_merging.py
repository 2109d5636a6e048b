"""Merging through the tool, with a real repository beside the database: the two never say different things."""

from dataclasses import replace
from pathlib import Path

import pytest
import sqlalchemy as sa

from rookery.core.errors import Conflict, ValidationFailed
from rookery.domains.tracker.merging import identity_of
from rookery.domains.tracker.tables import prs
from rookery.domains.tracker.worktree import Marker, write_marker
from rookery.lifecycle.run_store import NewRun, Runs
from tests.domains.tracker.claimant import claimant
from tests.domains.tracker.desk import Desk, git
from tests.domains.tracker.reviewing import Author, author, refused
from tests.domains.tracker.test_advance import tick


@pytest.fixture(autouse=True)
def home_of_the_user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The owner's own git settings, and nobody else's."""
    home = tmp_path / "home"
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    (home / ".gitconfig").write_text("[user]\n\tname = Grace\n\temail = grace@example.org\n", encoding="utf-8")
    return home


async def approved(desk: Desk) -> Author:
    at = await author(desk)
    await at.open()
    await desk.call(at.bound("judge"), "approve_pr", revision=1)
    return at


def main(at: Author) -> str:
    return git(at.repository, "rev-parse", "main").strip()


async def test_what_is_not_approved_leaves_the_branch_alone(desk: Desk) -> None:
    at = await author(desk)
    before = main(at)
    await at.open()
    await refused(desk, Conflict, "is open and cannot become merged", at.person, "merge_pr", issue_id=at.issue.id)
    assert main(at) == before


async def test_conflicts_leave_the_approval_and_the_branch_as_they_are(desk: Desk) -> None:
    at = await approved(desk)
    (at.repository / "src").mkdir()
    (at.repository / "src/login.py").write_text("other\n", encoding="utf-8")
    git(at.repository, "add", "-A")
    git(at.repository, "commit", "-q", "-m", "another login")
    before = main(at)
    await refused(desk, Conflict, "the same lines of src/login.py", at.person, "merge_pr", issue_id=at.issue.id)
    assert (at.prs()[0].status, at.status(), main(at)) == ("approved", "review", before)


async def test_a_diff_that_is_not_what_git_says_of_the_branch_is_not_merged(desk: Desk) -> None:
    at = await author(desk)
    lie = "diff --git a/x b/x\nold mode 100644\nnew mode 100755\n"
    await at.open(diff=lie)
    await desk.call(at.bound("judge"), "approve_pr")
    before = main(at)
    await refused(desk, Conflict, "not known to be that of a commit", at.person, "merge_pr", issue_id=at.issue.id)
    assert main(at) == before


async def test_a_folder_that_is_no_repository_is_told(desk: Desk) -> None:
    at = await approved(desk)
    at.repository.rename(desk.folder / "away")
    at.repository.mkdir()
    await refused(
        desk, ValidationFailed, "not the root of a git working tree", at.person, "merge_pr", issue_id=at.issue.id
    )


@pytest.mark.parametrize("change", ["commit", "amend", "reset", "delete"])
async def test_any_change_of_the_branch_voids_the_approval(desk: Desk, change: str) -> None:
    at = await approved(desk)
    before = main(at)
    if change == "commit":
        at.tree.commit("more.py", "x = 1\n")
    elif change == "amend":
        git(at.tree.path, "commit", "-q", "--amend", "--no-edit", "--date", "2001-01-01T00:00:00")
    elif change == "reset":
        git(at.tree.path, "reset", "-q", "--hard", "main")
    else:
        git(at.repository, "worktree", "remove", "--force", str(at.tree.path))
        git(at.repository, "branch", "-q", "-D", at.tree.branch)
    with pytest.raises(Conflict, match="is void"):
        await desk.call(at.person, "merge_pr", issue_id=at.issue.id)
    assert (at.prs()[0].status, at.status(), main(at)) == ("closed", "todo", before)
    (comment,) = at.comments()
    assert "The approval of revision 1 is void" in comment
    await refused(desk, Conflict, "cannot become done", at.person, "merge_pr", issue_id=at.issue.id)


async def test_what_was_voided_can_be_claimed_reviewed_and_merged_again(desk: Desk) -> None:
    at = await approved(desk)
    at.tree.commit("more.py", "x = 1\n")
    with pytest.raises(Conflict):
        await desk.call(at.person, "merge_pr", issue_id=at.issue.id)
    await at.again()
    await at.open()
    await desk.call(at.bound("judge"), "approve_pr", revision=2)
    done = await desk.call(at.person, "merge_pr", issue_id=at.issue.id, method="ff")
    assert (done.revision, done.commit, main(at)) == (2, at.prs()[1].head, at.prs()[1].head)
    assert [row.status for row in at.prs()] == ["closed", "merged"]


@pytest.mark.parametrize("column", ["head", "diff_hash", "approved_head", "approved_diff"])
async def test_an_approval_is_for_the_commit_and_the_diff_that_were_reviewed(desk: Desk, column: str) -> None:
    at = await approved(desk)
    (row,) = at.prs()
    assert row.head == git(at.tree.path, "rev-parse", "HEAD").strip()
    assert (row.approved_head, row.approved_diff) == (row.head, row.diff_hash)
    before = main(at)
    desk.change(sa.update(prs).values({column: "0" * 40}))
    with pytest.raises(Conflict, match="is void"):
        await desk.call(at.person, "merge_pr", issue_id=at.issue.id)
    assert (at.prs()[0].status, at.status(), main(at)) == ("closed", "todo", before)


async def test_what_a_person_merged_by_hand_is_recorded(desk: Desk) -> None:
    at = await approved(desk)
    git(at.repository, "merge", "-q", "--no-edit", "--no-ff", at.tree.branch)
    by_hand = main(at)
    done = await desk.call(at.person, "merge_pr", issue_id=at.issue.id)
    assert (done.pr_status, done.commit, main(at)) == ("merged", by_hand, by_hand)
    assert "it was found in main" in at.comments()[0]


async def test_a_claimed_branch_is_merged_by_the_owner_whose_name_git_knows(desk: Desk) -> None:
    at = await claimant(desk, "ready")
    (at.folder / "login.py").write_text("def login() -> bool:\n    return True\n", encoding="utf-8")
    git(at.folder, "add", "-A")
    git(at.folder, "commit", "-q", "-m", "log in")
    await at.claim()
    assert [each.outcome for each in await tick(desk)] == ["pr_opened"]
    await desk.call(at.bound("judge"), "approve_pr")
    person = desk.person("repo")
    done = await desk.call(person, "merge_pr", issue_id=at.issue.identifier)
    told = git(at.repository, "log", "-1", "--format=%an <%ae>|%cn <%ce>|%s", done.commit).strip()
    grace = "Grace <grace@example.org>"
    assert told == f"{grace}|{grace}|Merge {at.issue.identifier}: login fails"


def test_others_sign_with_their_name_here_and_no_setting_of_the_repository_counts(
    desk: Desk, home_of_the_user: Path
) -> None:
    owner = desk.owner
    assert tuple(identity_of(owner, "owner")) == ("Grace", "grace@example.org")
    agent = desk.actor(None)
    assert tuple(identity_of(agent, "Zoë Smith")) == ("Zoë Smith", "zo--smith@rookery.invalid")
    (home_of_the_user / ".gitconfig").unlink()
    assert tuple(identity_of(owner, "owner")) == ("owner", "owner@rookery.invalid")
    (home_of_the_user / ".config/git").mkdir(parents=True)
    (home_of_the_user / ".config/git/config").write_text("[user]\nname = G\nemail = g@x.org\n", encoding="utf-8")
    assert tuple(identity_of(owner, "owner")) == ("G", "g@x.org")


async def test_a_project_without_a_folder_has_only_its_record(desk: Desk) -> None:
    issue = await desk.issue()
    place = desk.folder / "tree"
    place.mkdir()
    write_marker(str(place), Marker(issue=issue.identifier, issue_id=issue.id))
    worker = desk.actor("worker", issue, worktree=str(place), cwd=str(place))
    diff = "diff --git a/x b/x\nold mode 100644\nnew mode 100755\n"
    await desk.call(worker, "create_pr", diff=diff, branch_name="work", base_branch="main")
    await desk.call(desk.actor("judge", issue), "approve_pr")
    done = await desk.call(desk.person(), "merge_pr", issue_id=issue.id, reason="shipped")
    assert (done.pr_status, done.issue_status, done.commit) == ("merged", "done", None)


async def test_a_judge_who_began_before_the_revision_says_which_one_is_meant(desk: Desk) -> None:
    at = await author(desk)
    new = NewRun(project_id=at.issue.project_id, issue_id=at.issue.id, profile="judge")
    run = desk.fleet.platform.database.direct(lambda tx: Runs(tx, "default").start(new), write=True)
    await at.open()
    desk.change(sa.update(prs).values(created_ms=run.created_ms + 1))
    judge = replace(at.bound("judge"), run=run.id)
    for verdict in ("approve_pr", "reject_pr"):
        told = await refused(desk, Conflict, "was opened after your run had begun", judge, verdict)
        assert "revision 1" in str(told.hint)
    assert (await desk.call(judge, "approve_pr", revision=1)).pr_status == "approved"

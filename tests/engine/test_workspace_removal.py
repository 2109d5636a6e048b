"""Removing a workspace: whatever is nowhere else keeps it, and what is left of it is nothing but work."""

import os
from pathlib import Path

import pytest

from rookery.engine.workspaces import Site, Workspace, prepare, remove
from tests.domains.work.workshop import git, make_repository
from tests.engine.yard import IDENTIFIER, ISSUE, commit, make_site, row_of, state_of


@pytest.fixture
def site(tmp_path: Path) -> Site:
    return make_site(tmp_path)


async def removed(site: Site, made: Workspace, issue_id: str = ISSUE) -> str | None:
    """Why it is kept, or None; in each case the project's own checkout is as it was."""
    before = state_of(site.repository)
    said = await remove(site, row_of(made.path, made.branch, issue_id))
    assert state_of(site.repository) == before
    assert os.path.lexists(made.path) == (said is not None)
    return said


def write(made: Workspace, name: str, text: str = "text") -> None:
    path = Path(made.path, name)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


async def test_changes_and_new_files_keep_it(site: Site) -> None:
    made = await prepare(site, ISSUE, IDENTIFIER)
    write(made, "new/file.txt")
    assert await removed(site, made) == "files that are not committed: new/"
    write(made, "README.md")
    assert await removed(site, made) == "changes that are not committed: README.md"
    git(made.path, "add", "-A")
    assert "README.md, new/file.txt" in (await removed(site, made) or "")
    git(made.path, "stash")
    assert await removed(site, made) is None
    assert "README.md" in git(site.repository, "stash", "show", "--name-only")


async def test_a_deleted_file_a_mode_and_an_intended_file_keep_it(site: Site) -> None:
    made = await prepare(site, ISSUE, IDENTIFIER)
    Path(made.path, "README.md").unlink()
    assert await removed(site, made) == "changes that are not committed: README.md"
    git(made.path, "checkout", "README.md")
    Path(made.path, "README.md").chmod(0o755)
    assert await removed(site, made) == "changes that are not committed: README.md"
    git(made.path, "checkout", "README.md")
    write(made, "soon.txt")
    git(made.path, "add", "--intent-to-add", "soon.txt")
    assert await removed(site, made) == "changes that are not committed: soon.txt"


@pytest.mark.parametrize("flag", ["--assume-unchanged", "--skip-worktree"])
async def test_files_that_git_was_told_to_overlook_keep_it(site: Site, flag: str) -> None:
    made = await prepare(site, ISSUE, IDENTIFIER)
    git(made.path, "update-index", flag, "README.md")
    write(made, "README.md", "changed and hidden")
    assert git(made.path, "status", "--porcelain") == ""
    assert await removed(site, made) == "a file that git was told to overlook: README.md"


async def test_commits_on_no_branch_keep_it(site: Site) -> None:
    made = await prepare(site, ISSUE, IDENTIFIER)
    git(made.path, "checkout", "-q", "--detach")
    loose = commit(made.path, "a.txt")
    assert await removed(site, made) == f"commits that are on no branch: {loose[:12]}"
    git(made.path, "tag", "saved")
    assert await removed(site, made) is None


async def test_commits_that_were_left_on_no_branch_keep_it(site: Site) -> None:
    made = await prepare(site, ISSUE, IDENTIFIER)
    git(made.path, "checkout", "-q", "--detach")
    loose = commit(made.path, "a.txt")
    git(made.path, "checkout", "-q", made.branch)
    assert await removed(site, made) == f"commits that are on no branch: {loose[:12]}"
    git(made.path, "branch", "saved", loose)
    assert await removed(site, made) is None


async def test_refs_that_only_the_worktree_has_keep_it(site: Site) -> None:
    made = await prepare(site, ISSUE, IDENTIFIER)
    own = commit(made.path, "a.txt")
    git(made.path, "update-ref", "refs/worktree/mine", own)
    git(made.path, "reset", "-q", "--hard", made.base)
    assert await removed(site, made) == f"commits that are on no branch: {own[:12]}"


async def test_what_an_agent_wrote_in_place_of_a_ref_is_no_option_of_git(site: Site, tmp_path: Path) -> None:
    made = await prepare(site, ISSUE, IDENTIFIER)
    own = Path(git(made.path, "rev-parse", "--git-dir"), "refs", "worktree", "mine")
    own.parent.mkdir(parents=True)
    own.write_text(f"--output={tmp_path}/written\n", encoding="utf-8")
    await removed(site, made)
    assert not (tmp_path / "written").exists()


async def test_what_was_amended_away_does_not_keep_it(site: Site) -> None:
    made = await prepare(site, ISSUE, IDENTIFIER)
    commit(made.path, "a.txt")
    write(made, "a.txt", "better")
    git(made.path, "commit", "-q", "-a", "--amend", "-m", "better")
    assert await removed(site, made) is None
    assert git(site.repository, "show", f"{made.branch}:a.txt") == "better"


async def test_another_branch_there_keeps_it(site: Site) -> None:
    made = await prepare(site, ISSUE, IDENTIFIER)
    git(made.path, "checkout", "-q", "-b", "mine")
    assert await removed(site, made) == f"the branch mine is checked out there, and not {made.branch}"
    git(made.path, "checkout", "-q", "--orphan", "nothing-yet")
    assert "nothing-yet" in (await removed(site, made) or "")


@pytest.mark.parametrize("what", ["merge", "rebase", "cherry-pick"])
async def test_what_is_under_way_keeps_it(site: Site, what: str) -> None:
    made = await prepare(site, ISSUE, IDENTIFIER)
    commit(made.path, "a.txt", "ours\n")
    commit(site.repository, "a.txt", "theirs\n")
    with pytest.raises(Exception, match="non-zero exit status"):
        git(made.path, what, "main")
    assert await removed(site, made) == f"a {what} is under way in {made.path}"


async def test_a_lock_keeps_it(site: Site) -> None:
    made = await prepare(site, ISSUE, IDENTIFIER)
    git(site.repository, "worktree", "lock", "--reason", "I look at it", made.path)
    assert await removed(site, made) == "somebody has locked it: I look at it"
    git(site.repository, "worktree", "unlock", made.path)
    assert await removed(site, made) is None


async def test_ignored_files_and_the_marker_do_not_keep_it(site: Site) -> None:
    commit(site.repository, ".gitignore", "node_modules/\n")
    made = await prepare(site, ISSUE, IDENTIFIER)
    write(made, "node_modules/deep/file.js")
    Path(made.path, "node_modules", "deep").chmod(0o500)
    assert await removed(site, made) is None
    assert os.listdir(site.folder) == [".removed"]
    assert os.listdir(f"{site.folder}/.removed") == []
    assert git(site.repository, "worktree", "list").count("\n") == 0


async def test_a_merged_branch_goes_and_an_unmerged_one_stays(site: Site) -> None:
    one, other = await prepare(site, ISSUE, IDENTIFIER), await prepare(site, "iss_2", "SHO-2")
    commit(one.path, "a.txt")
    tip = commit(other.path, "b.txt")
    git(one.path, "config", f"branch.{one.branch}.remote", "origin")
    git(site.repository, "merge", "-q", "--no-ff", one.branch)
    assert await removed(site, one) is None
    assert await removed(site, other, "iss_2") is None
    assert git(site.repository, "branch", "--list", "rookery/*", "--format=%(refname:short)") == other.branch
    assert one.branch not in Path(site.repository, ".git", "config").read_text(encoding="utf-8")
    again = await prepare(site, "iss_2", "SHO-2")
    assert (again.branch, git(again.path, "rev-parse", "HEAD")) == (other.branch, tip)


async def test_a_branch_stays_if_it_is_checked_out_elsewhere_or_not_ours_or_without_a_base(site: Site) -> None:
    made = await prepare(site, ISSUE, IDENTIFIER)
    git(made.path, "checkout", "-q", "--detach")
    git(site.repository, "checkout", "-q", made.branch)
    assert await removed(site, made) is None
    git(site.repository, "checkout", "-q", "main")
    assert git(site.repository, "branch", "--list", made.branch).strip() == made.branch
    git(site.repository, "branch", "theirs")
    assert await removed(site, Workspace(made.path, "theirs", made.base, False)) is None
    assert git(site.repository, "branch", "--list", "theirs").strip() == "theirs"


async def test_one_that_is_gone_is_removed_with_what_git_remembers(site: Site) -> None:
    made = await prepare(site, ISSUE, IDENTIFIER)
    os.rename(site.root, f"{site.root}-gone")
    assert await removed(site, made) is None
    assert git(site.repository, "worktree", "list").count("\n") == 0
    assert git(site.repository, "branch", "--list", "rookery/*") == ""


async def test_a_folder_that_is_no_worktree_any_more_is_kept(site: Site) -> None:
    made = await prepare(site, ISSUE, IDENTIFIER)
    git(site.repository, "worktree", "remove", "--force", made.path)
    Path(made.path).mkdir()
    assert "is no working tree" in (await removed(site, made) or "")
    Path(made.path).rmdir()
    Path(made.path).symlink_to(site.repository)
    assert "is no working tree" in (await removed(site, made) or "")


async def test_a_repository_that_is_gone_keeps_it(site: Site) -> None:
    made = await prepare(site, ISSUE, IDENTIFIER)
    os.rename(site.repository, f"{site.repository}-moved")
    row = row_of(made.path, made.branch)
    assert "does not exist" in (await remove(site, row) or "")
    assert Path(made.path, "README.md").exists()


class Submodules:
    """A repository with a part that has a remote, and a workspace in which the part is there."""

    def __init__(self, folder: Path) -> None:
        self.site = make_site(folder, after_create="git -c protocol.file.allow=always submodule --quiet update --init")
        self.origin = make_repository(folder / "part")
        git(self.site.repository, "-c", "protocol.file.allow=always", "submodule", "add", str(self.origin), "part")
        git(self.site.repository, "commit", "-q", "-m", "with a part")

    async def workspace(self) -> tuple[Workspace, str]:
        made = await prepare(self.site, ISSUE, IDENTIFIER)
        return made, os.path.join(made.path, "part")


async def test_a_submodule_with_nothing_of_its_own_does_not_keep_it(tmp_path: Path) -> None:
    ground = Submodules(tmp_path)
    made, part = await ground.workspace()
    assert Path(part, "README.md").exists()
    assert await removed(ground.site, made) is None


async def test_work_in_a_submodule_keeps_it_until_it_is_pushed(tmp_path: Path) -> None:
    ground = Submodules(tmp_path)
    made, part = await ground.workspace()
    Path(part, "new.txt").write_text("new", encoding="utf-8")
    assert await removed(ground.site, made) == "in the submodule part, files that are not committed: new.txt"
    git(part, "checkout", "-q", "-b", "work")
    tip = commit(part, "new.txt")
    git(made.path, "commit", "-q", "-a", "-m", "newer part")
    said = f"in the submodule part, commits that are on no branch of a remote: {tip[:12]}"
    assert await removed(ground.site, made) == said
    git(part, "push", "-q", "origin", "work")
    assert await removed(ground.site, made) is None


async def test_commits_of_a_submodule_that_was_taken_out_keep_it(tmp_path: Path) -> None:
    ground = Submodules(tmp_path)
    made, part = await ground.workspace()
    git(part, "checkout", "-q", "-b", "work")
    tip = commit(part, "new.txt")
    git(part, "checkout", "-q", "main")
    git(made.path, "rm", "-q", "-f", "part")
    git(made.path, "commit", "-q", "-m", "without the part")
    assert await removed(ground.site, made) == f"commits that are on no branch of a remote: {tip[:12]}"


async def test_a_repository_that_was_committed_as_a_mere_reference_keeps_it(site: Site) -> None:
    made = await prepare(site, ISSUE, IDENTIFIER)
    inner = make_repository(Path(made.path, "vendor"))
    git(made.path, "-c", "advice.addEmbeddedRepo=false", "add", "vendor")
    git(made.path, "commit", "-q", "-m", "vendor")
    tip = git(inner, "rev-parse", "HEAD")
    assert await removed(site, made) == (
        f"in the submodule vendor, commits that are on no branch of a remote: {tip[:12]}"
    )

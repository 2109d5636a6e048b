"""Working trees of tasks: made, found again, committed and removed, on a real repository."""

import os
from pathlib import Path

import pytest

from rookery.core.errors import ValidationFailed
from rookery.domains.work import worktree
from rookery.domains.work.worktree import Place
from tests.domains.work.workshop import git, make_repository


@pytest.fixture
def place(tmp_path: Path) -> Place:
    repository = make_repository(tmp_path / "shop")
    base, branch = worktree.starting_point(str(repository))
    assert branch == "main"
    return Place(str(repository), str(tmp_path / "trees" / "wtk-1"), "agent/ada/fix-1", base, "Ada B")


def test_a_folder_without_a_commit_is_no_start(tmp_path: Path) -> None:
    with pytest.raises(ValidationFailed, match="not the root of a git working tree"):
        worktree.starting_point(str(tmp_path))
    git(tmp_path, "init", "-q")
    with pytest.raises(ValidationFailed, match="has no commit yet"):
        worktree.starting_point(str(tmp_path))


def test_a_detached_head_is_a_start_without_a_branch(place: Place) -> None:
    git(place.project, "checkout", "-q", "--detach")
    assert worktree.starting_point(place.project) == (place.base, None)


def test_it_is_made_anew_whatever_an_interrupted_attempt_left(place: Place) -> None:
    worktree.make_worktree(place)
    Path(place.folder, "half.txt").write_text("half", encoding="utf-8")
    # As a killed `git worktree add` leaves it: known, locked, and without its folder's .git file.
    git(place.project, "worktree", "lock", place.folder)
    Path(place.folder, ".git").unlink()
    worktree.make_worktree(place)
    assert sorted(os.listdir(place.folder)) == [".git", "README.md"]
    assert worktree.branch_there(place) == place.branch
    assert worktree.commits_made(place) == 0


def test_work_is_found_again_as_it_was_left(place: Place) -> None:
    worktree.make_worktree(place)
    Path(place.folder, "a.txt").write_text("a", encoding="utf-8")
    worktree.ensure_worktree(place)
    assert Path(place.folder, "a.txt").read_text(encoding="utf-8") == "a"


def test_a_tree_that_is_gone_is_made_again_from_the_branch(place: Place) -> None:
    worktree.make_worktree(place)
    Path(place.folder, "a.txt").write_text("a", encoding="utf-8")
    assert worktree.commit_leftovers(place, "work")
    worktree.put_away(place, "rest")
    worktree.ensure_worktree(place)
    assert Path(place.folder, "a.txt").exists()
    worktree.put_away(place, "rest")
    git(place.project, "branch", "-D", place.branch)
    worktree.ensure_worktree(place)
    assert not Path(place.folder, "a.txt").exists()


def test_leftovers_are_committed_once_in_the_agents_name(place: Place) -> None:
    worktree.make_worktree(place)
    assert not worktree.commit_leftovers(place, "nothing")
    Path(place.folder, "-rf").write_text("a", encoding="utf-8")
    Path(place.folder, ".gitignore").write_text("*.log\n", encoding="utf-8")
    Path(place.folder, "x.log").write_text("noise", encoding="utf-8")
    assert worktree.commit_leftovers(place, "--amend")
    assert not worktree.commit_leftovers(place, "again")
    assert git(place.folder, "log", "-1", "--format=%an <%ae> %s") == "Ada B <ada-b@rookery.invalid> --amend"
    assert git(place.folder, "show", "--name-only", "--format=", "HEAD").split() == ["-rf", ".gitignore"]
    assert worktree.commits_made(place) == 1


def test_what_commands_left_is_thrown_away_but_for_ignored_files(place: Place) -> None:
    worktree.make_worktree(place)
    Path(place.folder, ".gitignore").write_text("deps/\n", encoding="utf-8")
    worktree.commit_leftovers(place, "ignore")
    for name in ("deps/a", "junk/b"):
        Path(place.folder, name).parent.mkdir()
        Path(place.folder, name).write_text("x", encoding="utf-8")
    Path(place.folder, "README.md").unlink()
    worktree.restore(place)
    assert sorted(os.listdir(place.folder)) == [".git", ".gitignore", "README.md", "deps"]


def test_putting_away_commits_what_is_left_and_keeps_the_branch(place: Place) -> None:
    worktree.make_worktree(place)
    Path(place.folder, "a.txt").write_text("a", encoding="utf-8")
    locked = Path(place.folder, "cache", "deep")
    locked.mkdir(parents=True)
    (locked / "x").write_text("x", encoding="utf-8")
    locked.chmod(0o500)
    assert worktree.put_away(place, "rest")
    assert not os.path.exists(place.folder)
    assert git(place.project, "worktree", "list").count("\n") == 0
    assert git(place.project, "log", "-1", "--format=%s", place.branch) == "rest"
    assert worktree.put_away(place, "rest")


def test_changes_on_another_branch_are_not_thrown_away(place: Place) -> None:
    worktree.make_worktree(place)
    git(place.folder, "checkout", "-q", "-b", "elsewhere")
    Path(place.folder, "a.txt").write_text("a", encoding="utf-8")
    assert not worktree.put_away(place, "rest")
    assert Path(place.folder, "a.txt").exists()
    git(place.folder, "add", "-A")
    git(place.folder, "commit", "-q", "-m", "mine")
    assert worktree.put_away(place, "rest")


def test_other_working_trees_of_the_repository_are_left_alone(place: Place, tmp_path: Path) -> None:
    git(place.project, "worktree", "add", "-q", "-b", "mine", str(tmp_path / "mine"))
    os.rename(tmp_path / "mine", tmp_path / "unmounted")
    worktree.make_worktree(place)
    worktree.put_away(place, "rest")
    assert "mine" in git(place.project, "worktree", "list")


def test_a_tree_whose_making_was_interrupted_is_made_to_its_end(place: Place) -> None:
    git(place.project, "worktree", "add", "-q", "--no-checkout", "-b", place.branch, place.folder, place.base)
    worktree.ensure_worktree(place)
    assert sorted(os.listdir(place.folder)) == [".git", "README.md"]
    assert not worktree.commit_leftovers(place, "nothing was changed")


def test_a_filter_that_somebody_has_set_never_runs_and_leftovers_stay_then(place: Place, tmp_path: Path) -> None:
    ran = tmp_path / "ran"
    worktree.make_worktree(place)
    for what in ("clean", "smudge"):
        git(place.project, "config", f"filter.own.{what}", f"touch {ran}; cat")
    Path(place.folder, ".gitattributes").write_text("* filter=own\n", encoding="utf-8")
    Path(place.folder, "README.md").write_text("changed\n", encoding="utf-8")
    with pytest.raises(ValidationFailed, match="filters"):
        worktree.commit_leftovers(place, "work")
    assert not worktree.put_away(place, "rest")
    assert Path(place.folder, "README.md").read_text(encoding="utf-8") == "changed\n"
    worktree.restore(place)
    worktree.make_worktree(place)
    assert not ran.exists()

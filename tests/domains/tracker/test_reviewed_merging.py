"""Repositories as people have them, and as agents leave them: what merging does there."""

import os
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from rookery.core.errors import Conflict, ValidationFailed
from rookery.domains.tracker import branch_merge
from rookery.domains.tracker.branch_merge import Merged, merge_branch
from rookery.domains.tracker.worktree import commits_ahead, diff_against
from rookery.files.git import borrowed, open_repository, run_git, without_filters
from tests.domains.tracker.desk import git
from tests.domains.tracker.test_branch_merge import LINES, Ground, ground

__all__ = ["ground"]


def clone(address: Path, folder: Path, *options: str) -> Path:
    subprocess.run(["git", "clone", "-q", *options, f"file://{address}", str(folder)], check=True)
    return folder


def test_an_other_repository_where_a_worktree_was_is_left_alone(ground: Ground, tmp_path: Path) -> None:
    git(ground.main, "switch", "-q", "--detach")
    git(ground.main, "worktree", "add", "-q", str(tmp_path / "other"), "main")
    shutil.rmtree(tmp_path / "other")
    other = clone(ground.main, tmp_path / "other")
    git(other, "switch", "-q", "-c", "feature", "origin/main")
    before = ground.at(other)
    ground.merge(ground.wanted("ff"))
    assert ground.at(other) == before


def test_a_branch_that_is_being_rebased_is_left_to_whoever_does_it(ground: Ground) -> None:
    git(ground.main, "branch", "other")
    ground.commit(ground.main, "notes.md", "one\n")
    git(ground.main, "switch", "-q", "other")
    ground.commit(ground.main, "notes.md", "two\n")
    git(ground.main, "switch", "-q", "main")
    subprocess.run(["git", "rebase", "-q", "other"], cwd=ground.main, capture_output=True, check=False)
    assert "a rebase of main is under way" in ground.refused(ground.wanted())
    git(ground.main, "rebase", "--abort")
    ground.merge()


@pytest.mark.parametrize("options", ["--squash", "-s ours", "--no-ff", "--no-commit"])
def test_options_that_are_set_for_the_branch_do_not_count(ground: Ground, options: str) -> None:
    git(ground.main, "config", "branch.main.mergeOptions", options)
    ground.merge()
    assert git(ground.main, "status", "--porcelain") == ""
    assert (ground.main / "login.py").exists()


def test_changes_in_the_same_files_are_not_stashed_away_by_a_setting(ground: Ground) -> None:
    ground.commit(ground.work, "README.md", LINES + "more\n")
    ground.write(ground.main, "README.md", "mine\n")
    git(ground.main, "config", "merge.autoStash", "true")
    assert "README.md" in ground.refused(ground.wanted())
    assert (ground.main / "README.md").read_text(encoding="utf-8") == "mine\n"
    assert git(ground.main, "stash", "list") == ""


@pytest.mark.parametrize("kind", ["submodule", "separate"])
def test_a_checkout_whose_git_folder_is_elsewhere_moves_with_its_files(tmp_path: Path, kind: str) -> None:
    main = tmp_path / "around" / "shop"
    if kind == "separate":
        subprocess.run(
            ["git", "init", "-q", "-b", "main", "--separate-git-dir", str(tmp_path / "kept"), str(main)], check=True
        )
    else:
        origin, around = tmp_path / "origin", tmp_path / "around"
        for folder in (origin, around):
            folder.mkdir()
            git(folder, "init", "-q", "-b", "main")
            (folder / "a.txt").write_text("text\n", encoding="utf-8")
            git(folder, "add", "-A")
            git(folder, "commit", "-q", "-m", "begin")
        git(around, "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(origin), "shop")
    made = Ground(main, tmp_path / "tree")
    made.commit(main, "README.md", LINES)
    git(main, "worktree", "add", "-q", "-b", "work", str(made.work))
    made.commit(made.work, "login.py", "text\n")
    made.merge()
    assert (main / "login.py").exists()
    assert git(main, "status", "--porcelain") == ""


def test_a_base_branch_that_is_another_name_of_the_one_that_is_checked_out_moves_with_its_files(ground: Ground) -> None:
    git(ground.main, "symbolic-ref", "refs/heads/master", "refs/heads/main")
    ground.merge(replace(ground.wanted(), base="master"))
    assert git(ground.main, "status", "--porcelain") == ""
    assert (ground.main / "login.py").exists()


def test_a_clone_whose_history_was_cut_off_is_read_and_merged(ground: Ground, tmp_path: Path) -> None:
    for number in range(3):
        ground.commit(ground.main, "notes.md", f"{number}\n")
    shop = clone(ground.main, tmp_path / "shallow", "--depth", "2", "--branch", "main")
    made = Ground(shop, tmp_path / "shallow-tree")
    git(shop, "worktree", "add", "-q", "-b", "work", str(made.work))
    made.commit(made.work, "login.py", "text\n")
    # Two days later the base branch has moved on, so that where the two parted is not its tip.
    made.commit(shop, "notes.md", "later\n")
    assert commits_ahead(str(made.work), "main") == 1
    assert "login.py" in diff_against(str(made.work), "main")
    made.merge()


@pytest.mark.parametrize(
    "settings",
    [
        {"filter.lfs.smudge": "git-lfs smudge; {evil}"},
        {"filter.lfs.process": "git-lfs filter-process && {evil}"},
        {"filter.lfs.smudge": "git-lfs smudge -- %f", "lfs.customtransfer.x.path": "{evil}"},
        {"filter.lfs.smudge": "git-lfs smudge -- %f", "lfs.extension.x.smudge": "{evil}"},
        {"filter.lfs.smudge": "git-lfs smudge -- %f", "core.sshCommand": "{evil}"},
        {"filter.lfs.smudge": "git-lfs smudge -- %f", "filter.lfs.clean": "{evil}"},
        {"filter.a.b.smudge": "{evil}"},
        {"filter.a=b.smudge": "{evil}"},
    ],
)
def test_a_filter_that_is_not_as_git_lfs_sets_it_up_is_not_run(
    ground: Ground, tmp_path: Path, settings: dict[str, str]
) -> None:
    evil = tmp_path / "evil"
    name = next(iter(settings)).removeprefix("filter.").rpartition(".")[0]
    ground.commit(ground.work, ".gitattributes", f"*.py filter={name}\n")
    ground.commit(ground.work, "later.py", "text\n")
    for key, value in settings.items():
        # Written by hand: as an argument a name with a "=" in it would be cut there.
        section, _, variable = key.rpartition(".")
        kind, _, about = section.partition(".")
        header = f'{kind} "{about}"' if about else kind
        line = value.format(evil=f"touch {evil}; cat")
        with (ground.main / ".git" / "config").open("a", encoding="utf-8") as config:
            config.write(f'[{header}]\n\t{variable} = "{line}"\n')
    ground.merge()
    assert not evil.exists()
    assert (ground.main / "later.py").read_text(encoding="utf-8") == "text\n"
    assert (f"filter.{name}.smudge", "") in without_filters(open_repository(str(ground.main)))


def test_git_lfs_as_it_sets_itself_up_is_run(ground: Ground, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "bin").mkdir()
    program = tmp_path / "bin" / "git-lfs"
    program.write_text("#!/bin/sh\nsed s/pointer/content/\n", encoding="utf-8")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{os.environ['PATH']}")
    ground.commit(ground.work, "big.bin", "pointer\n")
    ground.commit(ground.work, ".gitattributes", "*.bin filter=lfs\n")
    git(ground.main, "config", "filter.lfs.smudge", "git-lfs smudge -- %f")
    ground.merge()
    assert (ground.main / "big.bin").read_text(encoding="utf-8") == "content\n"


def test_objects_that_are_missing_are_fetched_by_no_program_of_the_repository(ground: Ground, tmp_path: Path) -> None:
    wanted = ground.wanted()
    blob = git(ground.work, "rev-parse", "HEAD:login.py").strip()
    (ground.main / ".git" / "objects" / blob[:2] / blob[2:]).unlink()
    for key, value in {
        "core.repositoryFormatVersion": "1",
        "extensions.partialClone": "origin",
        "remote.origin.url": f"ext::touch {tmp_path}/evil",
        "remote.origin.promisor": "true",
        "protocol.ext.allow": "always",
    }.items():
        git(ground.main, "config", key, value)
    with pytest.raises((Conflict, ValidationFailed)):
        merge_branch(wanted)
    where = {"GIT_DIR": str(ground.main / ".git")}
    with pytest.raises(ValidationFailed):
        run_git(("cat-file", "blob", blob), where, str(ground.main))
    assert not (tmp_path / "evil").exists()


def test_nothing_is_packed_or_pruned_by_a_merge(ground: Ground) -> None:
    for key, value in {"gc.auto": "1", "gc.autoDetach": "false", "gc.pruneExpire": "now"}.items():
        git(ground.main, "config", key, value)
    objects = ground.main / ".git" / "objects"
    (objects / "17").mkdir(exist_ok=True)
    for number in range(4):
        (objects / "17" / f"{number:038x}").write_bytes(b"")
    assert isinstance(merge_branch(ground.wanted()), Merged)
    assert list((objects / "pack").iterdir()) == []


def test_no_attribute_that_git_finds_by_itself_hides_a_text(ground: Ground, tmp_path: Path) -> None:
    (tmp_path / "attributes").write_text("*.py -diff\n", encoding="utf-8")
    repository = open_repository(str(ground.work))
    with borrowed(repository, ground.at(ground.work)) as git_there:
        setting = ("-c", f"core.attributesFile={tmp_path / 'attributes'}")
        shown = git_there.objects(*setting, "diff-tree", "-p", ground.at(ground.main), ground.at(ground.work))
    assert b"+def log_in" in shown


def test_a_folder_that_is_gone_is_not_taken_for_a_missing_git(tmp_path: Path) -> None:
    with pytest.raises(ValidationFailed, match="does not exist any more"):
        run_git(("version",), {}, str(tmp_path / "gone"))


KILLING = """#!/bin/sh
if [ -e {folder}/once ]; then exec cat; fi
touch {folder}/once
kill -9 $(cut -d ' ' -f 4 /proc/$PPID/stat) $PPID
"""


def test_what_a_killed_git_left_in_the_checkout_is_taken_back(
    ground: Ground, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "bin").mkdir()
    program = tmp_path / "bin" / "git-lfs"
    program.write_text(KILLING.format(folder=tmp_path), encoding="utf-8")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{os.environ['PATH']}")
    monkeypatch.setattr(branch_merge, "put_back", lambda *_, **__: False)
    git(ground.main, "config", "filter.lfs.smudge", "git-lfs smudge -- %f")
    ground.commit(ground.work, ".gitattributes", "*.bin filter=lfs\n")
    ground.commit(ground.work, "README.md", "changed\n")
    ground.commit(ground.work, "deep/down/new.txt", "text\n")
    ground.commit(ground.work, "z.bin", "text\n")
    ground.write(ground.main, "mine.txt", "mine\n")
    with pytest.raises(Conflict, match="not committed"):
        merge_branch(ground.wanted())
    assert " M README.md" in git(ground.main, "status", "--porcelain")
    (ground.main / ".git" / "index.lock").unlink()
    monkeypatch.undo()
    git(ground.main, "config", "--remove-section", "filter.lfs")
    ground.merge()
    assert git(ground.main, "status", "--porcelain") == "?? mine.txt\n"


@pytest.mark.parametrize("state", ["shorter", "staged", "other"])
def test_what_somebody_did_to_a_file_is_not_taken_for_what_a_merge_left(ground: Ground, state: str) -> None:
    ground.commit(ground.work, "README.md", LINES + "more\n")
    text = {"shorter": LINES[:50], "staged": LINES + "mine\n", "other": "mine\n"}[state]
    ground.write(ground.main, "README.md", text)
    if state == "staged":
        git(ground.main, "add", "-A")
    assert "with changes of README.md" in ground.refused(ground.wanted())
    assert (ground.main / "README.md").read_text(encoding="utf-8") == text


def test_files_that_could_not_be_written_leave_nothing_half_done(
    ground: Ground, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As on a full disk: one file is whole, the next is cut off, the last is not there."""
    for name in ("a.txt", "b.txt", "c.txt"):
        ground.commit(ground.work, name, "text\n" * 100)
    wanted = ground.wanted()
    run = branch_merge.run_git

    def full(words: tuple[str, ...], *rest: Any, **more: Any) -> bytes:
        if "--ff-only" not in words:
            return run(words, *rest, **more)
        ground.write(ground.main, "a.txt", "text\n" * 100)
        ground.write(ground.main, "b.txt", "text\n" * 10)
        raise ValidationFailed("git merge failed: error: unable to write file b.txt")

    monkeypatch.setattr(branch_merge, "run_git", full)
    assert "unable to write file b.txt" in ground.refused(wanted)
    monkeypatch.undo()
    ground.merge(wanted)

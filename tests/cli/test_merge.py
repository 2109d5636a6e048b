"""`rookery merge` and `rookery publish`: a person's last steps, with real repositories and processes that die."""

import contextlib
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.cli.terminal import Terminal
from tests.domains.tracker.desk import git

ADDRESS = "https://github.com/acme/shop.git"


class Shop:
    """A project with a repository, and an issue whose branch was reviewed."""

    def __init__(self, terminal: Terminal, folder: Path) -> None:
        self.terminal = terminal
        self.folder = folder / "shop"
        self.tree = folder / "tree"
        self.folder.mkdir()
        git(self.folder, "init", "-q", "-b", "main")
        (self.folder / "README.md").write_text("# Shop\n", encoding="utf-8")
        git(self.folder, "add", "-A")
        git(self.folder, "commit", "-q", "-m", "first")
        terminal.ok("projects", "create", "shop", "--path", str(self.folder))
        made = self.call("create_issue", {"title": "log in", "labels": ["phase:ready"]}, "--as-owner")
        self.issue: str = made["identifier"]
        self.status("in_progress")
        git(self.folder, "worktree", "add", "-q", "-b", "work", str(self.tree))
        self.commit("login.py", "x = 1\n")
        marker = f'{{"issue": "{self.issue}", "issue_id": "{made["id"]}", "branch": "work"}}'
        (self.tree / ".symphony-worktree").write_text(marker, encoding="utf-8")

    def call(self, tool: str, arguments: dict[str, Any], *flags: str) -> Any:
        bound = ("--project-id", "shop", *flags)
        return self.terminal.json("call", tool, json.dumps(arguments), *bound)

    def status(self, to: str) -> None:
        self.call("set_issue_status", {"issue_id": self.issue, "status": to}, "--as-owner")

    def commit(self, name: str, text: str) -> None:
        (self.tree / name).write_text(text, encoding="utf-8")
        git(self.tree, "add", name)
        git(self.tree, "commit", "-q", "-m", "work")

    def open(self) -> None:
        given = {"diff": git(self.tree, "diff", "main...HEAD"), "branch_name": "work", "base_branch": "main"}
        place = ("--worktree-path", str(self.tree), "--issue-id", self.issue)
        with contextlib.chdir(self.tree):
            self.call("create_pr", given, *place, "--agent-type", "worker")

    def approve(self) -> None:
        self.call("approve_pr", {}, "--issue-id", self.issue, "--agent-type", "judge")

    def shown(self) -> dict[str, Any]:
        return self.terminal.json("issues", "show", self.issue, "--json")

    @property
    def main(self) -> str:
        return git(self.folder, "rev-parse", "main").strip()


@pytest.fixture
def shop(terminal_on: Terminal, tmp_path: Path) -> Shop:
    return Shop(terminal_on, tmp_path)


def test_what_is_not_there_or_not_approved_ends_in_one_sentence(shop: Shop) -> None:
    for command in ("merge", "publish"):
        assert "there is no issue SHO-999" in shop.terminal.fails(command, "SHO-999")
    assert "cannot become done" in shop.terminal.fails("merge", shop.issue)
    assert "has no pull request" in shop.terminal.fails("publish", shop.issue)
    shop.open()
    before = shop.main
    assert "is open and cannot become merged" in shop.terminal.fails("merge", shop.issue)
    assert shop.main == before


def test_an_approved_pull_request_is_merged_as_the_project_is_set_up(shop: Shop) -> None:
    shop.open()
    shop.approve()
    done = shop.terminal.json("merge", shop.issue, "--reason", "shipped", "--json")
    assert (done["pr_status"], done["issue_status"], done["commit"]) == ("merged", "done", shop.main)
    assert git(shop.folder, "rev-list", "--merges", "--count", "main").strip() == "1"
    shown = shop.shown()
    assert (shown["pr"]["status"], shown["pr"]["merged_in"]) == ("merged", shop.main)
    assert shown["comments"][-1]["content"].endswith(": shipped")
    assert "is done already" in shop.terminal.fails("merge", shop.issue)


def test_a_fast_forward_is_chosen_or_refused(shop: Shop) -> None:
    shop.open()
    shop.approve()
    (shop.folder / "other.md").write_text("other\n", encoding="utf-8")
    git(shop.folder, "add", "-A")
    git(shop.folder, "commit", "-q", "-m", "other")
    assert "cannot be fast-forwarded" in shop.terminal.fails("merge", shop.issue, "--ff")
    assert shop.terminal.json("merge", shop.issue, "--merge-commit", "--json")["commit"] == shop.main


DYING = """
import os, signal, sys
import rookery.domains.tracker.merge_tools as tools
tools.record_merge = lambda *_: os.kill(os.getpid(), signal.SIGKILL)
from rookery.cli.main import rookery
rookery(sys.argv[1:])
"""


@pytest.mark.parametrize("method", ["--ff", "--merge-commit"])
def test_a_process_that_is_killed_between_git_and_the_record_is_made_good_by_the_next(shop: Shop, method: str) -> None:
    shop.open()
    shop.approve()
    before = shop.main
    for _ in range(2):
        words = [sys.executable, "-c", DYING, "merge", shop.issue, method]
        done = subprocess.run(words, env=shop.terminal.full_environ(), check=False, timeout=120)
        assert done.returncode == -9
    merged = shop.main
    assert merged != before
    assert (shop.shown()["status"], shop.shown()["pr"]["status"]) == ("review", "approved")
    told = shop.terminal.json("merge", shop.issue, method, "--json")
    assert (told["pr_status"], told["commit"], shop.main) == ("merged", merged, merged)
    shown = shop.shown()
    assert (shown["status"], len(shown["comments"])) == ("done", 1)
    assert git(shop.folder, "status", "--porcelain") == ""
    assert int(git(shop.folder, "rev-list", "--merges", "--count", "main")) == (0 if method == "--ff" else 1)


def test_what_cannot_be_published_is_told(shop: Shop, tmp_path: Path) -> None:
    shop.open()
    assert "remote origin" in shop.terminal.fails("publish", shop.issue)
    git(shop.folder, "remote", "add", "origin", ADDRESS)
    git(shop.folder, "config", "remote.origin.pushurl", str(tmp_path / "nowhere.git"))
    assert "the branch could not be pushed" in shop.terminal.fails("publish", shop.issue)
    shop.commit("more.py", "y = 1\n")
    assert "not at the commit that is reviewed" in shop.terminal.fails("publish", shop.issue)
    assert shop.shown()["pr"]["url"] is None


def test_the_commands_are_found_without_a_home(tmp_path: Path) -> None:
    terminal = Terminal(tmp_path)
    for command in ("merge", "publish"):
        assert "ISSUE" in terminal.ok(command, "--help")
    assert not os.path.exists(terminal.home)

"""Whatever an agent does in a workspace, removing it loses nothing: random histories, checked with git itself."""

import asyncio
import inspect
import itertools
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rookery.engine.workspaces import Site, Workspace, prepare, remove
from tests.domains.work.workshop import git, make_repository
from tests.engine.yard import IDENTIFIER, ISSUE, commit, make_site, row_of

MARKER = ".symphony-worktree"


class Agent:
    """Works in a workspace, in sense and nonsense."""

    def __init__(self, site: Site, made: Workspace) -> None:
        self.site = site
        self.made = made
        self.numbers = itertools.count()

    def write(self) -> None:
        self._file(f"file{next(self.numbers) % 3}.txt")

    def write_ignored(self) -> None:
        self._file("cache/noise.txt")

    def change(self) -> None:
        self._file("README.md")

    def delete(self) -> None:
        Path(self.made.path, "README.md").unlink(missing_ok=True)

    def stage(self) -> None:
        self._git("add", "--all")

    def commit(self) -> None:
        self._git("add", "--all")
        self._git("commit", "-q", "--allow-empty", "-m", f"commit {next(self.numbers)}")

    def detach(self) -> None:
        self._git("checkout", "-q", "--detach")

    def come_back(self) -> None:
        self._git("checkout", "-q", self.made.branch)

    def branch(self) -> None:
        self._git("checkout", "-q", "-b", f"mine-{next(self.numbers)}")

    def tag(self) -> None:
        self._git("tag", f"saved-{next(self.numbers)}")

    def stash(self) -> None:
        self._git("stash", "--include-untracked")

    def merge(self) -> None:
        """A person merges what is there."""
        with_what = self.made.branch
        subprocess.run(["git", "merge", "-q", "-m", "merged", with_what], cwd=self.site.repository, check=False)

    def overlook(self) -> None:
        self._git("update-index", "--assume-unchanged", "README.md")

    def start_a_rebase(self) -> None:
        self._git("rebase", "-q", "--exec", "false", "HEAD~1")

    def nest(self) -> None:
        self._git("init", "-q", "inner")

    def _file(self, name: str) -> None:
        path = Path(self.made.path, name)
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"{next(self.numbers)}\n", encoding="utf-8")

    def _git(self, *words: str) -> None:
        # Much of it is refused by git, as it would be to an agent.
        subprocess.run(["git", *words], cwd=self.made.path, check=False, capture_output=True)


ODD = (Agent.overlook, Agent.nest, Agent.start_a_rebase)
"""Kept without need, since what they do is not looked into."""
DEEDS: list[Callable[[Agent], None]] = [deed for name, deed in inspect.getmembers(Agent) if not name.startswith("_")]


def files(folder: str) -> dict[str, bytes]:
    """What is in the working tree and not ignored, by path."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(Path(folder).rglob("*"))
        if path.is_file() and path.name not in (MARKER, ".git") and not {"cache", ".git"} & set(path.parts)
    }


def committed(folder: str, branch: str) -> dict[str, bytes]:
    """What a commit has of files, by path."""
    names = git(folder, "ls-tree", "-r", "--name-only", branch).splitlines()
    return {name: f"{git(folder, 'show', f'{branch}:{name}')}\n".encode() for name in names if "cache/" not in name}


def made_there(folder: str) -> set[str]:
    """Every commit that HEAD has been at, and theirs before them."""
    seen = git(folder, "reflog", "--format=%H", "HEAD").split()
    return set(git(folder, "rev-list", "HEAD", *seen).split())


@pytest.fixture(scope="module")
def template() -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as folder:
        shop = make_repository(Path(folder, "shop"))
        commit(shop, ".gitignore", "cache/\n")
        yield shop


@pytest.mark.early
@settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)
@given(st.lists(st.sampled_from(DEEDS), max_size=10))
def test_nothing_is_lost(template: Path, monkeypatch: pytest.MonkeyPatch, deeds: list[Callable[[Agent], None]]) -> None:
    for role in ("AUTHOR", "COMMITTER"):
        monkeypatch.setenv(f"GIT_{role}_NAME", "Ada")
        monkeypatch.setenv(f"GIT_{role}_EMAIL", "ada@example.org")
    with tempfile.TemporaryDirectory() as folder:
        shutil.copytree(template, Path(folder, "shop"))
        site = make_site(Path(folder), repository=Path(folder, "shop"))
        made = asyncio.run(prepare(site, ISSUE, IDENTIFIER))
        agent = Agent(site, made)
        for deed in deeds:
            deed(agent)
        check_removal(site, made, odd=any(deed in ODD for deed in deeds))


def check_removal(site: Site, made: Workspace, *, odd: bool) -> None:
    there, there_committed = files(made.path), committed(made.path, "HEAD")
    on_own_branch = git(made.path, "branch", "--show-current") == made.branch
    commits, tip = made_there(made.path), git(site.repository, "rev-parse", made.branch)
    refs = set(git(site.repository, "for-each-ref", "--format=%(refname) %(objectname)").splitlines())
    why = asyncio.run(remove(site, row_of(made.path, made.branch)))
    left = set(git(site.repository, "for-each-ref", "--format=%(refname) %(objectname)").splitlines())
    assert refs - left <= {f"refs/heads/{made.branch} {tip}"}
    reachable = set(git(site.repository, "rev-list", "--all").split())
    if why is not None:
        assert files(made.path) == there
        assert refs == left
        saved = set(git(site.repository, "rev-list", "--branches", "--tags").split())
        assert odd or not (on_own_branch and there == there_committed and commits <= saved), why
        return
    assert not os.path.lexists(made.path)
    assert there == there_committed
    assert commits <= reachable
    if refs != left:
        git(site.repository, "merge-base", "--is-ancestor", tip, "main")

"""A workspace that was begun or half removed by somebody who was killed: the next one finishes it."""

import asyncio
import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

import pytest

from rookery.core.errors import ServiceUnavailable
from rookery.domains.tracker.worktree import verify_worktree
from rookery.engine import workspace_records
from rookery.engine.workspaces import Site, Workspace, prepare, remove
from tests.domains.work.workshop import git, make_repository
from tests.engine.yard import IDENTIFIER, ISSUE, commit, make_site, row_of

MOST_COMMANDS = 30
COUNTING = """#!/bin/sh
count=$(($(cat {state} 2>/dev/null || echo 0) + 1))
echo $count > {state}
if [ $count -eq {at} ] && [ {when} = before ]; then kill -9 $PPID; exit 1; fi
{git} "$@"
code=$?
if [ $count -eq {at} ] && [ {when} = after ]; then kill -9 $PPID; fi
exit $code
"""
KILLING_ALL = """#!/bin/sh
above=""
at=$PPID
until grep -q killed_process /proc/$at/cmdline; do above="$at $above"; at=$(cut -d ' ' -f 4 /proc/$at/stat); done
kill -9 $at $above
"""
WAITING = """#!/bin/sh
echo here > {folder}/here
cat {folder}/go
"""


class Victims:
    """Starts processes that prepare a workspace."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        self._in: IO[str] = process.stdin
        self._out: IO[str] = process.stdout

    def start(self, site: Site, first: Path | None = None, row: Any = None) -> int:
        """The id of a process that prepares the workspace, or removes that of `row`.

        The programs in the folder `first` come before others.
        """
        told = {name: getattr(site, name) for name in Site.__slots__ if name != "hooks"}
        wanted = {
            "what": "prepare" if row is None else "remove",
            "path": os.environ["PATH"] if first is None else f"{first}:{os.environ['PATH']}",
            "site": told,
            "issue_id": ISSUE,
            "identifier": IDENTIFIER,
            "row": None if row is None else vars(row),
        }
        self._in.write(json.dumps(wanted) + "\n")
        self._in.flush()
        return int(self._out.readline())

    def end(self) -> int:
        """How it ended: negative if it was killed."""
        return int(self._out.readline())


@pytest.fixture(scope="module")
def victims() -> Iterator[Victims]:
    words = [sys.executable, "-m", "tests.engine.killed_process"]
    root = Path(__file__).parents[2]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=root) as process:
        yield Victims(process)
        assert process.stdin is not None
        process.stdin.close()


def program(folder: Path, name: str, text: str) -> Path:
    folder.mkdir(exist_ok=True)
    (folder / name).write_text(text, encoding="utf-8")
    (folder / name).chmod(0o755)
    return folder


def check(site: Site, made: Workspace) -> None:
    """It is what an undisturbed attempt makes, and nothing is left beside it."""
    assert made.branch == "rookery/SHO-1"
    assert made.path == site.workspace(ISSUE, IDENTIFIER)
    assert made.base == git(site.repository, "rev-parse", "main") == git(made.path, "rev-parse", "HEAD")
    assert git(made.path, "status", "--porcelain") == ""
    assert verify_worktree(made.path, made.path, IDENTIFIER, ISSUE)
    assert git(site.repository, "branch", "--format=%(refname:short)", "--list", "rookery*") == made.branch
    assert git(site.repository, "worktree", "list", "--porcelain").count("worktree ") == 2
    assert "locked" not in git(site.repository, "worktree", "list", "--porcelain")
    assert [name for name in os.listdir(site.folder) if not name.startswith(".")] == [os.path.basename(made.path)]
    assert git(site.repository, "status", "--porcelain") == ""


def counting(folder: Path, at: int, when: str) -> Path:
    """A folder with a git that kills whoever calls it, before or after its command number `at`."""
    real = shutil.which("git")
    return program(folder / "bin", "git", COUNTING.format(state=folder / "count", at=at, when=when, git=real))


def sites(folder: Path) -> Iterator[tuple[int, Path, Site]]:
    """A repository of its own for each number."""
    make_repository(folder / "template")
    for at in range(1, MOST_COMMANDS):
        shutil.copytree(folder / "template", folder / str(at) / "shop")
        yield at, folder / str(at), make_site(folder / str(at), repository=folder / str(at) / "shop")


@pytest.mark.early
@pytest.mark.parametrize("when", ["before", "after"])
async def test_killed_at_any_command_of_git(victims: Victims, tmp_path: Path, when: str) -> None:
    for at, folder, site in sites(tmp_path):
        victims.start(site, counting(folder, at, when))
        ended = victims.end()
        made = await prepare(site, ISSUE, IDENTIFIER)
        check(site, made)
        assert not (await prepare(site, ISSUE, IDENTIFIER)).created
        if ended == 0:
            assert at > 5
            return
        assert ended == -signal.SIGKILL
    pytest.fail("it never came to its end")


@pytest.mark.early
async def test_killed_while_a_workspace_is_removed(victims: Victims, tmp_path: Path) -> None:
    for at, folder, site in sites(tmp_path):
        made = await prepare(site, ISSUE, IDENTIFIER)
        tip = commit(made.path, "work.txt")
        row = row_of(made.path, made.branch)
        victims.start(site, counting(folder, at, "before"), row)
        ended = victims.end()
        assert await remove(site, row) is None
        assert git(site.repository, "worktree", "list").count("\n") == 0
        assert [name for name in os.listdir(site.folder) if not name.startswith(".")] == []
        assert git(site.repository, "rev-parse", made.branch) == tip
        if ended == 0:
            assert at > 5
            return
        assert ended == -signal.SIGKILL
    pytest.fail("it never came to its end")


def with_filter(site: Site) -> None:
    """Have the program git-lfs run while files are checked out, the only one that may."""
    commit(site.repository, ".gitattributes", "*.bin filter=lfs\n")
    for name in ("a.bin", "b.bin", "c.txt"):
        commit(site.repository, name)
    git(site.repository, "config", "filter.lfs.smudge", "git-lfs smudge -- %f")


async def test_killed_with_git_in_the_middle_of_the_checkout(victims: Victims, tmp_path: Path) -> None:
    site = make_site(tmp_path)
    with_filter(site)
    victims.start(site, program(tmp_path / "bin", "git-lfs", KILLING_ALL))
    assert victims.end() == -signal.SIGKILL
    assert git(site.repository, "worktree", "list").count("\n") == 1
    git(site.repository, "config", "--remove-section", "filter.lfs")
    made = await prepare(site, ISSUE, IDENTIFIER)
    assert made.created
    check(site, made)


class Stopped:
    """A checkout that stops at its first file until it is let go."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.site = make_site(folder)
        self._folder = folder
        self._program = program(folder / "bin", "git-lfs", WAITING.format(folder=folder)) / "git-lfs"
        monkeypatch.setenv("PATH", f"{folder / 'bin'}:{os.environ['PATH']}")
        for name in ("here", "go"):
            os.mkfifo(folder / name)
        with_filter(self.site)

    def reached(self) -> None:
        """Wait until git is there."""
        assert (self._folder / "here").read_text(encoding="utf-8") == "here\n"

    def let_go(self) -> None:
        # The filter of the second file needs nobody who waits for it.
        self._program.write_text("#!/bin/sh\ncat\n", encoding="utf-8")
        (self._folder / "go").write_text("text\n", encoding="utf-8")

    async def is_held(self, monkeypatch: pytest.MonkeyPatch) -> None:
        with monkeypatch.context() as patched:
            patched.setattr(workspace_records, "WAIT_S", 0.0)
            with pytest.raises(ServiceUnavailable, match="somebody else makes or removes a workspace"):
                await prepare(self.site, ISSUE, IDENTIFIER)


async def test_what_git_still_does_after_we_were_killed_is_waited_for(
    victims: Victims, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stopped = Stopped(tmp_path, monkeypatch)
    victim = victims.start(stopped.site)
    stopped.reached()
    os.kill(victim, signal.SIGKILL)
    assert victims.end() == -signal.SIGKILL
    await stopped.is_held(monkeypatch)
    stopped.let_go()
    check(stopped.site, await prepare(stopped.site, ISSUE, IDENTIFIER))


async def test_whoever_is_cancelled_leaves_nothing_going_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stopped = Stopped(tmp_path, monkeypatch)
    preparing = asyncio.create_task(prepare(stopped.site, ISSUE, IDENTIFIER))
    await asyncio.to_thread(stopped.reached)
    preparing.cancel()
    await stopped.is_held(monkeypatch)
    assert not preparing.done()
    stopped.let_go()
    with pytest.raises(asyncio.CancelledError):
        await preparing
    check(stopped.site, await prepare(stopped.site, ISSUE, IDENTIFIER))


async def test_what_a_failed_command_left_after_creation_is_gone(tmp_path: Path) -> None:
    site = make_site(tmp_path)
    failing = make_site(tmp_path, repository=site.repository, after_create="touch half-done; exit 3")
    with pytest.raises(Exception, match="after_create of shop failed with exit code 3"):
        await prepare(failing, ISSUE, IDENTIFIER)
    made = await prepare(site, ISSUE, IDENTIFIER)
    assert made.created
    check(site, made)

"""`rookery demo`, in a process of its own: the whole way of an issue, played by scripted agents."""

import contextlib
import re
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from rookery.engine.project_settings import ROLES
from tests.cli.terminal import LIMIT_S, Terminal
from tests.domains.work.workshop import git

STORY_S = 240


@pytest.fixture
def terminal(tmp_path: Path) -> Terminal:
    """One whose temporary folders lie in a folder of the test."""
    place = tmp_path / "tmp"
    place.mkdir()
    return Terminal(tmp_path, TMPDIR=str(place))


def played(terminal: Terminal, *options: str) -> subprocess.CompletedProcess[str]:
    """A demo that ends with its story. A busy machine takes its time."""
    return subprocess.run(
        [sys.executable, "-m", "rookery.entry", "demo", "--headless", *options],
        env=terminal.full_environ(),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=STORY_S + LIMIT_S,
        check=False,
    )


def demos(terminal: Terminal) -> list[Path]:
    return list(Path(terminal.environ["TMPDIR"]).glob("rookery-demo-*"))


def test_a_story_that_takes_too_long_ends_with_an_error_and_leaves_nothing_behind(terminal: Terminal) -> None:
    done = played(terminal, "--limit-s", "1")
    assert done.returncode == 1
    assert "the demo did not reach its end: not merged within 1 s" in done.stderr
    assert demos(terminal) == []


def test_an_issue_goes_from_a_request_to_a_merged_commit_with_a_rejection_on_the_way(terminal: Terminal) -> None:
    done = played(terminal, "--keep", "--limit-s", str(STORY_S))
    assert done.returncode == 0, (done.stdout, done.stderr)
    (folder,) = demos(terminal)
    assert str(folder) in done.stdout
    repository = folder / "till"
    assert (
        git(repository, "log", "-1", "--format=%s", "main").strip() == "Merge TIL-001: A split bill adds up to the bill"
    )
    assert "divmod" in (repository / "till/bill.py").read_text(encoding="utf-8")
    assert git(repository, "status", "--porcelain") == ""
    assert subprocess.run([str(repository / "check")], cwd=repository, capture_output=True, check=False).returncode == 0

    terminal.environ["ROOKERY_HOME"] = str(folder / "home")
    issue = terminal.json("call", "get_issue", "--as-owner", "--project-id", "till", '{"issue_id": "TIL-001"}')
    assert issue["status"] == "done"
    told = [line.split(maxsplit=3)[2:] for line in done.stdout.splitlines() if re.match(r" *[0-9.]+ s  ", line)]
    assert {who for who, _ in told} == {*ROLES, "orchestrator", "you"}
    said = [what for _, what in told]
    order = ["from research to", "from architecture to", "from grooming to", "opens revision 1", "REJECTS revision 1"]
    order += ["opens revision 2", "approves revision 2", "merge revision 2"]
    places = [next(at for at, what in enumerate(said) if part in what) for part in order]
    assert places == sorted(places)

    coverage = terminal.json("call", "list_coverage", "--as-owner", "--project-id", "till", "{}")["records"]
    assert {each["file_path"] for each in coverage} == {
        *("till/__init__.py", "till/__main__.py", "till/bill.py", "till/money.py"),
    }
    taken = terminal.json("intake", "list", "--project", "till", "--json")
    assert [each["state"] for each in taken["requests"]] == ["done"] * 3
    issues = [each["issues"] for each in taken["requests"]]
    assert sorted(map(tuple, issues)) == [("TIL-001",), ("TIL-001",), ("TIL-002",)]


class Shown:
    """A demo that somebody watches: its story is over, and it is still served."""

    def __init__(self, terminal: Terminal) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "rookery.entry", "demo", "--limit-s", str(STORY_S)],
            env=terminal.full_environ(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert self.process.stdout is not None
        self.lines: list[str] = []
        for line in self.process.stdout:
            self.lines.append(line.rstrip())
            if line.startswith("Ctrl-C"):
                break

    def end(self, how: signal.Signals) -> int:
        self.process.send_signal(how)
        with contextlib.suppress(ValueError):
            self.process.communicate(timeout=LIMIT_S)
        return self.process.returncode


@pytest.fixture
def shown(terminal: Terminal) -> Iterator[Shown]:
    running = Shown(terminal)
    yield running
    if running.process.poll() is None:
        running.end(signal.SIGKILL)


def test_it_is_served_until_ctrl_c_and_leaves_nothing_behind(terminal: Terminal, shown: Shown) -> None:
    link, address = (found[0] for line in shown.lines if (found := re.findall(r"http://127\.0\.0\.1:\d+\S*\w", line)))
    assert link.startswith(f"{address}/sign-in/")
    with urllib.request.urlopen(link, timeout=LIMIT_S) as page:
        assert b"signs this browser in, once" in page.read()
    (folder,) = demos(terminal)
    terminal.environ["ROOKERY_HOME"] = str(folder / "home")
    assert "TIL-001" in terminal.ok("issues", "show", "TIL-001")
    assert shown.end(signal.SIGINT) == 0
    assert demos(terminal) == []

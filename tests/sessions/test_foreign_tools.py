"""What tools that are not ours may do without a question."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from rookery.core.actor import Mode
from rookery.sessions.foreign_tools import Ground, is_free, is_told_by_name, our_tool, outside_worktree

MODES: tuple[Mode, ...] = ("ask", "act", "autonomy")
NOWHERE = Ground()
OUTSIDE = ["../x", "/etc/passwd", "link/x", "~/x", " /etc/passwd", "a\0b"]
READS = [("Read", "file_path"), ("NotebookRead", "notebook_path"), ("Grep", "path"), ("Glob", "path"), ("LS", "path")]


@pytest.fixture
def ground(tmp_path: Path) -> Ground:
    """A folder with a link that leads out of it, beside the server's own."""
    folder = tmp_path / "work"
    folder.mkdir()
    (folder / "link").symlink_to(tmp_path)
    (tmp_path / "home").mkdir()
    return Ground(str(folder), str(tmp_path / "home"))


def free_in(tool: str, given: Mapping[str, Any], ground: Ground = NOWHERE) -> list[bool]:
    return [is_free(tool, given, mode, ground) for mode in MODES]


@pytest.mark.parametrize("path", [*OUTSIDE, "", None, 7, "."])
def test_in_the_mode_act_no_file_outside_the_folder_is_changed_unasked(ground: Ground, path: Any) -> None:
    assert not is_free("Write", {"file_path": path}, "act", ground)
    assert not is_free("NotebookEdit", {"notebook_path": path}, "act", ground)


@pytest.mark.parametrize("path", [*OUTSIDE, 7])
@pytest.mark.parametrize(("tool", "argument"), READS)
def test_no_file_outside_the_folder_is_read_unasked(ground: Ground, tool: str, argument: str, path: Any) -> None:
    assert free_in(tool, {argument: path, "pattern": "*"}, ground) == [False, False, True]


@pytest.mark.parametrize("pattern", ["/etc/*", "../*", "a/../../*", "~/*", "{/etc,a}/*", "{a,/etc}/*", None])
def test_no_pattern_leads_out_of_the_folder_unasked(ground: Ground, pattern: Any) -> None:
    assert free_in("Glob", {"pattern": pattern}, ground) == [False, False, True]


@pytest.mark.parametrize(("tool", "argument"), READS)
def test_nothing_of_the_server_is_read_unasked(tmp_path: Path, tool: str, argument: str) -> None:
    home = tmp_path / "home"
    (home / "logs").mkdir(parents=True)
    for folder in (tmp_path, home):
        ground = Ground(str(folder), str(home))
        for path in (home / "key", home, home / "logs" / "x", folder):
            assert free_in(tool, {argument: str(path), "pattern": "*"}, ground) == [False, False, True]
    assert free_in("Grep", {"pattern": "key"}, Ground(str(tmp_path), str(home))) == [False, False, True]
    assert free_in("Read", {"file_path": "beside"}, Ground(str(tmp_path), str(home))) == [True, True, True]


def test_a_session_whose_own_folder_is_the_servers_works_in_that_one_alone(tmp_path: Path) -> None:
    folder = tmp_path / "sessions" / "one"
    folder.mkdir(parents=True)
    ground = Ground(str(folder), str(tmp_path))
    assert is_free("Read", {"file_path": "a"}, "ask", ground)
    assert is_free("Grep", {"pattern": "a"}, "ask", ground)
    assert is_free("Write", {"file_path": "a"}, "act", ground)
    for path in (tmp_path / "key", tmp_path, tmp_path / "sessions" / "two" / "a"):
        assert not is_free("Read", {"file_path": str(path)}, "act", ground)


def test_without_a_folder_every_look_and_every_edit_is_asked_for() -> None:
    assert not is_free("Edit", {"file_path": "/tmp/a"}, "act", NOWHERE)
    for tool, argument in READS:
        assert free_in(tool, {argument: "/tmp/a", "pattern": "*"}) == [False, False, True]


@pytest.mark.parametrize(
    "path",
    [
        *(".git/hooks/pre-commit", ".git", "sub/.git/config", ".GIT/config", ".claude/settings.json", ".mcp.json"),
        *(".vscode/tasks.json", ".husky/pre-push", ".envrc", "hidden/hooks/x"),
    ],
)
def test_what_makes_other_programs_run_is_not_changed_unasked(ground: Ground, path: str) -> None:
    os.symlink(".git", os.path.join(ground.folder or "", "hidden"))
    assert free_in("Write", {"file_path": path}, ground) == [False, False, True]


@pytest.mark.parametrize("tool", ["Edit", "Write", "MultiEdit"])
def test_in_the_mode_act_files_of_the_folder_are_changed_unasked(ground: Ground, tool: str) -> None:
    for path in ("a.txt", "deep/b.txt", f"{ground.folder}/c.txt", ".github/x.yml", ".gitignore"):
        assert free_in(tool, {"file_path": path}, ground) == [False, True, True]


@pytest.mark.parametrize(("tool", "argument"), READS)
def test_what_looks_at_the_folder_is_free_in_every_mode(ground: Ground, tool: str, argument: str) -> None:
    for path in ("a.txt", "deep/b.txt", f"{ground.folder}/c.txt", ".git/config"):
        assert free_in(tool, {argument: path, "pattern": "**/*.{py,md}"}, ground) == [True, True, True]


@pytest.mark.parametrize("tool", ["Grep", "Glob", "LS"])
def test_what_does_not_say_where_it_searches_searches_the_folder(ground: Ground, tool: str) -> None:
    assert free_in(tool, {"pattern": "x"}, ground) == [True, True, True]


@pytest.mark.parametrize("tool", ["WebSearch", "TodoWrite", "TaskList"])
def test_what_only_searches_or_notes_is_free_in_every_mode(tool: str) -> None:
    assert free_in(tool, {}) == [True, True, True]


def test_no_address_is_fetched_unasked_in_the_mode_ask() -> None:
    assert free_in("WebFetch", {"url": "https://example.com/?told=secret"}) == [False, True, True]


@pytest.mark.parametrize("tool", ["Bash", "mcp__tracker__close", "KillShell", "read", "Whatever"])
def test_everything_else_is_asked_for_unless_the_agent_acts_by_itself(tool: str) -> None:
    assert free_in(tool, {}) == [False, False, True]


def test_a_listed_tool_is_free_where_the_mode_allows_something_by_itself() -> None:
    listed = {"mcp__tracker__search"}
    assert [is_free("mcp__tracker__search", {}, mode, NOWHERE, listed) for mode in MODES] == [False, True, True]


@pytest.mark.parametrize("tool", ["Bash", "PowerShell", "mcp__box__exec", "mcp__box__RunCommand", "Whatever", "Read"])
def test_what_runs_what_it_is_told_is_not_told_by_its_name(ground: Ground, tool: str) -> None:
    assert not is_told_by_name(tool, {"file_path": "a", "command": "make"}, ground)


def test_edits_of_the_folder_and_tools_of_servers_are_told_by_their_name(ground: Ground) -> None:
    assert is_told_by_name("Edit", {"file_path": "a"}, ground)
    assert not is_told_by_name("Edit", {"file_path": "../a"}, ground)
    assert is_told_by_name("mcp__tracker__close", {"id": 1}, ground)


def test_our_own_tools_are_known_by_their_prefix_alone() -> None:
    assert our_tool("mcp__rookery__ping") == "ping"
    assert [our_tool(name) for name in ("ping", "mcp__other__ping", "mcp__rookery_ping")] == [None, None, None]


@pytest.mark.parametrize("tool", ["Edit", "Write", "MultiEdit"])
@pytest.mark.parametrize("path", [*OUTSIDE, "", None, 7])
def test_a_session_of_a_worktree_edits_nothing_outside_of_it(ground: Ground, tool: str, path: object) -> None:
    assert outside_worktree(tool, {"file_path": path}, ground.folder) is not None


def test_inside_of_its_worktree_and_without_one_nothing_is_refused_for_that(ground: Ground) -> None:
    assert outside_worktree("Write", {"file_path": "a/b.txt"}, ground.folder) is None
    assert outside_worktree("NotebookEdit", {"notebook_path": f"{ground.folder}/a.ipynb"}, ground.folder) is None
    assert outside_worktree("Write", {"file_path": "/etc/passwd"}, None) is None
    assert outside_worktree("Bash", {"command": "rm -r /"}, ground.folder) is None

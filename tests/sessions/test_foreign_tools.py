"""What tools that are not ours may do without a question."""

from pathlib import Path
from typing import Any

import pytest

from rookery.core.actor import Mode
from rookery.sessions.foreign_tools import is_free, our_tool

MODES: tuple[Mode, ...] = ("ask", "act", "autonomy")


@pytest.mark.parametrize("path", ["../x", "/etc/passwd", "link/x", "", None, 7, "a\0b", "."])
def test_in_the_mode_act_no_file_outside_the_folder_is_changed_unasked(tmp_path: Path, path: Any) -> None:
    folder = tmp_path / "work"
    folder.mkdir()
    (folder / "link").symlink_to(tmp_path)
    assert not is_free("Write", {"file_path": path}, "act", folder=str(folder))
    assert not is_free("NotebookEdit", {"notebook_path": path}, "act", folder=str(folder))


def test_without_a_folder_every_edit_is_asked_for() -> None:
    assert not is_free("Edit", {"file_path": "/tmp/a"}, "act")


@pytest.mark.parametrize("tool", ["Edit", "Write", "MultiEdit"])
def test_in_the_mode_act_files_of_the_folder_are_changed_unasked(tmp_path: Path, tool: str) -> None:
    for path in ("a.txt", "deep/b.txt", str(tmp_path / "c.txt")):
        assert is_free(tool, {"file_path": path}, "act", folder=str(tmp_path))
        assert not is_free(tool, {"file_path": path}, "ask", folder=str(tmp_path))


@pytest.mark.parametrize("tool", ["Read", "Grep", "Glob", "LS", "NotebookRead", "WebSearch", "WebFetch", "TodoWrite"])
def test_what_only_looks_is_free_in_every_mode(tool: str) -> None:
    assert [is_free(tool, {}, mode) for mode in MODES] == [True, True, True]


@pytest.mark.parametrize("tool", ["Bash", "mcp__tracker__close", "KillShell", "read", "Whatever"])
def test_everything_else_is_asked_for_unless_the_agent_acts_by_itself(tool: str) -> None:
    assert [is_free(tool, {}, mode) for mode in MODES] == [False, False, True]


def test_a_listed_tool_is_free_where_the_mode_allows_something_by_itself() -> None:
    listed = {"mcp__tracker__search"}
    assert [is_free("mcp__tracker__search", {}, mode, listed=listed) for mode in MODES] == [False, True, True]


def test_our_own_tools_are_known_by_their_prefix_alone() -> None:
    assert our_tool("mcp__rookery__ping") == "ping"
    assert [our_tool(name) for name in ("ping", "mcp__other__ping", "mcp__rookery_ping")] == [None, None, None]

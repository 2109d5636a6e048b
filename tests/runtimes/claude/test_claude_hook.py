"""Which uses of tools are put to the host before Claude Code decides by itself."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("claude_agent_sdk", reason="the extra is not installed: pip install 'rookery[claude]'")

from rookery.core.actor import Mode
from rookery.runtimes.claude_asking import Asking
from rookery.sessions.port import Asked, Permission, ToolUse

pytestmark = pytest.mark.anyio


class Nobody:
    async def may_use(self, use: ToolUse) -> Permission:
        return Permission(False)

    async def answers(self, call_id: str, questions: Sequence[Asked]) -> Sequence[str] | None:
        return None


async def asked(mode: Mode, tool: str, **given: Any) -> bool:
    told = await Asking(Nobody(), mode).before_use({"tool_name": tool, **given}, "call", None)
    return bool(told) and told["hookSpecificOutput"]["permissionDecision"] == "ask"


@pytest.mark.parametrize("tool", ["Bash", "Edit", "Write", "Read", "Glob", "WebFetch", "mcp__other__close"])
async def test_what_touches_the_machine_the_web_or_a_server_is_asked_for(tool: str) -> None:
    assert [await asked(mode, tool) for mode in ("ask", "act", "autonomy")] == [True, True, False]


async def test_our_own_tools_are_asked_for_in_the_mode_ask_alone() -> None:
    assert [await asked(mode, "mcp__rookery__ping") for mode in ("ask", "act", "autonomy")] == [True, False, False]


@pytest.mark.parametrize("mode", ["ask", "act", "autonomy"])
async def test_an_edit_outside_of_the_worktree_is_refused_in_every_mode(tmp_path: Path, mode: Mode) -> None:
    asking = Asking(Nobody(), mode, str(tmp_path))

    async def decided(path: str) -> str | None:
        use = {"tool_name": "Write", "tool_input": {"file_path": path}}
        told = await asking.before_use(use, "call", None)
        return told["hookSpecificOutput"]["permissionDecision"] if told else None

    assert [await decided(path) for path in ("/srv/a.txt", str(tmp_path / ".." / "a.txt"))] == ["deny", "deny"]
    assert await decided(str(tmp_path / "a.txt")) == (None if mode == "autonomy" else "ask")


@pytest.mark.parametrize("tool", ["ReadMcpResourceTool", "TodoWrite", "BashOutput", "KillBash", "NotWrite"])
async def test_a_name_that_only_contains_another_is_left_to_claude_code(tool: str) -> None:
    assert not await asked("ask", tool)


async def test_what_the_sessions_own_tools_have_put_out_is_read_unasked_and_no_other_sessions(tmp_path: Path) -> None:
    ours, other = tmp_path / "ses-1" / "tool-results" / "1.txt", tmp_path / "ses-2" / "tool-results" / "1.txt"
    transcript = str(tmp_path / "ses-1.jsonl")

    async def read(path: Any, tool: str = "Read") -> bool:
        return await asked("ask", tool, tool_input={"file_path": path}, transcript_path=transcript)

    assert not await read(str(ours))
    for path in (str(other), f"{ours}/../../../ses-2/tool-results/1.txt", transcript, "tool-results/1.txt", 7, ""):
        assert await read(path), path
    assert await read(str(ours), "Write")
    (tmp_path / "ses-1" / "tool-results").mkdir(parents=True)
    ours.symlink_to("/etc/hostname")
    assert await read(str(ours))

"""What an agent does to the machine is for the host to allow, whatever the real Claude Code itself thinks of it."""

import asyncio
import os
from pathlib import Path
from typing import Any

import pytest

from tests.clients.scripted_model import Say, Use

pytest.importorskip("claude_agent_sdk", reason="the extra is not installed: pip install 'rookery[claude]'")

from rookery.core.actor import Mode
from rookery.core.errors import ServiceUnavailable
from rookery.runtimes.claude_agent import ClaudeAgent
from rookery.runtimes.claude_launch import ClaudeConfig
from rookery.sessions.port import Permission, ToolUse
from tests.runtimes.claude.conftest import Speaks
from tests.runtimes.claude.stage import CONFIG, PATIENCE_S, Person, Stage, turn

WAIT = Use("Bash", {"command": "true"})


async def no(use: ToolUse) -> Permission:
    return Permission(False, "not that")


def _write(path: Path) -> Use:
    return Use("Write", {"file_path": str(path), "content": "x"})


def _deaf(agent: ClaudeAgent, monkeypatch: pytest.MonkeyPatch) -> None:
    """As if its program did not answer when it is told of another mode."""

    async def unanswered(mode: str) -> None:
        raise TimeoutError(f"no answer to {mode}")

    client: Any = agent._client  # pyright: ignore[reportPrivateUsage]
    monkeypatch.setattr(client, "set_permission_mode", unanswered)


async def test_an_agent_that_does_not_hear_of_the_narrower_mode_edits_nothing_unasked(
    stage: Stage, speaks: Speaks, monkeypatch: pytest.MonkeyPatch
) -> None:
    late = stage.folder / "late.txt"
    speaks(WAIT, _write(late), Say("well"))
    narrowed = asyncio.Event()

    async def later(use: ToolUse) -> Permission:
        if use.tool == "Bash":
            await narrowed.wait()
        return Permission(use.tool == "Bash")

    person = Person(later)
    agent = await stage.agent(person, "act")
    _deaf(agent, monkeypatch)
    running = asyncio.create_task(turn(agent))
    async with asyncio.timeout(PATIENCE_S):
        await person.asked.wait()
    with pytest.raises(ServiceUnavailable, match="mode"):
        await agent.set_mode("ask")
    narrowed.set()
    await running
    assert person.tools == ["Bash", "Write"]
    assert not late.exists()


async def test_not_even_one_that_began_without_any_questions(
    stage: Stage, speaks: Speaks, monkeypatch: pytest.MonkeyPatch
) -> None:
    new = stage.folder / "new.txt"
    speaks(WAIT, Say("free"), _write(new), WAIT, Say("well"))
    person = Person(no)
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    # It lets root begin so in a place that is said to be sealed off.
    sealed = ClaudeConfig(environment={**CONFIG.environment, "IS_SANDBOX": "1"})
    agent = await stage.agent(person, "autonomy", config=sealed)
    assert not (await turn(agent)).one("tool_result")["is_error"]
    assert person.tools == []
    _deaf(agent, monkeypatch)
    with pytest.raises(ServiceUnavailable, match="mode"):
        await agent.set_mode("act")
    await turn(agent)
    assert person.tools == ["Write", "Bash"]
    assert not new.exists()


async def test_an_agent_that_is_gone_can_be_told_of_any_mode(stage: Stage, speaks: Speaks) -> None:
    speaks(Say("hello"))
    agent = await stage.agent()
    await agent.stop()
    await agent.set_mode("ask")


@pytest.mark.parametrize("mode", ["ask", "act"])
async def test_files_are_the_hosts_to_allow_also_where_claude_code_would_not_ask(
    stage: Stage, speaks: Speaks, mode: Mode
) -> None:
    kept, new = stage.folder / "kept.txt", stage.folder / "new.txt"
    kept.write_text("a secret of the folder")
    look = Use("Read", {"file_path": str(kept)})
    search = Use("Grep", {"pattern": "secret", "path": str(stage.folder), "output_mode": "content"})
    speaks(look, search, _write(new), Say("well"))
    person = Person(no)
    played = await turn(await stage.agent(person, mode))
    assert person.tools == ["Read", "Grep", "Write"]
    assert [(result["is_error"], result["text"]) for result in played.all("tool_result")] == [(True, "not that")] * 3
    assert not new.exists()


async def test_what_the_host_allows_is_done(stage: Stage, speaks: Speaks) -> None:
    new = stage.folder / "new.txt"
    speaks(_write(new), Use("Read", {"file_path": str(new)}), Say("well"))
    person = Person()
    played = await turn(await stage.agent(person, "act"))
    assert person.tools == ["Write", "Read"]
    assert [result["is_error"] for result in played.all("tool_result")] == [False, False]
    assert new.read_text() == "x"

"""What goes wrong with the real Claude Code ends the turn once, with a reason, and leaves no process behind."""

import asyncio
import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest

from tests.clients.scripted_model import Cut, Fail, Say, Step, Use

pytest.importorskip("claude_agent_sdk", reason="the extra is not installed: pip install 'rookery[claude]'")

from rookery.core.errors import ConfigurationError, ServiceUnavailable
from rookery.core.ids import new_id
from rookery.runtimes.claude_launch import ClaudeConfig
from rookery.sessions.port import Permission, ToolUse
from tests.runtimes.claude.conftest import Speaks
from tests.runtimes.claude.stage import PATIENCE_S, PING, Person, Played, Stage, processes, turn

ROOT = Path(__file__).parents[3]
BASH = {"command": "setsid sleep 600 >/dev/null 2>&1 & echo started"}


async def never(use: ToolUse) -> Permission:
    await asyncio.Event().wait()
    raise AssertionError


def failed(played: Played, code: str) -> str:
    """The sentence of the one error, after which comes the one end."""
    error = played.one("error")
    assert error["code"] == code
    assert played.names[-2:] == ["error", "done"]
    assert (played.done["reason"], played.done["error"]) == ("failed", error["message"])
    return error["message"]


async def test_a_program_that_is_missing_is_named(stage: Stage) -> None:
    with pytest.raises(ConfigurationError, match="no Claude Code at /nowhere/claude"):
        await stage.agent(config=ClaudeConfig(program="/nowhere/claude"))


async def test_a_program_that_is_something_else_cannot_be_started(stage: Stage) -> None:
    with pytest.raises(ServiceUnavailable, match="cannot be started"):
        await stage.agent(config=ClaudeConfig(program="/bin/false"))
    assert processes(stage.session) == []


async def test_a_folder_that_is_gone_is_named(stage: Stage) -> None:
    with pytest.raises(ServiceUnavailable, match="/nowhere"):
        await stage.agent(cwd="/nowhere")


async def test_without_room_for_its_files_no_agent_is_started(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", "/nowhere")
    with pytest.raises(ServiceUnavailable, match="no folder can be made"):
        await stage.agent()


@pytest.mark.parametrize(
    ("step", "code", "said"),
    [
        (Fail(400, "too many herons"), "model_request", "too many herons"),
        (Fail(401, "bad key"), "model_auth", "ANTHROPIC_API_KEY"),
        (Fail(404, "no such model"), "model_unknown", "model"),
        (Fail(500), "model_error", "try again"),
        (Fail(529), "model_busy", "try again"),
        (Cut(), "network", "cannot be reached"),
    ],
)
async def test_an_error_of_the_model_ends_the_turn(
    stage: Stage, speaks: Speaks, step: Step, code: str, said: str
) -> None:
    speaks(step)
    played = await turn(await stage.agent())
    assert said in failed(played, code)
    assert played.text == "", "what went wrong is not told as the agent's words"


async def test_an_error_that_passes_is_told_and_the_turn_goes_on(stage: Stage, speaks: Speaks) -> None:
    speaks(Fail(529, times=1, then=Say("well again")))
    played = await turn(await stage.agent())
    assert "529" in played.one("system")["text"]
    assert played.done["output"] == "well again"


async def test_a_model_that_is_not_there_any_more_ends_the_turn(stage: Stage, speaks: Speaks) -> None:
    model = speaks(Use(PING, {}), Say("never"))

    async def cut_off(use: ToolUse) -> Permission:
        await asyncio.to_thread(model.hang_up)
        return Permission(True)

    played = await turn(await stage.agent(Person(cut_off)))
    assert "cannot be reached" in failed(played, "network")


async def test_too_many_turns_end_the_turn(stage: Stage, speaks: Speaks) -> None:
    speaks(Use(PING, {}), Use(PING, {}), Say("never"))
    agent = await stage.agent(max_turns=1)
    assert "limit of turns (1)" in failed(await turn(agent), "max_turns")


async def test_a_budget_that_is_spent_ends_the_turn(stage: Stage, speaks: Speaks) -> None:
    speaks(Use(PING, {}), Use(PING, {}), Say("never"))
    agent = await stage.agent(budget_usd=0.000_001)
    failed(await turn(agent), "budget")


async def test_a_killed_program_ends_the_turn_with_all_that_it_started(stage: Stage, speaks: Speaks) -> None:
    speaks(Use("Bash", BASH), Use(PING, {}), Say("never"))
    pinged = asyncio.Event()

    async def decide(use: ToolUse) -> Permission:
        if use.tool == PING:
            pinged.set()
            await never(use)
        return Permission(True)

    agent = await stage.agent(Person(decide))
    running = asyncio.create_task(turn(agent))
    async with asyncio.timeout(PATIENCE_S):
        await pinged.wait()
    assert b"sleep" in b"".join(Path(f"/proc/{pid}/cmdline").read_bytes() for pid in processes(stage.session))
    assert agent.pid is not None
    os.kill(agent.pid, signal.SIGKILL)
    assert "SIGKILL" in failed(await running, "killed")
    assert not agent.alive
    assert processes(stage.session) == []
    assert "takes no messages" in failed(await turn(agent), "crashed")


async def test_a_stopped_agent_leaves_nothing_behind(stage: Stage, speaks: Speaks) -> None:
    speaks(Use("Bash", BASH), Use(PING, {}), Say("never"))
    pinged = asyncio.Event()

    async def decide(use: ToolUse) -> Permission:
        if use.tool == PING:
            pinged.set()
            await never(use)
        return Permission(True)

    person = Person(decide)
    agent = await stage.agent(person)
    running = asyncio.create_task(turn(agent))
    async with asyncio.timeout(PATIENCE_S):
        await pinged.wait()
    await agent.stop()
    played = await running
    assert played.done["reason"] == "stopped"
    assert played.all("error") == []
    assert person.given_up.is_set()
    assert processes(stage.session) == []
    assert not agent.alive
    await agent.stop()


async def test_an_sdk_that_does_not_let_go_keeps_nothing_alive(
    stage: Stage, speaks: Speaks, monkeypatch: pytest.MonkeyPatch
) -> None:
    speaks(Say("hello"))
    agent = await stage.agent()

    client: Any = agent._client  # pyright: ignore[reportPrivateUsage]
    let_go = client.disconnect

    async def fail() -> None:
        await let_go()
        raise RuntimeError("cannot let go")

    monkeypatch.setattr(client, "disconnect", fail)
    await agent.stop()
    assert processes(stage.session) == []
    assert not agent._tasks  # pyright: ignore[reportPrivateUsage]


HOST = """
import asyncio, sys
from pathlib import Path
from rookery.app import make_platform
from rookery.identity.resolve import Binding
from rookery.runtimes.claude import ClaudeRuntime
from rookery.sessions.port import Launch, Permission
from rookery.settings import Settings

class Person:
    async def may_use(self, use):
        if use.tool != "Bash":
            print("waiting", flush=True)
            await asyncio.Event().wait()
        return Permission(True)

async def main(home, session):
    platform = make_platform(Settings(home=home, plugins=False))
    actor = platform.database.direct(lambda tx: platform.resolver.resolve(tx, Binding(session=session))).actor
    launch = Launch(session=session, actor=actor, mode="ask", cwd=home)
    agent = await ClaudeRuntime(platform).start(launch, Person())
    await agent.send("go on")
    async for event in agent.events():
        pass

asyncio.run(main(*sys.argv[1:]))
"""


async def test_a_server_that_is_killed_takes_its_agents_along(user: Path, speaks: Speaks, tmp_path: Path) -> None:
    speaks(Use("Bash", BASH), Use(PING, {}), Say("never"))
    home, session = tmp_path / "home", new_id("ses")
    home.mkdir()
    env = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    host = subprocess.Popen(
        [sys.executable, "-c", HOST, str(home), session], env=env, stdout=subprocess.PIPE, text=True
    )
    try:
        assert host.stdout is not None
        assert await asyncio.to_thread(host.stdout.readline) == "waiting\n"
        assert len(processes(session)) >= 2
    finally:
        host.kill()
        host.wait(PATIENCE_S)
        assert host.stdout is not None
        host.stdout.close()
    async with asyncio.timeout(PATIENCE_S):
        while processes(session):
            await asyncio.sleep(0.05)

"""Client programs that fail, hang, print what nobody understands or leave something behind: the turn ends, once."""

import asyncio
import os
import signal
import stat
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from rookery.core.errors import Conflict
from rookery.lifecycle.leftovers import RUN_MARK
from rookery.relay import SESSION_KEY, SESSION_MARK
from rookery.runtimes import command_agent
from rookery.runtimes.command_lines import LONGEST
from tests.runtimes.command_stage import KEY, PATIENCE_S, Stage, events_of, gone, said, told, turn

ROOT = Path(__file__).parents[2]
FOR_EVER = "import time\nwhile True: time.sleep(60)\n"
# Leaves its session and keeps the output of whoever started it.
DAEMON = """
import subprocess, sys
left = subprocess.Popen(["sleep", "600"], start_new_session=True)
print(left.pid, flush=True)
"""
KILLED = """
import asyncio, sys
from pathlib import Path
from tests.runtimes.command_stage import Stage, turn

async def main():
    stage = Stage(Path(sys.argv[1]))
    agent = await stage.own(sys.argv[2])
    await agent.send("x")
    async for event in agent.events():
        print(event.data.get("text", ""), end="", flush=True)

asyncio.run(main())
"""


@pytest.fixture
async def stage(tmp_path: Path) -> AsyncIterator[Stage]:
    stage = Stage(tmp_path)
    yield stage
    await stage.close()


async def test_a_program_that_is_not_there_is_told_with_what_to_install(stage: Stage) -> None:
    for client, package in (("claude-cli", "claude-code"), ("codex", "codex"), ("gemini", "gemini-cli")):
        assert package in (stage.runtime(client).missing or "")
        [error, done] = await turn(await stage.agent(client))
        assert (error.name, error.data["code"]) == ("error", "missing")
        assert "npm install -g" in error.data["message"]
        assert (done.data["reason"], done.data["error"]) == ("failed", error.data["message"])
    stage.program("codex", "")
    assert stage.runtime("codex").missing is None
    assert stage.left == []


async def test_a_folder_that_is_not_there_is_told(stage: Stage) -> None:
    [error, _] = await turn(await stage.own("print(1)", cwd="/nowhere/at/all"))
    assert error.data["message"] == "The folder /nowhere/at/all is not there."


async def test_a_program_that_fails_is_told_with_the_end_of_its_complaint(stage: Stage) -> None:
    script = "import sys\nprint('a' * 9000 + '\\nno such model', file=sys.stderr)\nsys.exit(3)"
    events = await turn(await stage.own(script))
    [error] = told(events, "error")
    assert error["message"].startswith("The command ended with code 3: … ")
    assert error["message"].endswith("no such model")
    assert events[-1].data["reason"] == "failed"


async def test_a_program_that_is_killed_from_outside_is_told(stage: Stage) -> None:
    events = await turn(await stage.own("import os\nprint('half', flush=True)\nos.kill(os.getpid(), 9)"))
    assert said(events) == "half\n"
    assert told(events, "error")[0] == {
        "message": "The command was ended by SIGKILL in the middle of the turn.",
        "code": "killed",
    }


async def test_a_client_that_ends_before_its_turn_is_over_has_failed(stage: Stage) -> None:
    stage.program("codex", 'print(\'{"type":"thread.started","thread_id":"t-1"}\')')
    agent = await stage.agent("codex")
    events = await turn(agent)
    assert told(events, "error")[0]["message"] == "Codex ended before the turn was over."
    assert agent.native_id == "t-1"


async def test_garbage_between_the_lines_ends_nothing(stage: Stage) -> None:
    noise = "import os\nos.write(1, b'\\xff\\x00 not json\\n{\"type\":\\n\\n[1,2]\\n')"
    stage.prints("codex", "codex_tools", before=noise, after=noise)
    events = await turn(await stage.agent("codex"))
    assert events[-1].data["reason"] == "completed"
    assert len([data for data in told(events, "system") if "line" in data]) == 6
    assert events[-1].data["output"] == "The server answers."


async def test_a_line_that_is_too_long_is_left_out_and_told(stage: Stage) -> None:
    script = f"print('x' * {LONGEST + 1}); print('after')"
    events = await turn(await stage.own(script))
    [cut] = told(events, "system")
    assert f"a line of {LONGEST + 1} bytes" in cut["text"]
    assert said(events) == "after\n"


async def test_what_a_program_leaves_behind_is_ended_with_the_turn(stage: Stage) -> None:
    events = await turn(await stage.own(DAEMON))
    assert events[-1].data["reason"] == "completed"
    assert gone(int(said(events)))


async def test_a_stopped_agent_leaves_no_process(stage: Stage) -> None:
    agent = await stage.own(DAEMON + FOR_EVER)
    await agent.send("x")
    events: list[Any] = []
    async with asyncio.timeout(PATIENCE_S):
        async for event in agent.events():
            events.append(event)
            if event.name == "text_delta":
                await agent.stop()
    assert [event.name for event in events] == ["text_delta", "done"]
    assert events[-1].data["reason"] == "stopped"
    assert gone(int(said(events)))
    assert not agent.alive
    with pytest.raises(Conflict, match="stopped"):
        await agent.send("again")
    assert stage.left == []


async def test_an_interrupted_program_can_say_its_last_words(stage: Stage) -> None:
    script = (
        "import os, signal, sys, time\n"
        "signal.signal(signal.SIGINT, lambda *_: (os.write(1, b'bye\\n'), sys.exit(130)))\n"
        "print('begun', flush=True)\nwhile True: time.sleep(60)\n"
    )
    agent = await stage.own(script)
    await agent.send("x")
    events: list[Any] = []
    async with asyncio.timeout(PATIENCE_S):
        async for event in agent.events():
            events.append(event)
            if said(events) == "begun\n":
                await agent.interrupt()
    assert said(events) == "begun\nbye\n"
    assert (events[-1].data["reason"], told(events, "error")) == ("interrupted", [])
    assert agent.alive


async def test_a_program_that_ignores_an_interrupt_is_killed(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(command_agent, "INTERRUPT_S", 0.2)
    deaf = "import os, signal\nsignal.signal(signal.SIGINT, signal.SIG_IGN)\nprint(os.getpid(), flush=True)\n"
    agent = await stage.own(deaf + FOR_EVER)
    await agent.send("x")
    events: list[Any] = []
    async with asyncio.timeout(PATIENCE_S):
        async for event in agent.events():
            events.append(event)
            await agent.interrupt()
    assert events[-1].data["reason"] == "interrupted"
    assert gone(int(said(events)))


async def test_a_program_that_has_said_everything_and_does_not_end_is_ended(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(command_agent, "EXIT_S", 0.2)
    stage.prints("codex", "codex_tools", after=FOR_EVER)
    events = await turn(await stage.agent("codex"))
    assert (events[-1].data["reason"], told(events, "error")) == ("completed", [])


@pytest.mark.parametrize("how", ["interrupt", "stop"])
async def test_a_turn_that_is_ended_while_it_begins_does_not_go_on(stage: Stage, how: str) -> None:
    agent = await stage.own(FOR_EVER)
    sending = asyncio.create_task(agent.send("x"))
    await asyncio.sleep(0)
    await getattr(agent, how)()
    await sending
    [done] = await events_of(agent)
    assert done.data["reason"] == {"interrupt": "interrupted", "stop": "stopped"}[how]
    assert stage.left == []


async def test_a_mode_that_gets_stricter_while_a_turn_begins_counts(stage: Stage) -> None:
    agent = await stage.own(FOR_EVER, mode="autonomy")
    sending = asyncio.create_task(agent.send("x"))
    await asyncio.sleep(0)
    await agent.set_mode("ask")
    await sending
    assert (await events_of(agent))[-1].data["reason"] == "interrupted"


async def test_whoever_stops_listening_ends_the_turn(stage: Stage) -> None:
    agent = await stage.own("import os\nprint(os.getpid(), flush=True)\n" + FOR_EVER)
    await agent.send("x")
    listening = agent.events()
    first = await anext(listening)
    await listening.aclose()
    assert gone(int(first.data["text"]))
    assert stage.left == []
    assert await turn(await stage.own("print('well')"))


def test_a_killed_server_takes_its_programs_along(tmp_path: Path) -> None:
    env = {**os.environ, "PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT}"}
    script = "import os\nprint(os.getpid(), flush=True)" + DAEMON + FOR_EVER
    server = subprocess.Popen(
        [sys.executable, "-c", KILLED, str(tmp_path), script], env=env, stdout=subprocess.PIPE, cwd=ROOT
    )
    with server:
        assert server.stdout is not None
        program, daemon = (int(server.stdout.readline()) for _ in range(2))
        [folder] = os.listdir(tmp_path / "home" / "sessions")
        server.send_signal(signal.SIGKILL)
    assert gone(program)
    assert gone(daemon)
    assert not (tmp_path / "home" / "sessions" / folder).exists()


async def test_one_turn_at_a_time(stage: Stage) -> None:
    agent = await stage.own("print('well')")
    with pytest.raises(Conflict, match="does nothing"):
        await anext(agent.events())
    await agent.send("x")
    with pytest.raises(Conflict, match="middle of a turn"):
        await agent.send("y")
    assert said(await events_of(agent)) == "well\n"
    assert said(await turn(agent)) == "well\n"


async def test_a_program_sees_no_secret_that_is_not_its_own(stage: Stage) -> None:
    secrets = {"OPENAI_API_KEY": "sk-o", "GEMINI_API_KEY": "sk-g", "ANTHROPIC_API_KEY": "sk-a", "OPENCODE_TOKEN": "t"}
    ours = {"ROOKERY_KEY": "x", "SSH_AUTH_SOCK": "/s", "GITHUB_TOKEN": "g", "AWS_SECRET_ACCESS_KEY": "s"}
    stage.environ |= {**secrets, **ours, "HTTPS_PROXY": "http://proxy", SESSION_KEY: "of-another"}
    look = "import os, sys\nfor name, value in os.environ.items(): print(name, value, file=sys.stderr)\nsys.exit(1)"
    look = look.replace("file=sys.stderr", f"file=open({str(stage.work / 'seen')!r}, 'a')")
    for client, key in (("codex", "OPENAI_API_KEY"), ("gemini", "GEMINI_API_KEY"), ("claude-cli", "ANTHROPIC_API_KEY")):
        (stage.work / "seen").unlink(missing_ok=True)
        stage.program(stage.runtime(client)._client.program, look)
        await turn(await stage.agent(client))
        seen = dict(line.split(" ", 1) for line in (stage.work / "seen").read_text().splitlines())
        assert {name for name in secrets if name in seen} == {key}
        assert ours.keys() & seen.keys() == set()
        assert (seen["HTTPS_PROXY"], seen[SESSION_MARK]) == ("http://proxy", "ses-1")
        assert len(seen[RUN_MARK]) == 32
        # Codex hands the key on by its own environment: what starts our server there is given no other way.
        assert seen.get(SESSION_KEY) == (KEY if client == "codex" else None)


async def test_neither_the_message_nor_the_key_stands_on_a_command_line(stage: Stage) -> None:
    look = (
        "import os, sys\n"
        "folder = os.path.dirname(os.readlink('/proc/self/fd/0'))\n"
        "paths = [folder, *(os.path.join(folder, each) for each in os.listdir(folder))]\n"
        f"with open({str(stage.work / 'seen')!r}, 'w') as seen:\n"
        "    print(sys.argv, *(oct(os.stat(each).st_mode) for each in paths), sep='\\n', file=seen)\n"
    )
    for client in ("claude-cli", "codex", "gemini", "opencode"):
        stage.program(stage.runtime(client)._client.program, look)
        await turn(await stage.agent(client, instructions="You are Ada."), "what nobody may read")
        words, folder, *files = (stage.work / "seen").read_text().splitlines()
        assert KEY not in words
        assert "what nobody may read" not in words
        assert "Ada" not in words
        assert stat.S_IMODE(int(folder, 8)) == 0o700
        assert {stat.S_IMODE(int(mode, 8)) for mode in files} == {0o600}
        assert stage.left == []


async def test_a_message_of_many_megabytes_arrives_whole(stage: Stage) -> None:
    agent = await stage.own("import sys\nprint(len(sys.stdin.read()))")
    assert said(await turn(agent, "x" * 10_000_000)) == "10000000\n"


async def test_an_agent_without_a_folder_always_works_in_the_same_one(stage: Stage) -> None:
    agent = await stage.own("import os\nprint(os.getcwd())", cwd=None)
    first, second = said(await turn(agent)), said(await turn(agent))
    assert first == second
    assert Path(first.strip()).parent == stage.home / "sessions"
    await agent.stop()
    assert stage.left == []

"""Sessions that people talk to are paused as well: messages wait, turns end with the reason, nobody stays warm."""

import asyncio
import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from rookery.runtimes.command import CommandRuntime
from rookery.runtimes.command_own import OwnCommand
from rookery.sessions.port import ToolUse
from tests.lifecycle.pause_desk import REASON, PauseDesk
from tests.sessions.agents import Puppet, Puppets, obedient, patient
from tests.sessions.stage import Stage

pytestmark = pytest.mark.anyio
SAID = f"everything was paused by owner: {REASON}"


@pytest.fixture
def puppets() -> Puppets:
    return Puppets(patient)


@pytest.fixture
def stage(make_stage: Callable[..., Stage], puppets: Puppets) -> Stage:
    made = make_stage(pause_grace_s=0.2)
    made.use(puppets)
    return made


async def begun(stage: Stage, session_id: str) -> str:
    """The id of a message whose turn is under way."""
    message = stage.send(session_id, "one")
    await stage.until(lambda: stage.events(session_id, "text_delta"), "it works")
    return message


async def test_a_message_waits_for_the_resume_and_is_then_answered(stage: Stage, puppets: Puppets) -> None:
    puppets.play = obedient
    desk = PauseDesk(stage.fleet)
    session = stage.open()
    await desk.pause()
    async with stage.at_work():
        message = stage.send(session.id, "are you there?")
        waiting = "SELECT 1 FROM jobs WHERE waits_for IS NOT NULL"
        await stage.until(lambda: stage.read(lambda tx: tx.first(waiting)), "it is put off")
        assert (puppets.made, stage.events(session.id), list(stage.runs())) == ([], [], [])
        assert stage.row(session.id).error == f"its messages wait: {SAID}"
        await desk.resume()
        assert (await stage.done(session.id, message)).data["output"] == "are you there?"
    assert (stage.message(message).state, stage.row(session.id).error) == ("done", None)


async def test_a_turn_is_told_of_the_pause_and_ends_with_it_and_the_next_message_goes_on(
    stage: Stage, puppets: Puppets
) -> None:
    desk = PauseDesk(stage.fleet)
    session = stage.open()
    async with stage.at_work():
        message = await begun(stage, session.id)
        await desk.pause()
        ended = await stage.done(session.id, message)
        assert (ended.data["reason"], ended.data["error"]) == ("stopped", f"stopped: {SAID}")
        assert [event.data["text"] for event in stage.events(session.id, "system")] == [
            f"{SAID}; the agent only looks on, and is stopped soon"
        ]
        assert (puppets.made[0].modes[-1], puppets.made[0].stops, stage.message(message).state) == ("ask", 1, "done")
        await desk.resume()
        puppets.play = obedient
        assert (await stage.turn(session.id, "go on"))["output"] == "go on"
    await stage.until(lambda: [run.status for run in stage.runs()] == ["cancelled", "succeeded"], "both are ended")
    assert [run.error for run in stage.runs()] == [SAID, None]


async def test_an_agent_that_takes_no_other_mode_has_its_time_all_the_same(
    stage: Stage, puppets: Puppets, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def busy(puppet: Puppet, mode: str) -> None:
        raise RuntimeError("the pipe is busy")

    monkeypatch.setattr(Puppet, "set_mode", busy)
    session = stage.open()
    async with stage.at_work():
        message = await begun(stage, session.id)
        await PauseDesk(stage.fleet).pause()
        ended = await stage.done(session.id, message)
    assert (ended.data["reason"], ended.data["error"]) == ("stopped", f"stopped: {SAID}")


async def test_its_own_tools_are_refused_while_it_has_time_but_for_those_that_read(
    make_stage: Callable[..., Stage], puppets: Puppets
) -> None:
    stage = make_stage(pause_grace_s=3000)
    stage.use(puppets)
    session = stage.open()
    async with stage.at_work():
        await begun(stage, session.id)
        host = puppets.made[0].host
        bash = ToolUse(tool="Bash", input={"command": "make"}, call_id="c1")
        assert (await host.may_use(bash)).allow
        await PauseDesk(stage.fleet).pause()
        refused = await host.may_use(bash)
        assert (refused.allow, refused.reason) == (False, SAID)
        assert (await host.may_use(ToolUse(tool="Grep", input={"pattern": "x"}, call_id="c2"))).allow
        puppets.made[0].gate.set()


async def test_what_a_person_approves_of_is_not_done_after_a_pause(
    make_stage: Callable[..., Stage], puppets: Puppets
) -> None:
    stage = make_stage(pause_grace_s=3000)
    stage.use(puppets)
    session = stage.open(mode="ask")
    async with stage.at_work():
        await begun(stage, session.id)
        wanted = ToolUse(tool="Bash", input={"command": "make"}, call_id="c1")
        deciding = asyncio.create_task(puppets.made[0].host.may_use(wanted))
        [ask] = await stage.asked()
        await PauseDesk(stage.fleet).pause()
        stage.answer(ask.id, "approve")
        decided = await asyncio.wait_for(deciding, 30)
        assert (decided.allow, decided.reason) == (False, SAID)
        puppets.made[0].gate.set()


async def test_an_agent_that_waits_for_its_next_message_is_stopped(stage: Stage, puppets: Puppets) -> None:
    puppets.play = obedient
    desk = PauseDesk(stage.fleet)
    await stage.call("create_agent", name="ada")
    mine, other = stage.open(), stage.open(agent="ada")
    async with stage.at_work():
        for session in (mine, other):
            await stage.turn(session.id, "hello")
        await stage.until(lambda: len(stage.sessions.warm) == 2, "both are kept")
        await desk.pause(agent="ada")
        await stage.until(lambda: list(stage.sessions.warm) == [mine.id], "the paused one is not")
    assert [puppet.stops for puppet in puppets.made] == [1, 1]


async def test_a_program_that_ignores_everything_is_gone_after_its_time(
    make_stage: Callable[..., Stage], tmp_path: Path
) -> None:
    script = tmp_path / "deaf.py"
    script.write_text(
        "import os, signal, subprocess, sys, time\n"
        "for each in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP): signal.signal(each, signal.SIG_IGN)\n"
        "child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(3600)'])\n"
        "print(os.getpid(), child.pid, flush=True)\nwhile True: time.sleep(60)\n"
    )
    stage = make_stage(pause_grace_s=0.2)
    stage.use(CommandRuntime(OwnCommand(f"{sys.executable} {script}"), str(tmp_path / "home"), dict(os.environ)))
    session = stage.open()
    async with stage.at_work():
        message = await begun(stage, session.id)
        pids = [int(word) for word in stage.events(session.id, "text_delta")[0].data["text"].split()]
        await PauseDesk(stage.fleet).pause()
        ended = await stage.done(session.id, message)
        assert (ended.data["reason"], SAID in ended.data["error"]) in {("stopped", True), ("interrupted", False)}
        await stage.until(lambda: not any(_lives(pid) for pid in pids), "it and its child are gone")
        await stage.until(lambda: [run.status for run in stage.runs()] == ["cancelled"], "its run is cancelled")
        assert stage.runs()[0].error == SAID


def _lives(pid: int) -> bool:
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8") as file:
            return file.read().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


async def test_who_is_paused_when_the_agent_starts_is_held_from_the_first_moment(
    stage: Stage, puppets: Puppets
) -> None:
    """Between the beginning of the run and the start of its agent a pause can come."""
    desk = PauseDesk(stage.fleet)
    starting = asyncio.Event()
    begin = puppets.start

    async def slow(*given: object) -> Puppet:
        starting.set()
        await desk.pause()
        return await begin(*given)  # pyright: ignore[reportArgumentType]

    puppets.start = slow  # pyright: ignore[reportAttributeAccessIssue]
    session = stage.open()
    async with stage.at_work():
        stage.send(session.id, "one")
        await asyncio.wait_for(starting.wait(), 30)
        await stage.until(lambda: [run.status for run in stage.runs()] == ["cancelled"], "it is stopped")
    assert puppets.made[0].modes[:1] == ["ask"]

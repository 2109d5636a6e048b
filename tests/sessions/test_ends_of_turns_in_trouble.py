"""Whatever goes wrong while a turn begins or ends: its agent is stopped, its `done` comes once, the next one works."""

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from rookery.core.errors import ServiceUnavailable
from rookery.jobs.store import Jobs
from rookery.lifecycle.sessions import Outcome
from rookery.sessions.events import SessionEvent, done
from tests.sessions.agents import Puppet, Puppets, obedient
from tests.sessions.stage import LIMIT_S, Stage

pytestmark = pytest.mark.anyio


@pytest.fixture
def puppets() -> Puppets:
    return Puppets()


@pytest.fixture
def stage(make_stage: Callable[..., Stage], puppets: Puppets) -> Stage:
    made = make_stage()
    made.use(puppets)
    return made


async def working(puppet: Puppet) -> AsyncIterator[SessionEvent]:
    yield SessionEvent("text_delta", {"text": "so far"})
    await puppet.gate.wait()
    yield done(Outcome("failed", cost_usd=0.25), "stopped")


async def test_an_agent_is_stopped_also_if_the_database_does_not_answer(
    stage: Stage, puppets: Puppets, monkeypatch: pytest.MonkeyPatch
) -> None:
    read, back = stage.database.read, asyncio.Event()

    async def hanging(work: Callable[[Any], Any], **how: Any) -> Any:
        await back.wait()
        return await read(work, **how)

    puppets.play = working
    session = stage.open()
    async with stage.at_work():
        message = stage.send(session.id, "one")
        await stage.until(lambda: stage.events(session.id, "text_delta"), "it works")
        monkeypatch.setattr(stage.database, "read", hanging)
        stage.write(lambda tx: Jobs(tx, "default").cancel(stage.message(message).job_id))
        await stage.until(lambda: puppets.made[0].stops == 1, "the agent is stopped")
        back.set()
        ended = await stage.done(session.id, message)
    assert (ended.data["reason"], ended.data["cost_usd"]) == ("stopped", 0.25)


async def test_a_job_that_is_cancelled_while_a_start_that_failed_is_cleaned_up_leaves_nothing_behind(
    stage: Stage, puppets: Puppets, monkeypatch: pytest.MonkeyPatch
) -> None:
    stopping, go = asyncio.Event(), asyncio.Event()

    async def slow(puppet: Puppet) -> None:
        stopping.set()
        await go.wait()

    with monkeypatch.context() as patched:
        patched.setattr(Puppet, "stop", slow)
        puppets.refuses = ServiceUnavailable("the model is away")
        session = stage.open()
        async with stage.at_work():
            message = stage.send(session.id, "one")
            await asyncio.wait_for(stopping.wait(), LIMIT_S)
            stage.write(lambda tx: Jobs(tx, "default").cancel(stage.message(message).job_id))
            await stage.until(lambda: stage.runs()[0].status != "running", "nobody waits for it any more")
            go.set()
            assert (await stage.done(session.id, message)).data["error"] == "the model is away"
            await stage.until(lambda: not stage.sessions.turns, "nothing is under way")
            puppets.refuses = None
            assert (await stage.turn(session.id, "two"))["output"] == "two"
    assert len(stage.events(session.id, "done")) == 2
    assert stage.row(session.id).state == "idle"


async def test_a_model_that_stops_in_the_middle_of_a_call_has_stalled(
    make_stage: Callable[..., Stage], puppets: Puppets
) -> None:
    async def stuck(puppet: Puppet) -> AsyncIterator[SessionEvent]:
        yield SessionEvent("tool_call_start", {"call_id": "c1", "tool": "Bash"})
        await puppet.gate.wait()

    await _stalls(make_stage, puppets, stuck, "nothing was heard of the agent for 0.3 s")


async def test_a_result_that_never_comes_is_waited_for_longer_and_not_for_ever(
    make_stage: Callable[..., Stage], puppets: Puppets
) -> None:
    async def lost(puppet: Puppet) -> AsyncIterator[SessionEvent]:
        yield SessionEvent("tool_call_end", {"call_id": "c1", "tool": "Bash", "input": {}})
        await puppet.gate.wait()

    await _stalls(make_stage, puppets, lost, "nothing was heard of the agent for 1.8 s")


async def _stalls(
    make_stage: Callable[..., Stage], puppets: Puppets, play: Callable[[Puppet], AsyncIterator[SessionEvent]], why: str
) -> None:
    stage = make_stage(session_stall_s=0.3, session_first_event_s=30)
    stage.use(puppets)
    puppets.play = play
    session = stage.open()
    async with stage.at_work():
        ended = await stage.turn(session.id, "one")
    assert (ended["reason"], ended["error"], puppets.made[0].stops) == ("stalled", why, 1)


async def test_an_agent_that_begins_anew_while_its_session_is_ended_is_stopped(
    stage: Stage, puppets: Puppets, monkeypatch: pytest.MonkeyPatch
) -> None:
    start, starting, go = Puppets.start, asyncio.Event(), asyncio.Event()

    async def forgetful(puppet: Puppet) -> AsyncIterator[SessionEvent]:
        if puppet.resumed is not None:
            yield SessionEvent("error", {"message": "no such session", "code": "lost"})
            yield done(Outcome("failed", error="no such session"), "failed")
            return
        async for event in obedient(puppet):
            yield event

    async def slow(runtime: Puppets, launch: Any, host: Any) -> Puppet:
        if len(runtime.made) >= 2:
            starting.set()
            await go.wait()
        return await start(runtime, launch, host)

    monkeypatch.setattr(Puppets, "start", slow)
    puppets.play = forgetful
    session = stage.open()
    async with stage.at_work():
        await stage.turn(session.id, "one")
        await stage.until(lambda: session.id in stage.sessions.warm, "its agent is kept")
        puppets.made[0].alive = False
        message = stage.send(session.id, "two")
        await asyncio.wait_for(starting.wait(), LIMIT_S)
        turn = stage.sessions.turns[session.id]
        stage.change(lambda rows: rows.end(session.id))
        await stage.until(lambda: not turn.under_way, "the turn ends")
        go.set()
        assert (await stage.done(session.id, message)).data["error"] == "the session was ended"
    assert [agent.alive for agent in puppets.made] == [False, False, False]
    assert puppets.made[2].said == []

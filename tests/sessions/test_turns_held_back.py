"""What is taken from an agent or wanted of it counts in the turn that is under way; if that fails the turn ends."""

import asyncio
from collections.abc import AsyncIterator, Callable

import pytest
import sqlalchemy as sa

from rookery.core.actor import Actor
from rookery.db.tx import Tx
from rookery.identity.store import begin_change
from rookery.identity.tables import agents
from rookery.lifecycle.sessions import Outcome
from rookery.sessions import wishes
from rookery.sessions.events import SessionEvent, done
from rookery.sessions.store import Row
from tests.sessions.agents import Puppet, Puppets, patient, told
from tests.sessions.stage import Stage

pytestmark = pytest.mark.anyio


@pytest.fixture
def puppets() -> Puppets:
    return Puppets(patient)


@pytest.fixture
def stage(make_stage: Callable[..., Stage], puppets: Puppets, monkeypatch: pytest.MonkeyPatch) -> Stage:
    monkeypatch.setattr(wishes, "LOOK_S", 0.1)
    made = make_stage()
    made.use(puppets)
    return made


async def begun(stage: Stage, session_id: str) -> str:
    """The id of a message whose turn is under way."""
    message = stage.send(session_id, "one")
    await stage.until(lambda: stage.events(session_id, "text_delta"), "it works")
    return message


async def wide(stage: Stage) -> Row:
    """A session in which the agent may do everything."""
    await stage.call("update_agent", agent="default", mode="autonomy")
    return stage.open(mode="autonomy")


async def test_an_agent_that_cannot_be_held_back_is_stopped(
    stage: Stage, puppets: Puppets, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def busy(puppet: Puppet, mode: str) -> None:
        raise RuntimeError("the pipe is busy")

    monkeypatch.setattr(Puppet, "set_mode", busy)
    session = await wide(stage)
    async with stage.at_work():
        message = await begun(stage, session.id)
        stage.change(lambda rows: rows.change(session.id, mode="ask"))
        ended = await stage.done(session.id, message)
    why = "the agent could not be held to the mode ask: RuntimeError: the pipe is busy"
    assert (ended.data["reason"], ended.data["error"], puppets.made[0].stops) == ("stopped", why, 1)


async def test_an_agent_that_does_not_take_a_wider_mode_goes_on_in_its_own(
    stage: Stage, puppets: Puppets, monkeypatch: pytest.MonkeyPatch
) -> None:
    tried: list[str] = []

    async def busy(puppet: Puppet, mode: str) -> None:
        tried.append(mode)
        raise RuntimeError("the pipe is busy")

    monkeypatch.setattr(Puppet, "set_mode", busy)
    session = await wide(stage)
    stage.change(lambda rows: rows.change(session.id, mode="ask"))
    async with stage.at_work():
        message = await begun(stage, session.id)
        stage.change(lambda rows: rows.change(session.id, mode="autonomy"))
        (line,) = await stage.until(lambda: stage.events(session.id, "system"), "it is told")
        puppets.made[0].gate.set()
        assert (await stage.done(session.id, message)).data["reason"] == "completed"
    assert line.data["text"] == "the mode autonomy cannot be taken: RuntimeError: the pipe is busy"
    assert tried == ["autonomy"]


async def test_a_mode_that_is_changed_just_before_a_turn_counts_before_the_agent_is_told_anything(
    stage: Stage, puppets: Puppets, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = await wide(stage)
    actor_of = stage.sessions.actor_of

    async def then_changed(row: Row) -> Actor:
        actor = await actor_of(row)
        stage.change(lambda rows: rows.change(session.id, mode="ask"))
        return actor

    monkeypatch.setattr(stage.sessions, "actor_of", then_changed)
    async with stage.at_work():
        message = await begun(stage, session.id)
        (agent,) = puppets.made
        assert (agent.launch.mode, agent.modes) == ("autonomy", ["ask"])
        agent.gate.set()
        await stage.done(session.id, message)
    assert stage.names(session.id)[:3] == ["turn_input", "session_status", "text_delta"]


async def test_a_mode_that_the_owner_takes_from_the_agent_is_taken_from_its_turn(
    stage: Stage, puppets: Puppets
) -> None:
    session = await wide(stage)
    async with stage.at_work():
        message = await begun(stage, session.id)
        await stage.call("update_agent", agent="default", mode="ask")
        await stage.until(lambda: puppets.made[0].modes == ["ask"], "the agent is told")
        puppets.made[0].gate.set()
        await stage.done(session.id, message)
    assert stage.row(session.id).mode == "autonomy"


async def test_the_turn_of_an_agent_that_is_there_no_more_ends(stage: Stage, puppets: Puppets) -> None:
    await stage.call("create_agent", name="temp")
    session = stage.open(agent="temp")
    async with stage.at_work():
        message = await begun(stage, session.id)
        stage.write(lambda tx: _removed(tx, "temp"))
        ended = await stage.done(session.id, message)
    assert (ended.data["reason"], puppets.made[0].stops) == ("stopped", 1)
    assert "temp" in ended.data["error"] or session.agent in ended.data["error"]


async def test_a_message_to_an_agent_that_is_there_no_more_has_its_turn_with_the_reason(
    stage: Stage, puppets: Puppets
) -> None:
    await stage.call("create_agent", name="temp")
    session = stage.open(agent="temp")
    stage.write(lambda tx: _removed(tx, "temp"))
    async with stage.at_work():
        sending = stage.sessions.send_message(stage.fleet.owner, session.id, "one")
        heard = [event async for event in sending]
    assert [event.name for event in heard] == ["turn_input", "error", "done"]
    assert heard[2].data["error"] == heard[1].data["message"] == stage.row(session.id).error
    (run,) = stage.runs()
    assert (run.status, run.error, stage.row(session.id).state) == ("failed", heard[2].data["error"], "idle")
    assert puppets.made == []


async def test_a_model_that_is_chosen_while_a_turn_runs_stays_chosen(stage: Stage, puppets: Puppets) -> None:
    async def telling(puppet: Puppet) -> AsyncIterator[SessionEvent]:
        model = f"{puppet.launch.model}-1"
        yield told(model=model)
        await puppet.gate.wait()
        yield told(model=model)
        yield done(Outcome("done"), "completed")

    puppets.play = telling
    session = stage.open(model="small")
    async with stage.at_work():
        message = stage.send(session.id, "one")
        await stage.until(lambda: stage.row(session.id).model == "small-1", "it says what it is")
        stage.change(lambda rows: rows.change(session.id, model="large"))
        puppets.made[0].gate.set()
        await stage.done(session.id, message)
        assert stage.row(session.id).model == "large"
        message = stage.send(session.id, "two")
        await stage.until(lambda: stage.row(session.id).model == "large-1", "the other one is started")
        puppets.made[1].gate.set()
        await stage.done(session.id, message)
    assert [agent.launch.model for agent in puppets.made] == ["small", "large"]


@pytest.mark.parametrize(("wish", "reason"), [("end", "stopped"), ("interrupt", "interrupted")])
async def test_a_session_that_is_ended_or_interrupted_while_its_agent_starts_tells_it_nothing(
    stage: Stage, puppets: Puppets, monkeypatch: pytest.MonkeyPatch, wish: str, reason: str
) -> None:
    start, starting, go = Puppets.start, asyncio.Event(), asyncio.Event()

    async def slow(runtime: Puppets, launch: object, host: object) -> Puppet:
        starting.set()
        await go.wait()
        return await start(runtime, launch, host)  # type: ignore[arg-type]

    monkeypatch.setattr(Puppets, "start", slow)
    session = stage.open()
    async with stage.at_work():
        message = stage.send(session.id, "one")
        await asyncio.wait_for(starting.wait(), 30)
        stage.change(lambda rows: getattr(rows, wish)(session.id))
        assert (await stage.done(session.id, message)).data["reason"] == reason
        go.set()
    assert puppets.made == []


def _removed(tx: Tx, name: str) -> None:
    begin_change(tx)
    tx.run(sa.delete(agents).where(agents.c.name == name))

"""However a turn ends, it has one `done` with a reason, its agent is stopped if it has to be, and nothing hangs."""

import asyncio
from collections.abc import AsyncIterator, Callable

import pytest
import sqlalchemy as sa

from rookery.core.errors import DatabaseError, ServiceUnavailable
from rookery.db.tx import Tx
from rookery.jobs.store import Jobs
from rookery.lifecycle.run_store import Row, RunStatus
from rookery.lifecycle.session_store import SessionRuns
from rookery.lifecycle.sessions import Outcome
from rookery.sessions import wishes
from rookery.sessions.events import SessionEvent, done
from tests.sessions.agents import Puppet, Puppets, breaking, obedient, silent, vanishing
from tests.sessions.stage import Stage

pytestmark = pytest.mark.anyio
Play = Callable[[Puppet], AsyncIterator[SessionEvent]]


@pytest.fixture
def puppets() -> Puppets:
    return Puppets()


@pytest.fixture
def stage(make_stage: Callable[..., Stage], puppets: Puppets) -> Stage:
    made = make_stage(session_stall_s=0.5, session_first_event_s=0.5)
    made.use(puppets)
    return made


def ends(stage: Stage, session_id: str) -> list[tuple[str, str]]:
    return [(each.data["reason"], each.data["error"]) for each in stage.events(session_id, "done")]


def errors(stage: Stage, session_id: str) -> list[str]:
    return [each.data["message"] for each in stage.events(session_id, "error")]


@pytest.mark.parametrize(
    ("play", "why"),
    [
        (breaking, "RuntimeError: the pipe broke"),
        (vanishing, "the agent's program ended without finishing the turn"),
    ],
)
async def test_an_agent_that_breaks_ends_its_turn_and_the_next_message_resumes_it(
    stage: Stage, puppets: Puppets, play: Play, why: str
) -> None:
    session = stage.open()
    puppets.play = play
    async with stage.at_work():
        ended = await stage.turn(session.id, "one")
        assert (ended["reason"], ended["error"]) == ("failed", why)
        puppets.play = obedient
        assert (await stage.turn(session.id, "two"))["output"] == "two"
    assert ends(stage, session.id) == [("failed", why), ("completed", "")]
    assert errors(stage, session.id) == [why]
    assert [(agent.resumed, agent.stops) for agent in puppets.made] == [(None, 1), ("native-1", 1)]
    assert [run.status for run in stage.runs()] == ["failed", "succeeded"]


@pytest.mark.parametrize("where", ["fails", "refuses"])
async def test_an_agent_that_does_not_start_ends_the_turn_with_the_reason(
    stage: Stage, puppets: Puppets, where: str
) -> None:
    session = stage.open()
    setattr(puppets, where, ServiceUnavailable("the model is away", hint="wait a while"))
    async with stage.at_work():
        ended = await stage.turn(session.id, "one")
    assert (ended["reason"], ended["error"]) == ("failed", "the model is away (wait a while)")
    row = stage.row(session.id)
    assert (row.state, row.error) == ("idle", "the model is away (wait a while)")
    assert len(ends(stage, session.id)) == 1


async def test_an_agent_that_never_says_anything_is_stopped(stage: Stage, puppets: Puppets) -> None:
    session = stage.open()
    puppets.play = silent
    async with stage.at_work():
        ended = await stage.turn(session.id, "one")
    assert (ended["reason"], ended["error"]) == ("stalled", "nothing was heard of the agent for 0.5 s")
    assert puppets.made[0].stops == 1


async def test_an_agent_that_falls_silent_is_stopped_unless_a_tool_works(stage: Stage, puppets: Puppets) -> None:
    async def play(puppet: Puppet) -> AsyncIterator[SessionEvent]:
        yield SessionEvent("tool_call_start", {"call_id": "c1", "tool": "Bash"})
        yield SessionEvent("tool_call_end", {"call_id": "c1", "tool": "Bash", "input": {}})
        await asyncio.sleep(1.2)
        yield SessionEvent("tool_result", {"call_id": "c1", "text": "", "is_error": False})
        await puppet.gate.wait()

    session = stage.open()
    puppets.play = play
    async with stage.at_work():
        ended = await stage.turn(session.id, "one")
    assert ended["reason"] == "stalled"
    assert "tool_result" in stage.names(session.id)


async def test_an_interrupted_agent_that_goes_on_is_stopped(
    stage: Stage, puppets: Puppets, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(wishes, "INTERRUPT_S", 0.1)

    async def play(puppet: Puppet) -> AsyncIterator[SessionEvent]:
        while True:
            yield SessionEvent("text_delta", {"text": "."})
            await asyncio.sleep(0.02)

    session = stage.open()
    puppets.play = play
    async with stage.at_work():
        message = stage.send(session.id, "one")
        await stage.until(lambda: stage.events(session.id, "text_delta"), "it speaks")
        stage.change(lambda rows: rows.interrupt(session.id))
        ended = await stage.done(session.id, message)
    assert (ended.data["reason"], puppets.made[0].interrupts, puppets.made[0].stops) == ("interrupted", 1, 1)


async def test_an_interrupted_agent_that_ends_its_turn_lives_on(stage: Stage, puppets: Puppets) -> None:
    async def play(puppet: Puppet) -> AsyncIterator[SessionEvent]:
        yield SessionEvent("tool_call_start", {"call_id": "c1", "tool": "Bash"})
        while not puppet.interrupts:
            await asyncio.sleep(0.01)
        yield done(Outcome("failed", cost_usd=0.25), "interrupted")

    session = stage.open()
    puppets.play = play
    async with stage.at_work():
        message = stage.send(session.id, "one")
        await stage.until(lambda: stage.events(session.id, "tool_call_start"), "it works")
        stage.change(lambda rows: rows.interrupt(session.id))
        assert (await stage.done(session.id, message)).data["reason"] == "interrupted"
        puppets.play = obedient
        await stage.turn(session.id, "two")
    assert (len(puppets.made), stage.row(session.id).cost_micros) == (1, 750_000)
    assert errors(stage, session.id) == []


async def test_ending_a_session_stops_its_turn_and_drops_what_waits(stage: Stage, puppets: Puppets) -> None:
    async def play(puppet: Puppet) -> AsyncIterator[SessionEvent]:
        yield SessionEvent("tool_call_start", {"call_id": "c1", "tool": "Bash"})
        await puppet.gate.wait()

    session = stage.open()
    puppets.play = play
    async with stage.at_work():
        first, second = stage.send(session.id, "one"), stage.send(session.id, "two")
        await stage.until(lambda: stage.events(session.id, "tool_call_start"), "it works")
        stage.change(lambda rows: rows.end(session.id))
        ended = await stage.done(session.id, first)
    assert (ended.data["reason"], ended.data["error"]) == ("stopped", "the session was ended")
    assert (stage.row(session.id).state, stage.message(second).state, puppets.made[0].stops) == ("ended", "dropped", 1)


async def test_a_cancelled_job_ends_the_turn(stage: Stage, puppets: Puppets) -> None:
    async def play(puppet: Puppet) -> AsyncIterator[SessionEvent]:
        yield SessionEvent("tool_call_start", {"call_id": "c1", "tool": "Bash"})
        await puppet.gate.wait()
        yield done(Outcome("failed", cost_usd=0.25), "stopped")

    session = stage.open()
    puppets.play = play
    async with stage.at_work():
        message = stage.send(session.id, "one")
        await stage.until(lambda: stage.events(session.id, "tool_call_start"), "it works")
        stage.write(lambda tx: Jobs(tx, "default").cancel(stage.message(message).job_id))
        ended = await stage.done(session.id, message)
    assert (ended.data["reason"], ended.data["cost_usd"]) == ("stopped", 0.25)
    assert [run.status for run in stage.runs()] == ["cancelled"]
    assert stage.message(message).state == "done"


async def test_a_server_that_stops_ends_turns_leaves_asks_open_and_goes_on_afterwards(
    make_stage: Callable[..., Stage],
) -> None:
    stage = make_stage()
    session = stage.open(mode="ask")
    async with stage.at_work():
        message = stage.send(session.id, '!use Bash {"command": "make"}')
        (ask,) = await stage.asked()
    assert ends(stage, session.id) == [("stopped", "the server was stopped")]
    assert (stage.message(message).state, stage.row(session.id).state) == ("lost", "idle")
    assert [each.id for each in stage.asks()] == [ask.id]
    stage.answer(ask.id, "approve")
    stage.use(stage.sessions.runtimes["scripted"])
    async with stage.at_work():
        told = await stage.until(lambda: stage.events(session.id, "turn_input")[1:], "the answer is brought")
        assert "owner has approved Bash" in told[0].data["text"]
        await stage.done(session.id, told[0].data["message_id"])
        again = await stage.turn(session.id, '!use Bash {"command": "make"}')
    assert again["output"] == "Bash was used"
    assert len(stage.asks(None)) == 1


async def test_a_database_that_takes_nothing_for_a_while_loses_no_event_and_no_done(
    stage: Stage, puppets: Puppets, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate, change = asyncio.Event(), stage.database.change
    refused = 0

    async def play(puppet: Puppet) -> AsyncIterator[SessionEvent]:
        for number in range(5):
            yield SessionEvent("tool_result", {"call_id": str(number), "text": "", "is_error": False})
        gate.set()
        async for event in obedient(puppet):
            yield event

    async def refusing(work: Callable[[Tx], object]) -> object:
        nonlocal refused
        if gate.is_set() and refused < 4:
            refused += 1
            raise DatabaseError("the disk is full")
        return await change(work)

    monkeypatch.setattr(stage.database, "change", refusing)
    session = stage.open()
    puppets.play = play
    async with stage.at_work():
        message = stage.send(session.id, "one")
        await stage.done(session.id, message)
        await stage.until(lambda: stage.message(message).state == "done", "the message is done")
    assert refused == 4
    assert ends(stage, session.id) == [("completed", "")]
    assert len(stage.events(session.id, "tool_result")) == 5
    numbers = [event.number for event in stage.events(session.id)]
    assert numbers == list(range(1, len(numbers) + 1))


async def test_no_session_is_left_at_work_when_its_turns_are_over(stage: Stage, puppets: Puppets) -> None:
    session = stage.open()
    async with stage.at_work():
        await stage.turn(session.id, "one")
        await stage.until(lambda: not stage.sessions.turns, "nothing is under way")
    left = stage.read(lambda tx: tx.all(sa.text("SELECT id FROM agent_sessions WHERE state <> 'idle'")))
    assert left == []


async def test_a_run_whose_end_could_not_be_written_is_ended_with_its_job(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    finish, refused = SessionRuns.finish, 0

    def refusing(runs: SessionRuns, run_id: str, status: RunStatus, outcome: Outcome) -> Row:
        nonlocal refused
        refused += 1
        if refused == 1:
            raise DatabaseError("the disk is full")
        return finish(runs, run_id, status, outcome)

    monkeypatch.setattr(SessionRuns, "finish", refusing)
    session = stage.open()
    async with stage.at_work():
        await stage.turn(session.id, "one")
        await stage.until(lambda: stage.runs()[0].status != "running", "the run is ended")
    (run,) = stage.runs()
    assert (run.status, run.cost_micros, stage.row(session.id).cost_micros) == ("succeeded", 500_000, 500_000)
    assert ends(stage, session.id) == [("completed", "")]

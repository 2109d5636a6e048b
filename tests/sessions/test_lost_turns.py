"""A process that dies in the middle of a turn: the turn is told as lost, its asks stay, and the session goes on."""

import asyncio
import subprocess
import sys
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import sqlalchemy as sa

from rookery.core.errors import Conflict
from rookery.db.tx import Tx
from rookery.jobs.store import Jobs
from rookery.jobs.tables import jobs
from rookery.lifecycle.sessions import Outcome
from rookery.sessions.events import SessionEvent, done
from rookery.sessions.lost import LOST, is_busy
from rookery.sessions.store import SessionRows
from rookery.sessions.turn_log import TurnLog
from tests.lifecycle import session_trials
from tests.lifecycle.session_trials import TrialArgs, session_job
from tests.platform_fixtures import Fleet
from tests.sessions.agents import Puppet, Puppets
from tests.sessions.stage import LIMIT_S, Stage

pytestmark = pytest.mark.anyio
ROOT = Path(__file__).parents[2]
USE = '!use Bash {"command": "make"}'


@pytest.fixture
def stage(prepared_database_url: str, make_fleet: Callable[..., Fleet]) -> Stage:
    return Stage(make_fleet(prepared_database_url, extra={"trial": session_trials}))


@asynccontextmanager
async def doomed(stage: Stage) -> AsyncGenerator[None]:
    """A worker process, killed at the end of the block."""
    settings = stage.platform.settings
    command = [sys.executable, "-m", "tests.sessions.worker_process", settings.database_url, settings.home]
    process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        assert await asyncio.to_thread(process.stdout.readline) == "up\n"
        yield
    finally:
        process.kill()
        process.wait(LIMIT_S)
        process.stdout.close()


def ends(stage: Stage, session_id: str) -> list[tuple[str, str]]:
    return [(each.data["reason"], each.data["error"]) for each in stage.events(session_id, "done")]


async def test_a_lost_turn_has_its_done_its_ask_stays_open_and_the_answer_lets_it_go_on(stage: Stage) -> None:
    session = stage.open(mode="ask")
    async with doomed(stage):
        message = stage.send(session.id, USE)
        (ask,) = await stage.asked()
    waiting = stage.send(session.id, "!say the next one")
    async with stage.at_work():
        assert (await stage.done(session.id, message)).data["error"] == LOST
        assert (await stage.done(session.id, waiting)).data["output"] == "the next one"
        assert stage.message(message).state == "lost"
        assert [each.id for each in stage.asks()] == [ask.id]
        stage.answer(ask.id, "approve")
        brought = await stage.until(lambda: stage.events(session.id, "turn_input")[2:], "the answer is brought")
        assert "owner has approved Bash" in brought[0].data["text"]
        await stage.done(session.id, brought[0].data["message_id"])
        assert (await stage.turn(session.id, USE))["output"] == "Bash was used"
    assert [reason for reason, _ in ends(stage, session.id)] == ["failed", "completed", "completed", "completed"]
    assert [event.data["message"] for event in stage.events(session.id, "error")] == [LOST]
    assert len(stage.asks(None)) == 1
    numbers = [event.number for event in stage.events(session.id)]
    assert numbers == list(range(1, len(numbers) + 1))
    assert [run.status for run in stage.runs()] == ["stalled", "succeeded", "succeeded", "succeeded"]


async def test_an_answer_that_comes_before_anybody_found_the_lost_turn_is_brought_all_the_same(stage: Stage) -> None:
    session = stage.open(mode="ask")
    async with doomed(stage):
        message = stage.send(session.id, "!ask Tea or milk? | tea | milk")
        (ask,) = await stage.asked()
    stage.answer(ask.id, "2")
    async with stage.at_work():
        await stage.done(session.id, message)
        brought = await stage.until(lambda: stage.events(session.id, "turn_input")[1:], "the answer is brought")
        await stage.done(session.id, brought[0].data["message_id"])
    assert "The answer is: milk" in brought[0].data["text"]


async def test_a_session_of_a_job_whose_worker_died_is_gone_on_with_by_the_next_one(stage: Stage) -> None:
    await stage.call("update_agent", agent="default", mode="ask")
    job_id = stage.write(lambda tx: Jobs(tx, "default").defer(session_job, TrialArgs(prompt=USE)))
    key = f"trial:{job_id}"
    async with doomed(stage):
        (ask,) = await stage.asked()
        await stage.until(lambda: stage.row(key).state == "waiting", "the session waits")
    assert (ask.session, stage.row(key).origin) == (key, "work")
    stage.answer(ask.id, "approve")
    async with stage.at_work():
        await stage.until(lambda: len(ends(stage, key)) == 2, "it is done")
    assert ends(stage, key) == [("failed", LOST), ("completed", "")]
    assert (stage.row(key).state, [run.status for run in stage.runs()]) == ("ended", ["stalled", "succeeded"])
    assert len(stage.asks(None)) == 1


async def test_a_turn_in_another_process_is_interrupted_from_here(stage: Stage) -> None:
    session = stage.open()
    async with doomed(stage):
        message = stage.send(session.id, "!say so far", "!wait 600")
        await stage.until(lambda: stage.events(session.id, "text_delta"), "it works")
        stage.change(lambda rows: rows.interrupt(session.id))
        ended = await stage.done(session.id, message)
    assert (ended.data["reason"], ended.data["output"]) == ("interrupted", "so far")


async def test_a_turn_that_was_told_lost_has_no_second_done_and_leaves_the_turn_after_it_alone(stage: Stage) -> None:
    async def play(puppet: Puppet) -> AsyncIterator[SessionEvent]:
        yield SessionEvent("text_delta", {"text": "so far"})
        await puppet.gate.wait()
        yield done(Outcome("done", cost_usd=0.25), "completed")

    def go_on_elsewhere(tx: Tx) -> None:
        rows = SessionRows(tx, "default")
        tx.run(sa.update(jobs).where(jobs.c.state == "running").values(lease_ms=0))
        assert not is_busy(tx, "default", rows.of(session.id))
        assert rows.began(rows.of(session.id), "run-elsewhere") is not None

    puppets = Puppets(play)
    stage.use(puppets)
    session = stage.open()
    async with stage.at_work():
        stage.send(session.id, "one")
        await stage.until(lambda: stage.events(session.id, "text_delta"), "it works")
        stage.write(go_on_elsewhere)
        puppets.made[0].gate.set()
        await stage.until(lambda: not stage.sessions.turns, "the lost one is over")
        row = stage.row(session.id)
    assert ends(stage, session.id) == [("failed", LOST)]
    assert (row.state, row.run_id, row.error) == ("running", "run-elsewhere", LOST)


async def test_a_turn_that_has_begun_elsewhere_ends_the_one_that_is_taken_for_lost(stage: Stage) -> None:
    async def play(puppet: Puppet) -> AsyncIterator[SessionEvent]:
        yield SessionEvent("text_delta", {"text": "so far"})
        await puppet.gate.wait()

    puppets = Puppets(play)
    stage.use(puppets)
    session = stage.open()
    async with stage.at_work():
        stage.send(session.id, "one")
        await stage.until(lambda: stage.events(session.id, "text_delta"), "it works")
        stage.change(lambda rows: rows.began(rows.of(session.id), "run-elsewhere"))
        stage.sessions.turns[session.id].call()
        await stage.until(lambda: puppets.made[0].stops == 1, "its agent is stopped")
    assert stage.row(session.id).state == "running"


async def test_the_done_of_a_turn_is_kept_with_its_end(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    """A process that ends as soon as the end of a turn is on record writes nothing more."""
    keep = TurnLog.try_to_keep

    def dying(log: TurnLog, event: SessionEvent) -> None:
        if event.name != "done":
            keep(log, event)

    monkeypatch.setattr(TurnLog, "try_to_keep", dying)
    session = stage.open()
    async with stage.at_work():
        message = stage.send(session.id, "!say hi")
        await stage.until(lambda: stage.message(message).state == "done", "its end is on record")
        assert ends(stage, session.id) == [("completed", "")]


async def test_whoever_waits_for_a_done_that_was_never_recorded_is_told(stage: Stage) -> None:
    session = stage.open()
    sending = asyncio.ensure_future(anext(stage.sessions.send_message(stage.fleet.owner, session.id, "one")))
    await stage.until(lambda: stage.change(lambda rows: rows.messages(session.id)), "it waits")
    taken = stage.change(lambda rows: rows.take(session.id))
    stage.change(lambda rows: rows.end_message(taken.id, "done", "run-1"))
    with pytest.raises(Conflict, match="was not recorded"):
        await asyncio.wait_for(sending, LIMIT_S)

"""Sessions that the platform holds with the real Claude Code: persons decide, turns are runs, agents come back."""

import threading
from pathlib import Path

import pytest

from tests.clients.scripted_model import Hold, Say, Use

pytest.importorskip("claude_agent_sdk", reason="the extra is not installed: pip install 'rookery[claude]'")

from rookery.runtimes.claude import ClaudeRuntime
from tests.platform_fixtures import Fleet
from tests.runtimes.claude.conftest import Speaks
from tests.runtimes.claude.stage import CONFIG, processes
from tests.sessions.stage import Stage

OURS = "mcp__rookery__"
SAVE = Use(f"{OURS}save_memory", {"key": "tea", "content": "green"})
QUESTION = {
    "questions": [
        {
            "question": "Which colour?",
            "header": "Colour",
            "multiSelect": False,
            "options": [{"label": "red", "description": "warm"}, {"label": "blue", "description": "cold"}],
        }
    ]
}


@pytest.fixture
def held(claude_fleet: Fleet, user: Path) -> Stage:
    return Stage(claude_fleet, ClaudeRuntime(claude_fleet.platform, CONFIG))


async def test_what_a_person_denies_is_not_done(held: Stage, speaks: Speaks) -> None:
    speaks(SAVE)
    session = held.open(mode="ask")
    async with held.at_work():
        message = held.send(session.id, "remember it")
        (ask,) = await held.asked()
        held.answer(ask.id, "deny: no tea here")
        ended = await held.done(session.id, message)
    assert "no tea here" in ended.data["output"]
    assert processes(session.id) == []


async def test_what_a_person_approves_is_asked_for_once_and_done(held: Stage, speaks: Speaks) -> None:
    model = speaks(SAVE, Say("kept"))
    session = held.open(mode="ask")
    async with held.at_work():
        message = held.send(session.id, "remember it")
        (ask,) = await held.asked()
        assert len(model.requests) == 1, "the model waits"
        held.answer(ask.id, "approve")
        ended = await held.done(session.id, message)
    assert (ended.data["reason"], ended.data["output"]) == ("completed", "kept")
    (result,) = held.events(session.id, "tool_result")
    assert not result.data["is_error"]
    assert [each.status for each in held.asks(None)] == ["answered"]
    assert [each.data["how"] for each in held.events(session.id, "interaction_resolved")] == ["approved"]


async def test_a_question_is_put_to_the_person_and_answered(held: Stage, speaks: Speaks) -> None:
    speaks(Use("AskUserQuestion", QUESTION))
    session = held.open(mode="autonomy")
    async with held.at_work():
        message = held.send(session.id, "ask me")
        (ask,) = await held.asked()
        held.answer(ask.id, "blue")
        ended = await held.done(session.id, message)
    assert '"Which colour?"="blue"' in ended.data["output"]
    assert held.events(session.id, "question_prompt")


async def test_each_turn_is_a_run_of_its_own_for_the_tools_too(held: Stage, speaks: Speaks) -> None:
    run = Use(f"{OURS}tell_run", {})
    speaks(run, Say("one"), run, Say("two"), run, Say("three"))
    session = held.open(mode="autonomy")
    async with held.at_work():
        await held.turn(session.id, "first")
        warm = processes(session.id)
        await held.turn(session.id, "second")
        assert processes(session.id) == warm, "its agent was kept"
        # As after a restart: nobody remembers the agent, and its session is resumed.
        await held.sessions.close()
        assert processes(session.id) == []
        held.use(ClaudeRuntime(held.platform, CONFIG))
        await held.turn(session.id, "third")
    told = [result.data["structured"] for result in held.events(session.id, "tool_result")]
    assert {each["session"] for each in told} == {session.id}
    assert [each["run"] for each in told] == [event.run_id for event in held.events(session.id, "done")]
    assert len({each["run"] for each in told}) == 3


async def test_a_turn_is_interrupted_from_wherever_somebody_wants_it(held: Stage, speaks: Speaks) -> None:
    reached, released = threading.Event(), threading.Event()
    speaks(Hold(reached, released), Say("never"))
    session = held.open(mode="autonomy")
    async with held.at_work():
        message = held.send(session.id, "think long")
        await held.until(reached.is_set, "the model is asked")
        held.change(lambda rows: rows.interrupt(session.id))
        ended = await held.done(session.id, message)
        released.set()
    assert ended.data["reason"] == "interrupted"
    assert processes(session.id) == []

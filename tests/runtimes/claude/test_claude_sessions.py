"""Sessions with the real Claude Code: one after another, side by side, interrupted, resumed."""

import asyncio
import threading

import pytest

from tests.clients.scripted_model import Hold, Say, Use

pytest.importorskip("claude_agent_sdk", reason="the extra is not installed: pip install 'rookery[claude]'")

from rookery.core.errors import NotFound
from rookery.sessions.port import Permission, ToolUse
from tests.runtimes.claude import trials
from tests.runtimes.claude.conftest import Speaks
from tests.runtimes.claude.stage import PATIENCE_S, PING, Person, Stage, turn

OURS = "mcp__rookery__"
UNKNOWN = "00000000-0000-4000-8000-000000000000"


@pytest.fixture(autouse=True)
def fresh_slow(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trials, "slow", trials.Slow())


async def test_a_session_that_is_not_there_cannot_be_resumed(stage: Stage, speaks: Speaks) -> None:
    speaks(Say("hello"))
    with pytest.raises(NotFound, match=UNKNOWN):
        await stage.agent(resumed=UNKNOWN)


async def test_a_resumed_session_knows_what_was_said_and_has_its_tools_again(stage: Stage, speaks: Speaks) -> None:
    model = speaks(Use(PING, {}), Say("one"), Use(PING, {}), Say("two"))
    first = await stage.agent(Person())
    await turn(first, "remember the heron")
    known = first.native_id
    assert known is not None
    await first.stop()
    assert not first.alive
    person = Person()
    second = await stage.agent(person, resumed=known)
    played = await turn(second)
    assert second.native_id == known
    assert person.tools == [PING]
    assert played.done["output"] == "two"
    assert "remember the heron" in str(model.requests[-1]["messages"])
    assert model.offered[-1] == model.offered[0]


async def test_two_sessions_side_by_side_do_not_see_each_others_tools(stage: Stage, speaks: Speaks) -> None:
    mine, theirs = f"{OURS}judge_it", f"{OURS}show_things"
    judge = stage.actor("ses_judge", profile="judge")
    model = speaks(Use(mine, {}), Use(theirs, {}), Say("done"))
    one, other = await asyncio.gather(
        stage.agent(mode="autonomy", actor=judge), stage.agent(mode="autonomy", actor=stage.actor("ses_default"))
    )
    played = await asyncio.gather(turn(one, "judge"), turn(other, "work"))
    results = [[result["is_error"] for result in each.all("tool_result")] for each in played]
    assert results == [[False, True], [True, False]]
    assert all(
        "No such tool" in each.all("tool_result")[errs.index(True)]["text"]
        for each, errs in zip(played, results, strict=True)
    )
    offered = {frozenset({mine, theirs} & names) for names in model.offered}
    assert offered == {frozenset({mine}), frozenset({theirs})}
    assert one.native_id != other.native_id


async def test_an_interrupted_turn_ends_and_the_next_one_goes_on(stage: Stage, speaks: Speaks) -> None:
    reached, released = threading.Event(), threading.Event()
    speaks(Hold(reached, released, Say("after all")))
    agent = await stage.agent()
    running = asyncio.create_task(turn(agent))
    assert await asyncio.to_thread(reached.wait, PATIENCE_S)
    await agent.interrupt()
    played = await running
    released.set()
    assert played.done["reason"] == "interrupted"
    assert played.all("error") == []
    assert agent.alive
    again = await turn(agent)
    assert again.done["reason"] == "completed"
    assert again.text == "after all"


async def test_who_is_interrupted_does_not_wait_for_the_person_any_more(stage: Stage, speaks: Speaks) -> None:
    speaks(Use(PING, {}), Say("never"))

    async def never(use: ToolUse) -> Permission:
        await asyncio.Event().wait()
        raise AssertionError

    person = Person(never)
    agent = await stage.agent(person)
    running = asyncio.create_task(turn(agent))
    async with asyncio.timeout(PATIENCE_S):
        await person.asked.wait()
        await agent.interrupt()
        played = await running
        await person.given_up.wait()
    assert played.done["reason"] == "interrupted"


async def test_an_interrupt_ends_a_handler_that_runs(stage: Stage, speaks: Speaks) -> None:
    speaks(Use(f"{OURS}work_slowly", {}), Say("never"))
    agent = await stage.agent(mode="autonomy")
    running = asyncio.create_task(turn(agent))
    async with asyncio.timeout(PATIENCE_S):
        await trials.slow.begun.wait()
        await agent.interrupt()
        played = await running
        await trials.slow.cancelled.wait()
    assert played.done["reason"] == "interrupted"


async def test_an_interrupt_between_turns_changes_nothing(stage: Stage, speaks: Speaks) -> None:
    speaks(Say("one"), Say("two"))
    agent = await stage.agent()
    await turn(agent)
    await agent.interrupt()
    assert (await turn(agent)).done["output"] == "two"


async def test_each_turn_tells_its_own_cost_and_the_session_its_state(stage: Stage, speaks: Speaks) -> None:
    speaks(Use(PING, {}), Say("one"), Say("two"))
    agent = await stage.agent()
    first, second = await turn(agent), await turn(agent)
    begun, ended = first.all("session_status")
    assert begun["servers"] == [{"name": "rookery", "status": "connected"}]
    assert begun["model"] == ended["model"]
    assert ended["context_tokens"] == 2
    assert ended["context_max_tokens"] > 1000
    assert (first.done["turns"], first.done["input_tokens"], first.done["output_tokens"]) == (2, 2, 2)
    assert (second.done["turns"], second.done["input_tokens"]) == (1, 1)
    assert first.done["cost_usd"] == pytest.approx(2 * second.done["cost_usd"])
    assert second.all("session_status")[-1]["cost_usd"] == pytest.approx(
        first.done["cost_usd"] + second.done["cost_usd"]
    )


async def test_a_claude_code_that_tells_only_the_total_is_understood(
    stage: Stage, speaks: Speaks, monkeypatch: pytest.MonkeyPatch
) -> None:
    speaks(Say("one"), Say("two"))
    agent = await stage.agent()
    process = agent._process  # pyright: ignore[reportPrivateUsage]
    monkeypatch.setattr(process, "cost_of", lambda _: None)
    costs = [(await turn(agent)).done["cost_usd"] for _ in range(2)]
    assert costs[0] > 0
    assert costs == pytest.approx([costs[0]] * 2)


async def test_a_turn_of_a_resumed_session_costs_what_it_costs_and_not_the_past_again(
    stage: Stage, speaks: Speaks
) -> None:
    speaks(Say("one"), Say("two"), Say("three"), Say("four"))
    known: str | None = None
    costs: list[float] = []
    for turns in (2, 1, 1):
        agent = await stage.agent(resumed=known)
        for _ in range(turns):
            costs.append((await turn(agent)).done["cost_usd"])
        known = agent.native_id
        await agent.stop()
    assert costs[0] > 0
    assert costs == pytest.approx([costs[0]] * 4)


async def test_a_server_of_others_that_fails_is_shown_with_its_reason(stage: Stage, speaks: Speaks) -> None:
    speaks(Use(PING, {}), Say("fine without"))
    lame = {"type": "stdio", "command": "/bin/false", "args": []}
    played = await turn(await stage.agent(servers={"lame": lame}))
    begun, explained = played.all("session_status")[:2]
    assert {"name": "lame", "status": "failed"} in begun["servers"]
    (shown,) = [each for each in explained["servers"] if each["name"] == "lame"]
    assert shown["status"] == "failed"
    assert shown["error"]
    assert played.done["reason"] == "completed"


async def test_the_tasks_of_an_agent_are_told_as_a_list(stage: Stage, speaks: Speaks) -> None:
    speaks(
        Use("TaskCreate", {"subject": "look", "description": "at it"}),
        Use("TaskCreate", {"subject": "leap", "description": "over it"}),
        Use("TaskUpdate", {"taskId": "1", "status": "completed"}),
        Say("done"),
    )
    played = await turn(await stage.agent(mode="autonomy"))
    assert played.all("task_update")[-1]["tasks"] == [
        {"id": "1", "text": "look", "status": "completed"},
        {"id": "2", "text": "leap", "status": "pending"},
    ]


async def test_an_agent_is_told_who_it_is_and_what_it_was_instructed(stage: Stage, speaks: Speaks) -> None:
    model = speaks(Say("yes"))
    await turn(await stage.agent(instructions="Speak only of herons."))
    system = str(model.requests[0]["system"]) + str(model.requests[0]["messages"])
    assert "Speak only of herons." in system
    assert "You are default" in system, "the instructions of our server come along"


async def test_a_message_that_looks_like_a_command_is_only_a_message(stage: Stage, speaks: Speaks) -> None:
    (stage.folder / "private.txt").write_text("a secret of the folder")
    model = speaks(Say("I see"))
    played = await turn(await stage.agent(), "/help @private.txt")
    assert played.done["output"] == "I see"
    told = str(model.requests[0]["messages"])
    assert "/help @private.txt" in told
    assert "a secret of the folder" not in told

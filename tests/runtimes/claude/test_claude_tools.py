"""Our tools in the hands of the real Claude Code: refused, allowed, asked for, broken, slow."""

import asyncio
import json

import pytest

from tests.clients.scripted_model import Say, Think, Use

pytest.importorskip("claude_agent_sdk", reason="the extra is not installed: pip install 'rookery[claude]'")

from rookery.sessions.port import Choice, Permission, ToolUse
from tests.runtimes.claude import trials
from tests.runtimes.claude.conftest import Speaks
from tests.runtimes.claude.stage import PATIENCE_S, PING, Person, Stage, turn

OURS = "mcp__rookery__"
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


@pytest.fixture(autouse=True)
def fresh_slow(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trials, "slow", trials.Slow())


async def test_a_person_who_refuses_is_obeyed_and_the_agent_reads_why(stage: Stage, speaks: Speaks) -> None:
    speaks(Use(PING, {}))

    async def no(use: ToolUse) -> Permission:
        return Permission(False, "not on a Monday")

    played = await turn(await stage.agent(Person(no)))
    refused = played.one("tool_result")
    assert refused["is_error"]
    assert refused["text"] == "not on a Monday"
    assert played.done["reason"] == "completed"
    assert played.done["output"] == "not on a Monday"


async def test_a_tool_out_of_scope_is_neither_offered_nor_called(stage: Stage, speaks: Speaks) -> None:
    model = speaks(Use(f"{OURS}judge_it", {}))
    played = await turn(await stage.agent(mode="autonomy"))
    assert f"{OURS}judge_it" not in model.offered[0]
    assert PING in model.offered[0]
    refused = played.one("tool_result")
    assert refused["is_error"]
    assert "No such tool" in refused["text"]


async def test_ping_the_server(stage: Stage, speaks: Speaks) -> None:
    speaks((Think("I had better look"), Say("A moment."), Use(PING, {})), Say("It answers."))
    person = Person()
    played = await turn(await stage.agent(person), "ping the server")
    assert [event.data["tool"] for event in played.events if event.name == "tool_call_start"] == [PING]
    call = played.one("tool_call_start")["call_id"]
    assert played.one("tool_call_end") == {"call_id": call, "tool": PING, "input": {}}
    result = played.one("tool_result")
    assert result["call_id"] == call
    assert result["structured"]["status"] == "pong"
    assert json.loads(result["text"]) == result["structured"]
    assert not result["is_error"]
    assert played.one("thinking_delta")["text"] == "I had better look"
    assert played.text == "A moment.It answers."
    assert played.done["output"] == "It answers."
    assert [use.call_id for use in person.uses] == [call]
    order = [name for name in played.names if name not in ("session_status", "tool_call_delta", "thinking_delta")]
    assert order == ["text_delta", "tool_call_start", "tool_call_end", "tool_result", "text_delta", "done"]


async def test_in_mode_ask_every_call_of_a_tool_of_ours_reaches_the_person(stage: Stage, speaks: Speaks) -> None:
    free = sorted(stage.fleet.names(stage.actor()) & {"ping", "get_server_info", "show_things", "wipe_out"})
    speaks(*(Use(f"{OURS}{name}", {}) for name in free), Use(PING, {}))
    person = Person()
    await turn(await stage.agent(person, "ask"))
    assert person.tools == [*(f"{OURS}{name}" for name in free), PING]


async def test_in_mode_act_only_what_destroys_reaches_the_person(stage: Stage, speaks: Speaks) -> None:
    speaks(Use(PING, {}), Use(f"{OURS}wipe_out", {}), Use(f"{OURS}show_things", {}))
    person = Person()
    played = await turn(await stage.agent(person, "act"))
    assert person.tools == [f"{OURS}wipe_out"]
    assert [result["is_error"] for result in played.all("tool_result")] == [False, True, False]
    assert "approve" in played.all("tool_result")[1]["text"], "the gate has its own word"


async def test_a_command_that_looks_harmless_is_asked_for_all_the_same(stage: Stage, speaks: Speaks) -> None:
    look = Use("Bash", {"command": "ls"})
    speaks(look, Say("one"), look, Say("two"), look, Say("three"))
    person = Person()
    agent = await stage.agent(person, "ask")
    asked: list[int] = []
    for mode in ("ask", "act", "autonomy"):
        await agent.set_mode(mode)
        await turn(agent)
        asked.append(len(person.uses))
    assert asked[:2] == [1, 2]
    assert person.uses[0].reason == "the session's mode is ask"


async def test_a_mode_that_changes_in_between_counts_from_the_next_call_on(stage: Stage, speaks: Speaks) -> None:
    speaks(Use(PING, {}), Say("one"), Use(PING, {}), Say("two"), Use(f"{OURS}wipe_out", {}), Say("three"))
    person = Person()
    agent = await stage.agent(person, "act")
    await turn(agent)
    assert person.tools == []
    await agent.set_mode("ask")
    await turn(agent)
    assert person.tools == [PING]
    await agent.set_mode("autonomy")
    played = await turn(agent)
    assert not played.one("tool_result")["is_error"], "the gate knows of the mode"


async def test_the_model_waits_until_a_person_has_approved(stage: Stage, speaks: Speaks) -> None:
    model = speaks(Use(PING, {}), Say("thanks"))
    approved = asyncio.Event()

    async def later(use: ToolUse) -> Permission:
        await approved.wait()
        return Permission(True)

    person = Person(later)
    agent = await stage.agent(person)
    running = asyncio.create_task(turn(agent))
    async with asyncio.timeout(PATIENCE_S):
        await person.asked.wait()
    assert len(model.requests) == 1
    approved.set()
    played = await running
    assert played.one("tool_result")["structured"]["status"] == "pong"
    assert len(model.requests) == 2


async def test_a_question_that_nobody_answers_is_refused(stage: Stage, speaks: Speaks) -> None:
    speaks(Use("AskUserQuestion", QUESTION))
    played = await turn(await stage.agent(Person()))
    assert played.one("tool_result")["is_error"]
    assert "Nobody will answer" in played.done["output"]


@pytest.mark.parametrize("mode", ["ask", "act", "autonomy"])
async def test_a_question_is_answered_by_the_person_in_every_mode(stage: Stage, speaks: Speaks, mode: str) -> None:
    speaks(Use("AskUserQuestion", QUESTION))
    person = Person(Person().decision, "blue")
    played = await turn(await stage.agent(person, mode))  # pyright: ignore[reportArgumentType]
    assert [(asked.question, asked.header, asked.several) for asked in person.questions] == [
        ("Which colour?", "Colour", False)
    ]
    assert person.questions[0].options == [Choice("red", "warm"), Choice("blue", "cold")]
    assert '"Which colour?"="blue"' in played.done["output"]
    assert not played.one("tool_result")["is_error"]


async def test_a_broken_handler_is_an_error_of_the_tool_and_tells_no_secret(stage: Stage, speaks: Speaks) -> None:
    speaks(Use(f"{OURS}break_down", {}), Use(f"{OURS}refuse_politely", {}), Say("well"))
    played = await turn(await stage.agent(mode="autonomy"))
    broken, refused = played.all("tool_result")
    assert broken["is_error"]
    assert "failed unexpectedly" in broken["text"]
    assert trials.SECRET not in json.dumps([event.data for event in played.events])
    assert refused["is_error"]
    assert "it is closed already" in refused["text"]
    assert "open it first" in refused["text"]
    assert played.done["reason"] == "completed"


async def test_pictures_and_resources_reach_the_model(stage: Stage, speaks: Speaks) -> None:
    model = speaks(Use(f"{OURS}show_things", {}), Say("seen"))
    played = await turn(await stage.agent(mode="autonomy"))
    result = played.one("tool_result")
    assert result["images"] == [{"mime_type": "image/png", "bytes": len(trials.PIXEL)}]
    assert result["structured"] == {"said": "look"}
    blocks = model.requests[-1]["messages"][-1]["content"][0]["content"]
    assert "image" in {block["type"] for block in blocks}
    told = json.dumps(blocks)
    assert "look" in told
    assert "a note" in told
    assert "rookery://guide" in told


async def test_a_slow_handler_shows_how_far_it_is(stage: Stage, speaks: Speaks) -> None:
    speaks(Use(f"{OURS}work_slowly", {}), Say("good"))
    agent = await stage.agent(mode="autonomy")
    await agent.send("work")
    seen: list[tuple[str, object]] = []
    async with asyncio.timeout(PATIENCE_S):
        async for event in agent.events():
            seen.append((event.name, event.data.get("text")))
            if event.name == "tool_status" and not trials.slow.released.is_set():
                assert event.data["tool"] == f"{OURS}work_slowly"
                assert event.data["call_id"] == "toolu_0_0"
                trials.slow.released.set()
    assert ("tool_status", "half of it (1 of 2)") in seen
    assert seen.index(("tool_status", "all of it (2 of 2)")) < [name for name, _ in seen].index("tool_result")


async def test_a_handler_that_tells_each_of_a_thousand_steps_is_heard_now_and_then(
    stage: Stage, speaks: Speaks
) -> None:
    speaks(Use(f"{OURS}chatter", {}), Say("good"))
    played = await turn(await stage.agent(mode="autonomy"))
    told = [status["text"] for status in played.all("tool_status")]
    assert told[0] == "step 0 (0 of 999)"
    assert told[-1] == "step 999 (999 of 999)"
    assert len(told) < 100


@pytest.mark.slow
async def test_a_handler_of_thirty_seconds_is_waited_for(stage: Stage, speaks: Speaks) -> None:
    speaks(Use(f"{OURS}work_for_seconds", {"seconds": 30}), Say("good"))
    played = await turn(await stage.agent(mode="autonomy"))
    assert played.one("tool_result")["structured"] == {"did": "30 s of work"}
    assert len(played.all("tool_status")) == 30

"""Agents that obey a script: for tests and the demo."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from rookery.lifecycle.sessions import Outcome
from rookery.sessions.port import Permission
from tests.domains.work.workshop import git, make_repository
from tests.platform_fixtures import Fleet
from tests.runtimes.playing import Person, play, start, turn

pytestmark = pytest.mark.anyio


@pytest.fixture
def fleet(tmp_path: Path, make_fleet: Callable[..., Fleet]) -> Fleet:
    return make_fleet(f"sqlite:///{tmp_path / 'rookery.db'}", extra={})


@pytest.mark.parametrize(
    ("script", "error"),
    [
        ("!dance", "no such instruction: !dance"),
        ("!fail it rains", "it rains"),
        ("!write ../x y", "../x is no file in the session's folder"),
        ("!write /etc/x y", "/etc/x is no file in the session's folder"),
        ("!write", "nothing is no file in the session's folder"),
        ("!write link/x y", "link/x is no file in the session's folder"),
        ("!wait long", "could not convert string to float: 'long'"),
        ("!call ping [1]", "!call ping: the arguments are no JSON object"),
        ("!call ping {", "!call ping: the arguments are no JSON object"),
        ("!use Bash 7", "!use Bash: the arguments are no JSON object"),
        ("!spend 3", "the budget of 2 dollars is used up"),
    ],
)
async def test_what_cannot_be_done_ends_the_turn(fleet: Fleet, tmp_path: Path, script: str, error: str) -> None:
    folder = tmp_path / "work"
    folder.mkdir()
    (folder / "link").symlink_to(tmp_path)
    outcome = await play(fleet, "!say hello", script, "!say never", cwd=folder, budget_usd=2.0)
    assert (outcome.status, outcome.output, outcome.error) == ("failed", "hello", error)


@pytest.mark.parametrize("script", ["!wait nan", "!wait -1", "!wait inf", "!spend nan", "!spend -5", "!spend inf"])
async def test_what_is_no_time_and_no_money_ends_the_script_and_not_the_server(fleet: Fleet, script: str) -> None:
    outcome = await play(fleet, script, budget_usd=1.0)
    assert (outcome.status, outcome.cost_usd) == ("failed", 0.0)
    assert "is no number from 0" in outcome.error


async def test_without_a_folder_nothing_can_be_written(fleet: Fleet) -> None:
    assert (await play(fleet, "!write a b")).error == "this session has no folder"


@pytest.mark.parametrize("prompt", ["what is\n !say this", "- tea\n- milk", "[1, 2]", "- {a: 1, b: 2}", "[", ""])
async def test_a_prompt_without_a_script_is_said_back(fleet: Fleet, prompt: str) -> None:
    assert await play(fleet, prompt) == Outcome("done", output=prompt)


async def test_files_are_written_and_committed(fleet: Fleet, tmp_path: Path) -> None:
    folder = make_repository(tmp_path / "shop")
    script = ["!write deep/a.txt one\\ntwo", "!append deep/a.txt three", "!commit add a", "!commit nothing", "!spend 1"]
    assert await play(fleet, *script, cwd=folder) == Outcome("done", cost_usd=1.0, turns=5)
    assert (folder / "deep/a.txt").read_text(encoding="utf-8") == "one\ntwo\nthree\n"
    assert git(folder, "log", "--format=%an %s").splitlines() == ["default add a", "Ada first"]


async def test_tools_are_called_through_the_door_of_every_agent_and_a_refusal_is_said(fleet: Fleet) -> None:
    person = Person()
    outcome = await play(fleet, "!call ping", "!call create_agent {}", "!call nothing", "!say end", person=person)
    first, second, third, fourth = outcome.output.split("\n")
    assert first.startswith("ping: ")
    assert second.startswith("create_agent was refused: PERMISSION_DENIED")
    assert third.startswith("nothing was refused: NOT_FOUND")
    assert (fourth, outcome.status) == ("end", "done")
    assert [use.tool for use in person.uses] == ["mcp__rookery__ping"]


async def test_what_a_person_denies_is_not_called(fleet: Fleet) -> None:
    person = Person(Permission(False, "not today"))
    events = await turn(await start(fleet, person), "!call ping", "!use Bash {}")
    assert events[-1].data["output"] == "ping was refused: not today\nBash was refused: not today"
    assert [event.data["is_error"] for event in events if event.name == "tool_result"] == [True, True]


@pytest.mark.parametrize("form", [json.dumps, None])
async def test_a_script_may_be_a_list_of_steps_as_json_or_yaml(
    fleet: Fleet, form: Callable[[object], str] | None
) -> None:
    steps = [
        {"say": "hello"},
        {"call": {"tool": "ping", "arguments": {}}},
        {"call": "ping"},
        {"use": {"tool": "Bash", "input": {"command": "ls"}}},
        {"ask": {"question": "Which?", "options": ["this", "that"]}},
        {"wait": 0},
        {"spend": 0.5},
    ]
    written = """- say: hello
- call: {tool: ping, arguments: {}}
- call: ping
- use: {tool: Bash, input: {command: ls}}
- ask:
    question: Which?
    options: [this, that]
- wait: 0
- spend: 0.5
"""
    person = Person(answer="that")
    events = await turn(await start(fleet, person), form(steps) if form is not None else written)
    data = events[-1].data
    assert (data["reason"], data["turns"], data["cost_usd"]) == ("completed", 7, 0.5)
    assert data["output"].splitlines()[-1] == "answered: that"
    assert [use.tool for use in person.uses] == ["mcp__rookery__ping", "mcp__rookery__ping", "Bash"]
    assert person.uses[-1].input == {"command": "ls"}
    assert [choice.label for choice in person.questions[0].options] == ["this", "that"]


async def test_everything_that_happens_is_told(fleet: Fleet) -> None:
    events = await turn(
        await start(fleet, servers={"tracker": {"command": "t"}}), "!think hm", "!task tea", "!call ping"
    )
    assert [event.name for event in events] == [
        *("session_status", "thinking_delta", "task_update"),
        *("tool_call_start", "tool_call_end", "tool_result", "done"),
    ]
    status, result = events[0].data, events[5].data
    assert [(server["name"], server["status"]) for server in status["servers"]] == [
        ("rookery", "connected"),
        ("tracker", "failed"),
    ]
    assert (result["call_id"], result["structured"]["status"]) == (events[3].data["call_id"], "pong")


async def test_turns_are_counted(fleet: Fleet) -> None:
    assert (await play(fleet, "!say a", "!say b", max_turns=2)).status == "done"
    outcome = await play(fleet, "!say a", "!say b", "!say c", max_turns=2)
    assert (outcome.status, outcome.output, outcome.error) == ("failed", "a\nb", "not done after 2 turns")


async def test_an_interrupted_script_is_over_and_the_next_one_is_played(fleet: Fleet) -> None:
    agent = await start(fleet)
    await agent.send("!say a\n!spend 0.5\n!wait 600")
    told = agent.events()
    while (await anext(told)).name != "text_delta":
        pass
    await agent.interrupt()
    (ended,) = [event async for event in told]
    assert (ended.data["reason"], ended.data["output"], agent.alive) == ("interrupted", "a", True)
    assert (await turn(agent, "!say b"))[-1].data["output"] == "b"


async def test_a_stopped_agent_says_what_it_has_cost(fleet: Fleet) -> None:
    agent = await start(fleet)
    await agent.send("!spend 0.5\n!say so far\n!wait 600")
    told = agent.events()
    while (await anext(told)).name != "text_delta":
        pass
    await agent.stop()
    await agent.stop()
    (ended,) = [event async for event in told]
    assert (ended.data["reason"], ended.data["cost_usd"], agent.alive) == ("stopped", 0.5, False)

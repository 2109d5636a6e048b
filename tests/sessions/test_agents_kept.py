"""Agents are kept for the next message, resumed after that, and stopped when their time is over."""

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from rookery.core.actor import Mode
from rookery.core.errors import ConfigurationError, ServiceUnavailable, ValidationFailed
from rookery.lifecycle.sessions import Outcome
from rookery.sessions.events import SessionEvent, done
from rookery.sessions.manager import HISTORY_LOST
from rookery.sessions.port import ToolUse
from rookery.sessions.store import NewSession
from tests.sessions.agents import Puppet, Puppets, obedient, told
from tests.sessions.stage import Stage

pytestmark = pytest.mark.anyio
CLOSE = ToolUse(tool="mcp__tracker__close", input={}, call_id="c1")


@pytest.fixture
def puppets() -> Puppets:
    return Puppets()


@pytest.fixture
def stage(make_stage: Callable[..., Stage], puppets: Puppets) -> Stage:
    made = make_stage()
    made.use(puppets)
    return made


def systems(stage: Stage, session_id: str) -> list[str]:
    return [event.data["text"] for event in stage.events(session_id, "system")]


@pytest.mark.parametrize(
    ("servers", "allowed", "why"),
    [
        ({"tracker": {"command": "t"}}, ["mcp__tracker__*"], "stands for tools that nobody has named"),
        ({"tracker": {"command": "t"}}, ["mcp__tracker"], "stands for tools that nobody has named"),
        ({"tracker": {"command": "t"}}, ["mcp__other__search"], "is no tool of a server given here"),
        ({"tracker": {"command": "t"}}, ["Bash"], "is no tool of a server given here"),
        ({"rookery": {"command": "t"}}, None, "that of our own server"),
        ({"a__b": {"command": "t"}}, None, "no name of an MCP server"),
        ({"tracker": {"type": "http"}}, None, "has no url"),
        ({"tracker": {}}, None, "has no command"),
    ],
)
async def test_servers_that_are_not_named_well_are_refused(
    stage: Stage, servers: dict[str, Any], allowed: list[str] | None, why: str
) -> None:
    with pytest.raises(ValidationFailed, match=why):
        stage.sessions.set_mcp_servers(servers, allowed)


async def test_a_runtime_that_is_not_installed_says_what_to_install(stage: Stage, puppets: Puppets) -> None:
    session = stage.open()
    puppets.missing = "pip install puppets"
    async with stage.at_work():
        ended = await stage.turn(session.id, "hello")
    assert (ended["reason"], "pip install puppets" in ended["error"]) == ("failed", True)


async def test_a_session_of_a_runtime_that_is_gone_fails_with_a_word(stage: Stage) -> None:
    session = stage.open()
    stage.use(_Named("others"))
    async with stage.at_work():
        ended = await stage.turn(session.id, "hello")
    assert "has no runtime puppets" in ended["error"]
    with pytest.raises(ConfigurationError):
        stage.sessions._runtime("puppets")


class _Named(Puppets):
    def __init__(self, name: str) -> None:
        super().__init__()
        self.name = name


async def test_the_next_message_goes_to_the_agent_that_is_still_there(stage: Stage, puppets: Puppets) -> None:
    session = stage.open(mode="ask")
    async with stage.at_work():
        await stage.turn(session.id, "one")
        stage.change(lambda rows: rows.change(session.id, mode="act"))
        await stage.turn(session.id, "two")
        (agent,) = puppets.made
        assert (agent.said, agent.modes, agent.stops) == (["one", "two"], ["act"], 0)
    assert agent.stops == 1
    row = stage.row(session.id)
    assert (row.turns, row.cost_micros, row.input_tokens, row.output_tokens) == (2, 1_000_000, 20, 10)
    assert systems(stage, session.id) == []


async def test_an_agent_that_is_gone_is_resumed_with_the_same_tools(stage: Stage, puppets: Puppets) -> None:
    session = stage.open()
    stage.sessions.set_mcp_servers({"tracker": {"command": "tracker-mcp"}}, ["mcp__tracker__search"])
    async with stage.at_work():
        await stage.turn(session.id, "one")
        puppets.made[0].alive = False
        await stage.turn(session.id, "two")
    first, second = puppets.made
    assert (first.resumed, second.resumed) == (None, "native-1")
    assert dict(first.launch.servers) == dict(second.launch.servers) == {"tracker": {"command": "tracker-mcp"}}
    assert second.launch.allowed == ("mcp__tracker__search",)
    assert first.launch.pass_key != second.launch.pass_key
    assert systems(stage, session.id) == []


async def test_an_agent_is_started_anew_when_the_servers_are_others_and_what_was_allowed_with_them_is_not(
    stage: Stage, puppets: Puppets
) -> None:
    permissions: list[bool] = []

    async def play(puppet: Puppet) -> AsyncIterator[SessionEvent]:
        if puppet.said[-1] != "one":
            permissions.append((await puppet.host.may_use(CLOSE)).allow)
        async for event in obedient(puppet):
            yield event

    puppets.play = play
    session = stage.open(mode="act")
    stage.sessions.set_mcp_servers({"tracker": {"command": "t"}}, [CLOSE.tool])
    async with stage.at_work():
        await stage.turn(session.id, "one")
        stage.sessions.set_mcp_servers({"tracker": {"command": "t"}}, [CLOSE.tool])
        await stage.turn(session.id, "two")
        assert (len(puppets.made), permissions) == (1, [True])
        stage.sessions.set_mcp_servers({"tracker": {"command": "another"}}, None)
        message = stage.send(session.id, "three")
        (ask,) = await stage.asked()
        stage.answer(ask.id, "deny")
        await stage.done(session.id, message)
    assert permissions == [True, False]
    assert [agent.launch.servers["tracker"]["command"] for agent in puppets.made] == ["t", "another"]
    assert [(agent.resumed, agent.stops) for agent in puppets.made] == [(None, 1), ("native-1", 1)]


async def test_a_server_that_a_session_calls_as_another_is_allowed_nothing_of_that_one(
    stage: Stage, puppets: Puppets
) -> None:
    stage.sessions.set_mcp_servers({"tracker": {"command": "t"}}, [CLOSE.tool])
    actor, own = stage.fleet.actor(), {"tracker": {"command": "mine"}}
    new = NewSession(actor=actor, runtime="puppets", mode="act", opened_by="owner", servers=own)
    session = stage.change(lambda rows: rows.create(new))
    async with stage.at_work():
        await stage.turn(session.id, "one")
    (agent,) = puppets.made
    assert (agent.launch.allowed, dict(agent.launch.servers)) == ((), own)


async def test_an_agent_that_has_to_be_stopped_pushes_no_other_out(make_stage: Callable[..., Stage]) -> None:
    stage, puppets = make_stage(session_warm=1), Puppets()
    stage.use(puppets)
    asked, refuse = asyncio.Event(), asyncio.Event()

    async def refused(mode: Mode) -> None:
        asked.set()
        await refuse.wait()
        raise ServiceUnavailable("it takes no other mode")

    stubborn, innocent = stage.open(mode="ask"), stage.open()
    async with stage.at_work():
        await stage.turn(stubborn.id, "one")
        puppets.made[0].set_mode = refused
        stage.change(lambda rows: rows.change(stubborn.id, mode="act"))
        message = stage.send(stubborn.id, "two")
        await stage.until(asked.is_set, "it is told its mode")
        await stage.turn(innocent.id, "one")
        await stage.until(lambda: innocent.id in stage.sessions.warm, "the other one is kept")
        refuse.set()
        await stage.done(stubborn.id, message)
        await stage.until(lambda: puppets.made[0].stops == 1, "it is stopped")
        assert (puppets.made[1].stops, list(stage.sessions.warm)) == (0, [innocent.id])


async def test_another_model_counts_from_the_next_turn_on(stage: Stage, puppets: Puppets) -> None:
    session = stage.open(model="small")
    async with stage.at_work():
        await stage.turn(session.id, "one")
        stage.change(lambda rows: rows.change(session.id, model="large"))
        await stage.turn(session.id, "two")
    assert [(agent.launch.model, agent.resumed) for agent in puppets.made] == [("small", None), ("large", "native-1")]


@pytest.mark.parametrize("native_id", ["native-1", None])
async def test_an_agent_that_has_lost_the_history_begins_anew_and_says_so(
    stage: Stage, puppets: Puppets, native_id: str | None
) -> None:
    session = stage.open()
    puppets.native_id, puppets.forgets = native_id, True
    async with stage.at_work():
        await stage.turn(session.id, "one")
        puppets.made[0].alive = False
        await stage.turn(session.id, "two")
    assert [agent.resumed for agent in puppets.made] == [None, None]
    assert systems(stage, session.id) == [HISTORY_LOST]


async def test_of_too_many_that_wait_the_oldest_is_stopped(make_stage: Callable[..., Stage]) -> None:
    stage, puppets = make_stage(session_warm=2), Puppets()
    stage.use(puppets)
    async with stage.at_work():
        for session in [stage.open() for _ in range(3)]:
            await stage.turn(session.id, "one")
        await stage.until(lambda: puppets.made[0].stops, "the oldest is stopped")
        assert ([agent.stops for agent in puppets.made], len(stage.sessions.warm)) == ([1, 0, 0], 2)


async def test_an_agent_that_has_nothing_to_do_for_long_is_stopped(make_stage: Callable[..., Stage]) -> None:
    stage, puppets = make_stage(session_idle_s=0.2), Puppets()
    stage.use(puppets)
    session = stage.open()
    async with stage.at_work():
        await stage.turn(session.id, "one")
        await stage.until(lambda: puppets.made[0].stops == 1, "it is stopped")
        await stage.turn(session.id, "two")
    assert [agent.resumed for agent in puppets.made] == [None, "native-1"]


async def test_a_server_that_cannot_be_reached_is_shown(stage: Stage, puppets: Puppets) -> None:
    async def play(puppet: Puppet) -> AsyncIterator[SessionEvent]:
        servers = [{"name": "rookery", "status": "connected"}, {"name": "tracker", "status": "failed", "error": "gone"}]
        yield told(model="small-1", context_tokens=7, context_max_tokens=200, servers=servers)
        async for event in obedient(puppet):
            yield event

    puppets.play = play
    session = stage.open()
    async with stage.at_work():
        await stage.turn(session.id, "one")
        await stage.turn(session.id, "two")
    assert systems(stage, session.id) == ["the MCP server tracker cannot be reached: gone"] * 2
    row = stage.row(session.id)
    assert (row.model, row.context_tokens, row.context_max, len(puppets.made)) == ("small-1", 7, 200, 1)


async def test_the_agent_of_a_session_that_is_ended_is_stopped(stage: Stage, puppets: Puppets) -> None:
    session = stage.open()
    async with stage.at_work():
        await stage.turn(session.id, "one")
        stage.change(lambda rows: rows.end(session.id))
        await stage.until(lambda: puppets.made[0].stops == 1, "it is stopped")


async def test_sessions_side_by_side_have_a_turn_each(stage: Stage, puppets: Puppets) -> None:
    gate = asyncio.Event()

    async def play(puppet: Puppet) -> AsyncIterator[SessionEvent]:
        await gate.wait()
        async for event in obedient(puppet):
            yield event

    puppets.play = play
    first, second = stage.open(), stage.open()
    async with stage.at_work():
        messages = [stage.send(first.id, "one"), stage.send(first.id, "two"), stage.send(second.id, "one")]
        await stage.until(lambda: len(stage.sessions.turns) == 2, "both are at work")
        assert [stage.message(each).state for each in messages] == ["taken", "queued", "taken"]
        gate.set()
        for session, message in ((first, messages[0]), (first, messages[1]), (second, messages[2])):
            await stage.done(session.id, message)
    assert [event.data["text"] for event in stage.events(first.id, "turn_input")] == ["one", "two"]
    numbers = [event.number for event in stage.events(first.id)]
    assert numbers == list(range(1, len(numbers) + 1))


async def test_an_agent_that_finds_out_in_the_turn_that_it_knows_no_history_is_asked_anew(
    stage: Stage, puppets: Puppets
) -> None:
    async def play(puppet: Puppet) -> AsyncIterator[SessionEvent]:
        if puppet.resumed is not None:
            yield SessionEvent("error", {"message": "no such session", "code": "lost"})
            yield done(Outcome("failed", error="no such session"), "failed")
            return
        async for event in obedient(puppet):
            yield event

    puppets.play = play
    session = stage.open()
    async with stage.at_work():
        await stage.turn(session.id, "one")
        puppets.made[0].alive = False
        assert (await stage.turn(session.id, "two"))["output"] == "two"
    assert [(agent.resumed, agent.said) for agent in puppets.made] == [
        (None, ["one"]),
        ("native-1", ["two"]),
        (None, ["two"]),
    ]
    assert (systems(stage, session.id), stage.events(session.id, "error")) == ([HISTORY_LOST], [])

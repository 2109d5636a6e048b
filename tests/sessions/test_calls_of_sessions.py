"""What our own tools do for a session is seen in it: their status, and what the gate asks; their secrets are not."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable

import pytest

from rookery.core.context import Context
from rookery.core.tool import NoInput, ToolOutput, tool
from rookery.sessions.events import SessionEvent
from tests.platform_fixtures import Fleet
from tests.sessions import test_calls_of_sessions as here
from tests.sessions.agents import Puppet, Puppets, obedient
from tests.sessions.stage import Stage

pytestmark = pytest.mark.anyio


class Brewed(ToolOutput):
    cups: int


@tool(
    title="Brew tea", effect="write", action="tea:brew", tier="act", group="Write", profiles="", default=True
)  # fmt: skip
def brew_tea(ctx: Context, args: NoInput) -> Brewed:
    """Brew tea. Use it in tests. Returns cups. Tells what it does."""
    ctx.emit_status("the water boils")
    return Brewed(cups=2)


@pytest.fixture
def stage(prepared_database_url: str, make_fleet: Callable[..., Fleet]) -> Stage:
    return Stage(make_fleet(prepared_database_url, extra={"tea": here}, approval_hold_s=30.0))


SECRET = "T0SECRET"
SLACK = {"webhook_url": f"https://hooks.slack.com/services/{SECRET}"}
CONFIGURE = "mcp__rookery__configure_notifications"


def names_with_secret(stage: Stage, session_id: str) -> list[str]:
    return [event.name for event in stage.events(session_id) if SECRET in json.dumps(event.data)]


async def test_a_secret_that_whoever_approves_is_not_shown_stands_in_no_event(stage: Stage) -> None:
    session = stage.open(mode="ask")
    arguments = json.dumps({"action": "set", "channel_type": "slack", "config": SLACK})
    async with stage.at_work():
        message = stage.send(session.id, f"!call configure_notifications {arguments}")
        (ask,) = await stage.asked()
        await stage.until(lambda: stage.events(session.id, "approval_required"), "it is shown")
        stage.answer(ask.id, "approve")
        await stage.done(session.id, message)
    assert names_with_secret(stage, session.id) == ["turn_input"]
    (ended,) = stage.events(session.id, "tool_call_end")
    hidden = {"webhook_url": "https://hooks.slack.com/(hidden)"}
    assert ended.data["input"] == {"action": "set", "channel_type": "slack", "config": hidden}
    (result,) = stage.events(session.id, "tool_result")
    assert (result.data["is_error"], SECRET in ask.context) == (False, False)


async def test_pieces_of_an_input_with_secrets_are_not_kept_and_those_of_others_are(stage: Stage) -> None:
    calls = {"c1": CONFIGURE, "c2": "mcp__rookery__ping", "c3": "mcp__other__configure_notifications"}
    given = {"c1": {"action": "set", "confg": SLACK}, "c2": {}, "c3": {"config": {"place": "here"}}}

    async def play(puppet: Puppet) -> AsyncIterator[SessionEvent]:
        for call_id, name in calls.items():
            yield SessionEvent("tool_call_start", {"call_id": call_id, "tool": name})
        for call_id in calls:
            yield SessionEvent("tool_call_delta", {"call_id": call_id, "text": json.dumps(given[call_id])})
        for call_id, name in calls.items():
            yield SessionEvent("tool_call_end", {"call_id": call_id, "tool": name, "input": given[call_id]})
        async for event in obedient(puppet):
            yield event

    stage.use(Puppets(play))
    session = stage.open()
    async with stage.at_work():
        await stage.turn(session.id, "go")
    assert names_with_secret(stage, session.id) == []
    assert [each.data["call_id"] for each in stage.events(session.id, "tool_call_delta")] == ["c2", "c3"]
    shown = [each.data["input"] for each in stage.events(session.id, "tool_call_end")]
    assert shown == [{"action": "set", "confg": "(hidden)"}, {}, {"config": {"place": "here"}}]


async def test_the_status_of_a_tool_is_told_in_the_session_of_its_caller_and_no_other(stage: Stage) -> None:
    session, other = stage.open(), stage.open()
    async with stage.at_work():
        await asyncio.gather(stage.turn(session.id, "!call brew_tea"), stage.turn(other.id, "!call ping"))
    (told,) = stage.events(session.id, "tool_status")
    (call,) = stage.events(session.id, "tool_call_start")
    assert told.data == {"call_id": call.data["call_id"], "tool": "mcp__rookery__brew_tea", "text": "the water boils"}
    assert stage.events(other.id, "tool_status") == []


async def test_a_call_that_the_gate_holds_is_shown_in_its_session(stage: Stage) -> None:
    """As that of a program that has no way to ask back."""
    gate = asyncio.Event()

    async def play(puppet: Puppet) -> AsyncIterator[SessionEvent]:
        begun = {"call_id": "c1", "tool": "mcp__rookery__brew_tea"}
        yield SessionEvent("tool_call_start", begun)
        yield SessionEvent("tool_call_end", {**begun, "input": {}})
        await stage.platform.calls.call(puppet.launch.actor, "brew_tea", {})
        yield SessionEvent("tool_result", {"call_id": "c1", "text": "brewed", "is_error": False})
        await gate.wait()
        async for event in obedient(puppet):
            yield event

    stage.use(Puppets(play))
    session = stage.open(mode="ask")
    async with stage.at_work():
        message = stage.send(session.id, "tea")
        (ask,) = await stage.asked()
        (shown,) = await stage.until(lambda: stage.events(session.id, "approval_required"), "it is shown")
        stage.answer(ask.id, "approve")
        await stage.until(lambda: stage.events(session.id, "tool_result"), "it is called")
        (resolved,) = await stage.until(lambda: stage.events(session.id, "interaction_resolved"), "it is resolved")
        gate.set()
        await stage.done(session.id, message)
    assert (shown.data["ask_id"], shown.data["call_id"]) == (ask.id, "c1")
    assert (shown.data["tool"], "May default run brew_tea" in shown.data["title"]) == ("mcp__rookery__brew_tea", True)
    assert (resolved.data["ask_id"], resolved.data["how"]) == (ask.id, "approved")
    assert stage.events(session.id, "tool_result")[0].data["text"] == "brewed"

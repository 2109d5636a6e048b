"""Sessions of one agent that want the same: each is asked for itself, and none takes another's ask away."""

import asyncio
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from rookery.asks.tables import asks
from rookery.core.context import SilentDoor
from rookery.core.errors import ApprovalRequired
from rookery.db.clock import DbNow
from rookery.sessions.events import SessionEvent
from rookery.sessions.port import Permission, ToolUse
from rookery.sessions.store import Row
from rookery.sessions.tables import agent_sessions
from tests.sessions.agents import Puppet, Puppets, obedient
from tests.sessions.stage import Stage, gathered

pytestmark = pytest.mark.anyio
MAKE = '!use Bash {"command": "make"}'
SAVE = '!call save_memory {"key": "tea", "content": "green"}'


class Listening(SilentDoor):
    """Keeps what a caller is told while its call is held."""

    def __init__(self) -> None:
        self.told: list[dict[str, Any]] = []

    def tell(self, method: str, params: dict[str, Any]) -> None:
        self.told.append(params)


async def shown(stage: Stage, session: Row, count: int = 1) -> list[str]:
    """The asks that the session has shown, once there are so many."""

    def found() -> list[str] | None:
        seen = [event.data["ask_id"] for event in stage.events(session.id, "approval_required")]
        return seen if len(seen) >= count else None

    return await stage.until(found, "it is shown")


def nobody_attends(stage: Stage, session: Row) -> None:
    """As if a message of another agent had opened it."""
    stage.write(
        lambda tx: tx.run(sa.update(agent_sessions).where(agent_sessions.c.id == session.id).values(origin="message"))
    )


async def test_a_yes_in_one_folder_is_none_in_another(make_stage: Callable[..., Stage], tmp_path: Path) -> None:
    stage = make_stage(session_roots=(str(tmp_path),))
    folders = [tmp_path / "first", tmp_path / "second"]
    for folder in folders:
        folder.mkdir()
    first, second = (stage.open(mode="ask", cwd=str(folder)) for folder in folders)
    remove = '!use Bash {"command": "rm -rf ."}'
    async with stage.at_work():
        of_first = stage.send(first.id, remove)
        (ask,) = await stage.asked()
        assert f"folder: {folders[0]}" in ask.context.splitlines()
        of_second = stage.send(second.id, remove)
        (other,) = [each for each in await stage.asked(2) if each.id != ask.id]
        assert (other.session, f"folder: {folders[1]}" in other.context) == (second.id, True)
        stage.answer(ask.id, "approve")
        assert (await stage.done(first.id, of_first)).data["output"] == "Bash was used"
        stage.answer(other.id, "deny: not there")
        refused = await stage.done(second.id, of_second)
    assert refused.data["output"] == "Bash was refused: owner denied it: not there"


@pytest.mark.parametrize("wanted", [MAKE, SAVE])
async def test_whoever_is_interrupted_takes_no_ask_from_others_who_wait(stage: Stage, wanted: str) -> None:
    first, second = stage.open(mode="ask"), stage.open(mode="ask")
    async with stage.at_work():
        of_first = stage.send(first.id, wanted)
        (ask,) = await shown(stage, first)
        of_second = stage.send(second.id, wanted)
        await shown(stage, second)
        stage.change(lambda rows: rows.interrupt(first.id))
        await stage.done(first.id, of_first)
        (left,) = await stage.until(lambda: [each for each in stage.asks() if each.id != ask], "the other still asks")
        assert left.session == second.id
        stage.answer(left.id, "approve")
        ended = await stage.done(second.id, of_second)
    assert "refused" not in ended.data["output"]
    assert ended.data["reason"] == "completed"


async def test_whoever_joined_an_ask_leaves_it_open_when_interrupted(stage: Stage) -> None:
    first, second = stage.open(mode="ask"), stage.open(mode="ask")
    async with stage.at_work():
        of_first = stage.send(first.id, SAVE)
        (ask,) = await shown(stage, first)
        of_second = stage.send(second.id, SAVE)
        assert await shown(stage, second) == [ask]
        stage.change(lambda rows: rows.interrupt(second.id))
        await stage.done(second.id, of_second)
        stage.answer(ask, "approve")
        ended = await stage.done(first.id, of_first)
    assert "refused" not in ended.data["output"]
    assert len(stage.asks(None)) == 1


async def test_a_call_that_is_held_for_an_ask_that_another_session_takes_back_may_come_again(
    make_stage: Callable[..., Stage],
) -> None:
    stage = make_stage(approval_hold_s=60)
    session, caller = stage.open(mode="ask"), stage.fleet.actor(session="ses-other", mode="ask")
    async with stage.at_work():
        message = stage.send(session.id, SAVE)
        await shown(stage, session)
        door, given = Listening(), {"key": "tea", "content": "green"}
        calling = asyncio.create_task(stage.platform.calls.call(caller, "save_memory", given, door=door))
        await stage.until(lambda: door.told, "the call is held")
        stage.change(lambda rows: rows.interrupt(session.id))
        await stage.done(session.id, message)
        with pytest.raises(ApprovalRequired, match="took that back"):
            await calling


async def test_whoever_attends_has_its_own_time_where_nobody_attended_before(stage: Stage) -> None:
    alone, attended = stage.open(mode="ask"), stage.open(mode="ask")
    nobody_attends(stage, alone)
    async with stage.at_work():
        of_alone = stage.send(alone.id, SAVE)
        (short,) = await shown(stage, alone)
        of_attended = stage.send(attended.id, SAVE)
        assert await shown(stage, attended) == [short]
        stage.write(lambda tx: tx.run(sa.update(asks).where(asks.c.id == short).values(expires_ms=DbNow() - 1)))
        stage.write(lambda tx: tx.run(sa.update(asks).where(asks.c.id == short).values(status="expired")))
        assert "nobody decided in time" in (await stage.done(alone.id, of_alone)).data["output"]
        _, own = await shown(stage, attended, 2)
        (ask,) = stage.asks()
        assert (ask.id, ask.session, ask.expires_ms - ask.created_ms) == (own, attended.id, 4 * 3_600_000)
        stage.answer(own, "approve")
        assert "refused" not in (await stage.done(attended.id, of_attended)).data["output"]


async def test_two_equal_calls_at_the_same_time_are_asked_for_each(stage: Stage) -> None:
    heard: list[Permission] = []

    async def play(puppet: Puppet) -> AsyncIterator[SessionEvent]:
        uses = [ToolUse(tool="Bash", input={"command": "make"}, call_id=call_id) for call_id in ("c1", "c2")]
        heard.extend(await gathered(*(puppet.host.may_use(use) for use in uses)))
        async for event in obedient(puppet):
            yield event

    stage.use(Puppets(play))
    session = stage.open(mode="ask")
    async with stage.at_work():
        message = stage.send(session.id, "both")
        (first,) = await stage.asked()
        stage.answer(first.id, "approve")
        (second,) = await stage.until(lambda: [each for each in stage.asks() if each.id != first.id], "asked again")
        stage.answer(second.id, "deny")
        await stage.done(session.id, message)
    assert sorted(permission.allow for permission in heard) == [False, True]
    calls = [event.data["call_id"] for event in stage.events(session.id, "approval_required")]
    assert sorted(calls) == ["c1", "c2"]

"""Turns of sessions: one at a time, each with exactly one `done`, and the agent knows what was said before."""

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest
import sqlalchemy as sa

from rookery.core.errors import Conflict, NotFound, PermissionDenied, ValidationFailed
from rookery.identity.store import IdentityStore
from rookery.sessions.opening import Opening
from tests.sessions.stage import Stage

pytestmark = pytest.mark.anyio


async def test_a_folder_outside_the_roots_is_refused(stage: Stage, tmp_path: object) -> None:
    with pytest.raises(PermissionDenied, match="outside the folders"):
        stage.open(cwd=str(tmp_path))


async def test_nothing_is_sent_to_a_session_that_is_not_there(stage: Stage) -> None:
    with pytest.raises(NotFound):
        await anext(stage.sessions.send_message(stage.fleet.owner, "ses-unknown", "hello"))


async def test_the_session_of_another_tenant_does_not_exist(stage: Stage) -> None:
    session = stage.open()
    stage.write(lambda tx: IdentityStore(tx, "other").set_up())
    stranger = stage.fleet.actor(tenant="other", as_owner=True)
    with pytest.raises(NotFound):
        await anext(stage.sessions.send_message(stranger, session.id, "hello"))


async def test_a_message_of_ten_megabytes_is_refused(stage: Stage) -> None:
    session = stage.open()
    with pytest.raises(ValidationFailed, match="1 to 1000000 characters"):
        await anext(stage.sessions.send_message(stage.fleet.owner, session.id, "x" * 10_000_000))


async def test_a_session_that_has_ended_takes_no_message(stage: Stage) -> None:
    session = stage.open()
    stage.change(lambda rows: rows.end(session.id))
    with pytest.raises(Conflict, match="has ended"):
        await anext(stage.sessions.send_message(stage.fleet.owner, session.id, "hello"))


async def test_a_turn_is_told_from_its_message_to_its_done(stage: Stage) -> None:
    session = stage.open()
    async with stage.at_work():
        told = [
            event async for event in stage.sessions.send_message(stage.fleet.owner, session.id, "!say hi\n!call ping")
        ]
    names = [event.name for event in told]
    assert names[0] == "turn_input"
    assert names[-1] == "done"
    assert [event.data["tool"] for event in told if event.name == "tool_call_start"] == ["mcp__rookery__ping"]
    assert [event.data["is_error"] for event in told if event.name == "tool_result"] == [False]
    assert [event.data["text"] for event in told if event.name == "text_delta"] == ["hi"]
    assert (told[-1].data["reason"], told[-1].data["turns"]) == ("completed", 2)
    row = stage.row(session.id)
    assert (row.state, row.turns, row.native_id, row.model) == ("idle", 2, f"scripted-{session.id}", "scripted")
    (run,) = stage.runs()
    assert (run.status, run.kind, run.key, run.session) == ("succeeded", "session", session.id, session.id)


async def test_whoever_waits_for_a_message_that_is_taken_back_is_told(stage: Stage) -> None:
    session = stage.open()
    async with stage.at_work():
        stage.send(session.id, "!wait 600")
        await stage.until(lambda: stage.sessions.turns, "it works")
        sending = asyncio.ensure_future(anext(stage.sessions.send_message(stage.fleet.owner, session.id, "second")))
        (waits,) = await stage.until(
            lambda: [row for row in stage.change(lambda rows: rows.messages(session.id)) if row.text == "second"],
            "it waits",
        )
        stage.change(lambda rows: rows.drop(session.id, waits.id))
        with pytest.raises(Conflict, match="taken back before its turn"):
            await asyncio.wait_for(sending, 30)


async def test_an_agent_can_ask_for_more_time_for_its_turn(stage: Stage) -> None:
    session = stage.open()
    async with stage.at_work():
        ended = await stage.turn(session.id, '!call extend_timeout {"additional_minutes": 5}')
    assert "refused" not in ended["output"]
    (run,) = stage.runs()
    assert run.deadline_ms - run.started_ms == run.base_ms + 5 * 60_000


async def test_the_calls_of_every_turn_are_of_the_run_of_that_turn(stage: Stage) -> None:
    session = stage.open()
    async with stage.at_work():
        for key in ("tea", "milk"):
            await stage.turn(session.id, f'!call save_memory {{"key": "{key}", "content": "there is {key}"}}')
    kept = stage.read(lambda tx: tx.all(sa.text("SELECT run_id FROM memories ORDER BY key DESC")))
    assert [row.run_id for row in kept] == [run.id for run in stage.runs()]


async def test_a_folder_that_has_become_a_way_out_is_refused_when_the_turn_comes(
    make_stage: Callable[..., Stage], tmp_path: Path
) -> None:
    root, outside = tmp_path / "root", tmp_path / "outside"
    (root / "work").mkdir(parents=True)
    outside.mkdir()
    stage = make_stage(session_roots=(str(root),))
    session = stage.open(cwd=str(root / "work"))
    (root / "work").rmdir()
    (root / "work").symlink_to(outside)
    async with stage.at_work():
        ended = await stage.turn(session.id, "!write a.txt b")
    assert (ended["reason"], "outside the folders" in ended["error"]) == ("failed", True)
    assert list(outside.iterdir()) == []


async def test_a_program_ensures_a_session_and_reads_its_turn_as_a_stream(stage: Stage) -> None:
    with pytest.raises(PermissionDenied):
        await stage.sessions.ensure(stage.fleet.actor(), Opening())
    first = await stage.sessions.ensure(stage.fleet.owner, Opening(title="mine"))
    again = await stage.sessions.ensure(stage.fleet.owner, Opening(title="other"), first.id)
    assert (again.id, again.title) == (first.id, "mine")
    assert (await stage.sessions.ensure(stage.fleet.owner, Opening(), "ses-none")).id != first.id
    async with stage.at_work():
        told = [event async for event in stage.sessions.send_message(stage.fleet.owner, first.id, "!say hello")]
    assert (told[0].name, told[-1].name) == ("turn_input", "done")
    assert "".join(event.data["text"] for event in told if event.name == "text_delta").strip() == "hello"

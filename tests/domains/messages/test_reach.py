"""What the receiver's session may do: what the receiver may, and no more than the sender's session leaves of it."""

import asyncio
import json
from collections.abc import Callable
from typing import Any

import pytest
import sqlalchemy as sa

from rookery.asks.store import Asks
from rookery.asks.tables import asks
from rookery.core.errors import PermissionDenied
from rookery.lifecycle import session_calls
from tests.domains.messages.post_office import PostOffice, until
from tests.jobs.working import running_worker
from tests.platform_fixtures import Fleet


@pytest.fixture
async def office(database_url: str, make_fleet: Callable[..., Fleet]) -> PostOffice:
    """One where nobody waits for approvals that do not come."""
    made = PostOffice(make_fleet(database_url, extra={}, approval_hold_s=0))
    await made.open()
    return made


async def update(office: PostOffice, name: str, **values: Any) -> None:
    await office.fleet.call(office.fleet.owner, "update_agent", agent=name, **values)


async def deny(office: PostOffice) -> None:
    """Say no to what somebody is about to ask."""
    (ask,) = await until(lambda: office.select(sa.select(asks).where(asks.c.status == "open")), "somebody asks")
    office.platform.database.direct(lambda tx: Asks(tx, "default").answer(ask.id, "deny", "owner", "test"), write=True)


async def grant(office: PostOffice, name: str, tool: str, **more: Any) -> str:
    return (await office.fleet.call(office.fleet.owner, "grant_tool", agent=name, tool=tool, **more)).id


@pytest.mark.parametrize(
    ("sender", "receiver", "expected"),
    [("ask", "autonomy", "ask"), ("act", "autonomy", "act"), ("autonomy", "act", "act"), ("act", "ask", "ask"),
     ("autonomy", "autonomy", "autonomy")],
)  # fmt: skip
async def test_of_two_modes_the_stricter_counts_down_the_chain(
    office: PostOffice, sender: str, receiver: str, expected: str
) -> None:
    await update(office, "ada", mode=sender)
    await update(office, "bob", mode=receiver)
    await grant(office, "ada", "send_message", without_approval=True)
    await grant(office, "bob", "send_message", without_approval=True)
    forward = json.dumps({"to_agent": "carol", "message": "!say hi"})
    await office.send("bob", f"!call send_message {forward}")
    assert [(asked[0].agent_name, asked[0].mode) for asked in office.runtime.asked] == [
        ("bob", expected),
        ("carol", expected),
    ]


async def test_a_person_leaves_the_receiver_its_own_mode(office: PostOffice) -> None:
    await update(office, "bob", mode="act")
    await office.send("bob", "!say hi", sender=office.fleet.owner)
    assert office.runtime.asked[0][0].mode == "act"


async def test_an_agent_gets_nothing_destructive_done_by_another_that_it_would_be_asked_about(
    office: PostOffice,
) -> None:
    await update(office, "ada", mode="act")
    await grant(office, "bob", "vault_delete")
    async with running_worker(office.platform):
        asking = asyncio.create_task(office.post("bob", '!call vault_delete {"path": "notes.md"}'))
        await deny(office)
        sent = await asking
    assert "vault_delete was refused: owner denied it" in sent.reply


async def test_a_profile_or_scope_file_of_the_sender_gives_the_receiver_no_tools(office: PostOffice) -> None:
    await grant(office, "ada", "send_message")
    own = office.fleet.names(office.agent("bob"))
    profiled = office.agent(profile="worker")
    filed = office.agent(scope_file=frozenset({"send_message", "vault_update", "read_inbox"}))
    for number, sender in enumerate((profiled, filed)):
        await office.send("bob", f"!say {number}", sender=sender)
        actor = office.runtime.asked[-1][0]
        names = office.fleet.names(actor)
        assert "vault_update" in office.fleet.names(sender) - own
        assert names
        assert names <= own & office.fleet.names(sender)
        assert (actor.profile, actor.scope_file) == (None, None)


async def test_what_a_narrow_sender_leaves_is_left_down_the_chain(office: PostOffice) -> None:
    forward = json.dumps({"to_agent": "carol", "message": "!say hi"})
    sender = office.agent(scope_file=frozenset({"send_message", "read_inbox", "vault_update"}))
    await office.send("bob", f"!call send_message {forward}", sender=sender)
    assert [office.fleet.names(asked[0]) for asked in office.runtime.asked] == [
        {"send_message", "read_inbox"},
        {"read_inbox"},
    ]


async def test_the_list_of_the_sender_is_its_own(office: PostOffice) -> None:
    await update(office, "ada", permissions=["send_message"])
    await office.send("bob", "!say hi")
    assert office.fleet.names(office.runtime.asked[0][0]) == office.fleet.names(office.agent("bob", source="agent"))


@pytest.mark.parametrize(
    ("limits", "layer", "words"),
    [
        ({"permissions": ["send_message"]}, "role", "create_work_task is not among the tools of"),
        ({"mode": "ask"}, "gate", "create_work_task is act and the session's mode is ask"),
    ],
)
async def test_who_may_not_create_work_itself_has_none_done_by_another(
    office: PostOffice, tmp_path: Any, limits: dict[str, Any], layer: str, words: str
) -> None:
    await office.fleet.call(office.fleet.owner, "create_project", slug="shop", path=str(tmp_path))
    await grant(office, "ada", "send_message", without_approval=True)
    await update(office, "ada", **limits)
    with pytest.raises(PermissionDenied, match=f"WORK_TASK_ERROR: {words}") as caught:
        await office.send("bob", "[WORK] rm things", sender=office.agent(project="shop"))
    assert caught.value.layer == layer
    (row,) = office.rows
    assert (row.status, row.error_code, row.accepted_ms) == ("failed", "WORK_TASK_ERROR", None)
    assert words in row.error
    assert (await office.fleet.call(office.agent("bob"), "list_work_tasks")).tasks == []


@pytest.mark.parametrize("decision", ["approve", "deny: not today"])
async def test_work_for_which_the_receiver_needs_an_approval_waits_for_it(
    office: PostOffice, tmp_path: Any, monkeypatch: pytest.MonkeyPatch, decision: str
) -> None:
    monkeypatch.setattr(session_calls, "AGAIN_S", 0.05)
    owner = office.fleet.owner
    await office.fleet.call(owner, "create_project", slug="shop", path=str(tmp_path))
    await update(office, "bob", mode="ask")
    async with running_worker(office.platform, queues=("default",)):
        asking = asyncio.create_task(office.post("bob", "[WORK] mend it", sender=office.agent(project="shop")))
        open_asks = sa.select(asks.c.id).where(asks.c.kind == "approval")
        ((ask_id,),) = await until(lambda: office.select(open_asks), "the owner is asked")
        await office.fleet.call(owner, "answer_ask", ask_id=ask_id, answer=decision)
        done: Any = (await asyncio.gather(asking, return_exceptions=True))[0]
    tasks = (await office.fleet.call(office.agent("bob"), "list_work_tasks")).tasks
    if decision == "approve":
        assert [task["id"] in done.reply for task in tasks] == [True]
    else:
        assert "not today" in str(done)
        assert tasks == []


async def test_work_of_a_narrow_sender_is_refused_by_its_session(office: PostOffice) -> None:
    with pytest.raises(PermissionDenied) as caught:
        await office.send("bob", "[WORK] mend it", sender=office.agent(scope_file=frozenset({"send_message"})))
    assert caught.value.layer == "role"


async def waiting_session(office: PostOffice, call: str) -> "asyncio.Task[Any]":
    """A message whose session has begun, and calls something a moment later."""
    asking = asyncio.create_task(office.post("bob", f"!wait 0.5\n!call {call}"))
    await until(lambda: office.runtime.asked, "the session has begun")
    return asking


async def test_a_right_that_is_taken_away_is_missing_in_sessions_that_go_on(office: PostOffice) -> None:
    granted = await grant(office, "bob", "vault_update")
    async with running_worker(office.platform):
        asking = await waiting_session(office, 'vault_update {"path": "notes.md"}')
        await office.fleet.call(office.fleet.owner, "revoke_grant", id=granted)
        assert "vault_update was refused: PERMISSION_DENIED" in (await asking).reply


async def test_a_mode_that_becomes_stricter_counts_in_sessions_that_go_on(office: PostOffice) -> None:
    async with running_worker(office.platform):
        asking = await waiting_session(office, 'create_work_task {"description": "x"}')
        await update(office, "bob", mode="ask")
        await deny(office)
        sent = await asking
    assert "create_work_task was refused: owner denied it" in sent.reply

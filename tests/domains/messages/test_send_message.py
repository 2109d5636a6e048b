"""send_message: who is refused, what is answered, and what the receiver's session is told and held to."""

import asyncio
import json
from typing import Any, cast

import pytest
import sqlalchemy as sa
from sqlalchemy.exc import DataError

from rookery.core.errors import (
    Conflict,
    InvalidParams,
    NotFound,
    PermissionDenied,
    RookeryError,
    ServiceUnavailable,
    ValidationFailed,
)
from rookery.core.lint import lint, tokens
from rookery.domains.messages import jobs as message_jobs
from rookery.domains.messages import tools
from rookery.domains.messages.store import Messages
from rookery.domains.messages.tables import breakers, messages
from rookery.jobs import by_hand
from rookery.jobs.tables import jobs
from rookery.lifecycle.run_tables import agent_runs
from rookery.lifecycle.sessions import Outcome, Runtime
from tests.domains.messages.post_office import NAMES, Gated, PostOffice, until
from tests.jobs.working import running_worker, settled


async def refused(office: PostOffice, kind: type[RookeryError], to: str, text: str, **more: Any) -> RookeryError:
    with pytest.raises(kind) as caught:
        await office.post(to, text, **more)
    return caught.value


@pytest.mark.parametrize("depth", [3, 4])
async def test_the_third_of_a_chain_is_refused_in_the_words_of_the_seed(office: PostOffice, depth: int) -> None:
    error = await refused(office, PermissionDenied, "bob", "hi", sender=office.agent(depth=depth))
    assert error.message == f"Cannot send message: invocation depth {depth} exceeds maximum of 3."
    assert error.layer == "depth"
    assert not office.rows


async def test_an_unknown_agent_is_not_found_and_neither_is_one_of_another_tenant(office: PostOffice) -> None:
    for name in ("dora", office.stranger.subject):
        error = await refused(office, NotFound, name, "hi")
        assert error.message == f"AGENT_NOT_FOUND: there is no agent {name}"
        assert "list_agents" in (error.hint or "")
    await refused(office, NotFound, "bob", "hi", sender=office.stranger)
    kept = [(row.tenant, row.to_id, row.to_name, row.status, row.error_code) for row in office.rows]
    assert kept == [
        ("default", "", "dora", "failed", "AGENT_NOT_FOUND"),
        ("default", "", office.stranger.subject, "failed", "AGENT_NOT_FOUND"),
        ("other", "", "bob", "failed", "AGENT_NOT_FOUND"),
    ]
    assert [await office.inbox(name) for name in NAMES] == [[]] * 3


async def test_nobody_writes_to_itself_by_whatever_name(office: PostOffice) -> None:
    for name in ("ada", "ADA", office.id_of("ada")):
        error = await refused(office, ValidationFailed, name, "hi")
        assert error.message == "SELF_INVOKE: you cannot send a message to yourself"
    assert [(row.status, row.error_code, row.accepted_ms) for row in office.rows] == [
        ("failed", "SELF_INVOKE", None)
    ] * 3
    assert await office.inbox("ada") == []


@pytest.mark.parametrize(
    "wrong",
    [{"message": ""}, {"message": " \n"}, {"message": "x" * 20_001}, {"to_agent": ""}, {"to_agent": "x" * 201},
     {"thread": ""}, {"message": "nul \0"}, {"from_agent": "bob"}],
)  # fmt: skip
async def test_bad_arguments_are_refused_and_change_nothing(office: PostOffice, wrong: dict[str, str]) -> None:
    with pytest.raises(InvalidParams):
        await office.fleet.call(office.agent(), "send_message", **{"to_agent": "bob", "message": "hi", **wrong})
    assert not office.rows


async def test_a_thread_is_only_there_for_those_who_take_part(office: PostOffice) -> None:
    mine = await office.send("bob", "!say hello")
    for sender, thread in (("carol", mine.thread), ("ada", "thr-unknown")):
        error = await refused(office, NotFound, "bob", "and?", sender=office.agent(sender), thread=thread)
        assert thread in error.message
    assert len(office.rows) == 1


async def test_the_answer_is_what_the_receivers_session_said_last(office: PostOffice) -> None:
    sent = await office.send("BOB", "!say four")
    assert (sent.status, sent.reply, sent.as_text()) == ("completed", "four", f"four\n\n[thread: {sent.thread}]")
    (row,) = office.rows
    assert (row.status, row.response, row.mailbox) == ("completed", "four", row.from_id)
    assert row.session_id
    (asked,) = office.runtime.asked
    assert (asked[0].agent_name, asked[0].depth, asked[0].source) == ("bob", 2, "agent")
    assert asked[1].startswith("Message from ada:\n\n===== what ada wrote\n!say four\n=====")
    assert asked[2] == f"message:{sent.message_id}"


async def test_a_thread_tells_the_receiver_what_was_said_before(office: PostOffice) -> None:
    first = await office.send("bob", "!say four")
    await office.send("carol", "!say not of this thread")
    second = await office.send("bob", "!say eight", thread=first.thread)
    assert second.thread == first.thread
    told = office.runtime.asked[-1][1]
    assert "> ada: !say four" in told
    assert "> bob: four" in told
    assert "not of this thread" not in told


async def test_what_others_said_in_a_thread_is_not_told_on(office: PostOffice) -> None:
    first = await office.send("bob", "!say secret of ada and bob")
    await office.send("carol", "!say hello", sender=office.agent("bob"), thread=first.thread)
    await office.send("ada", "!say hello", sender=office.agent("carol"), thread=first.thread)
    assert "secret" not in office.runtime.asked[-1][1]


async def test_a_chain_of_three_ends_at_the_third(office: PostOffice) -> None:
    last = f"!call send_message {json.dumps({'to_agent': 'ada', 'message': '!say again'})}"
    sent = await office.send("bob", f"!call send_message {json.dumps({'to_agent': 'carol', 'message': last})}")
    assert "Cannot send message: invocation depth 3 exceeds maximum of 3." in sent.reply
    assert [(row.from_name, row.to_name) for row in office.rows] == [("ada", "bob"), ("bob", "carol")]
    assert [asked[0].depth for asked in office.runtime.asked] == [2, 3]


async def test_an_agent_that_says_nothing_is_an_empty_response(office: PostOffice) -> None:
    with pytest.raises(ServiceUnavailable, match="EMPTY_RESPONSE"):
        await office.send("bob", "!say  ")
    (row,) = office.rows
    assert (row.status, row.error_code, row.mailbox) == ("failed", "EMPTY_RESPONSE", row.from_id)


async def test_a_session_that_fails_is_told_to_the_sender_but_not_what_it_said(office: PostOffice) -> None:
    failing = Gated(Outcome("failed", error="/home/bob/.secrets is gone"))
    failing.gate.set()
    office.use(failing)
    with pytest.raises(ServiceUnavailable, match=r"DELIVERY_FAILED: .*the session of bob failed") as caught:
        await office.send("bob", "tea?")
    (row,) = office.rows
    assert (row.status, row.error_code) == ("failed", "DELIVERY_FAILED")
    told = json.dumps([caught.value.as_dict(), await office.inbox("ada"), row.error])
    assert ".secrets" not in told
    (run,) = office.select(sa.select(agent_runs))
    assert run.id in row.error
    assert ".secrets" in run.error


class Broken:
    """A runtime that cannot start anything."""

    async def start_session(self, actor: Any, prompt: str, *, key: str, **how: Any) -> Any:
        raise RuntimeError("no /home/bob/.secrets")


async def test_what_keeps_a_session_from_starting_is_not_told_to_the_sender(
    office: PostOffice, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(message_jobs.deliver_second, "backoff_s", 0.01)
    office.use(Broken())
    with pytest.raises(ServiceUnavailable, match="DELIVERY_FAILED") as caught:
        await office.send("bob", "tea?")
    assert ".secrets" not in json.dumps([caught.value.as_dict(), await office.inbox("ada"), office.rows[0].error])


async def test_an_answer_that_cannot_be_kept_is_told_as_such(
    office: PostOffice, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*given: Any, **more: Any) -> None:
        raise DataError("UPDATE", {}, ValueError("no such text"))

    monkeypatch.setattr(Messages, "answer", refuse)
    with pytest.raises(ServiceUnavailable, match="RESPONSE_SEND_FAILED"):
        await office.send("bob", "!spend 0.5\n!say yes")
    (row,) = office.rows
    assert (row.status, row.error_code, row.cost_micros) == ("failed", "RESPONSE_SEND_FAILED", 500_000)


async def test_who_does_not_wait_gets_the_id_at_once_and_the_reply_by_inbox(office: PostOffice) -> None:
    sent = await office.post("bob", "!say hello", wait=False)
    assert (sent.status, sent.reply, sent.message_id) == ("pending", None, office.rows[0].id)
    assert "will be in your inbox" in sent.as_text()
    async with running_worker(office.platform):
        await settled(office.platform)
    assert [(each["id"], each["reply"]) for each in await office.inbox("ada")] == [(sent.message_id, "hello")]


async def test_a_message_that_is_delivered_late_is_told_what_was_said_before_it(office: PostOffice) -> None:
    first = await office.send("bob", "!say four")
    late = await office.post("bob", "!say late", wait=False, thread=first.thread)
    office.use(None)
    for number in range(12):
        sender = office.agent("bob") if number % 2 else office.agent()
        await office.post("ada" if number % 2 else "bob", f"more {number}", sender, thread=first.thread)
    office.change(
        sa.update(messages).where(messages.c.content.like("more%")).values(created_ms=messages.c.created_ms + 1)
    )
    office.use(cast(Runtime, office.runtime))
    async with running_worker(office.platform):
        await settled(office.platform)
    (told,) = [asked[1] for asked in office.runtime.asked if asked[2].endswith(late.message_id)]
    assert "> ada: !say four" in told
    assert "more" not in told


async def test_without_a_runtime_the_message_lies_in_the_inbox_and_the_result_says_so(office: PostOffice) -> None:
    office.use(None)
    sent = await office.post("bob", "tea?")
    assert (sent.status, sent.reply) == ("delivered", None)
    assert "inbox of bob" in sent.as_text()
    assert [each["message"] for each in await office.inbox("bob")] == ["tea?"]


async def test_a_worker_without_a_runtime_leaves_the_message_in_the_inbox(office: PostOffice) -> None:
    asking = asyncio.create_task(office.post("bob", "tea?"))
    await until(lambda: office.rows, "the message is there")
    office.use(None)
    async with running_worker(office.platform):
        assert (await asking).status == "delivered"
    assert [each["message"] for each in await office.inbox("bob")] == ["tea?"]


async def test_an_answer_that_comes_too_late_is_found_in_the_inbox(
    office: PostOffice, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tools, "WAIT_S", 0.05)
    slow = Gated(Outcome("done", output="at last", cost_usd=0.5))
    office.use(slow)
    async with running_worker(office.platform):
        sent = await office.post("bob", "tea?")
        assert (sent.status, sent.reply) == ("processing", None)
        assert await office.inbox("ada") == []
        await asyncio.wait_for(slow.started.wait(), 30)
        slow.gate.set()
        await settled(office.platform)
    (found,) = await office.inbox("ada")
    assert (found["kind"], found["id"], found["reply"]) == ("reply", sent.message_id, "at last")
    assert office.rows[0].cost_micros == 500_000


async def test_the_answer_waits_for_a_client_that_went_away(office: PostOffice) -> None:
    slow = Gated(Outcome("done", output="at last"))
    office.use(slow)
    async with running_worker(office.platform):
        asking = asyncio.create_task(office.post("bob", "tea?"))
        await asyncio.wait_for(slow.started.wait(), 30)
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking
        slow.gate.set()
        await settled(office.platform)
    assert [each["reply"] for each in await office.inbox("ada")] == ["at last"]


async def test_the_receiver_reaches_no_further_than_the_token_of_the_sender(office: PostOffice) -> None:
    made = await office.fleet.call(office.fleet.owner, "create_token", name="narrow", agent="ada", scopes=["msg:send"])
    sender = office.fleet.actor(token=made.secret, source="http")
    await office.send("bob", "!say hi", sender=sender)
    names = office.fleet.names(office.runtime.asked[0][0])
    assert names == {"send_message", "acknowledge_message"}


async def test_a_person_is_answered_as_well_and_no_part_of_a_chain(office: PostOffice) -> None:
    sent = await office.send("bob", "!say at your service", sender=office.fleet.owner)
    assert sent.reply == "at your service"
    actor, prompt, _ = office.runtime.asked[0]
    assert (actor.depth, actor.source) == (1, "stdio")
    assert prompt.startswith("Message from owner:")


async def test_a_project_that_is_closed_to_the_receiver_stays_closed(office: PostOffice) -> None:
    owner = office.fleet.owner
    for slug in ("inner", "outer"):
        await office.fleet.call(owner, "create_project", slug=slug)
    await office.fleet.call(owner, "set_project_members", project="inner", agents=["ada"])
    await office.send("bob", "!say hi", sender=office.agent(project="inner"))
    await office.send("bob", "!say ho", sender=office.agent(project="outer"))
    assert [asked[0].project_slug for asked in office.runtime.asked] == ["default", "outer"]


async def test_a_delivery_that_is_cancelled_by_hand_is_told_to_the_sender(office: PostOffice) -> None:
    asking = asyncio.create_task(office.post("bob", "tea?"))
    await until(lambda: office.rows, "the message is there")
    (job,) = office.select(sa.select(jobs))
    office.platform.database.direct(lambda tx: by_hand.cancel(tx, "default", office.platform.kinds, job.id), write=True)
    with pytest.raises(ServiceUnavailable, match="DELIVERY_FAILED"):
        await asyncio.wait_for(asking, 30)
    assert office.rows[0].status == "failed"
    assert office.select(sa.select(breakers)) == []


async def test_work_is_made_a_task_of_the_receiver_once(office: PostOffice, tmp_path: Any) -> None:
    owner = office.fleet.owner
    await office.fleet.call(owner, "create_project", slug="shop", path=str(tmp_path))
    sender = office.agent(project="shop")
    office.use(None)
    async with running_worker(office.platform, queues=("default",)):
        sent = await office.post("bob", "[WORK] mend the login", sender=sender)
    found = await office.fleet.call(office.agent("bob"), "list_work_tasks")
    assert [task["id"] in sent.reply for task in found.tasks] == [True]
    whole = await office.fleet.call(office.agent("bob"), "get_work_task", task_id=found.tasks[0]["id"])
    assert whole.model_dump()["description"] == "mend the login"


async def test_work_that_is_refused_says_why_and_blank_work_is_refused_at_once(office: PostOffice) -> None:
    with pytest.raises(Conflict, match=r"WORK_TASK_ERROR.*no folder"):
        await office.send("bob", "[WORK] mend the login")
    await refused(office, ValidationFailed, "bob", "[WORK]  ")
    (row,) = office.rows
    assert (row.status, row.error_code) == ("failed", "WORK_TASK_ERROR")


def test_the_tools_are_cheap_to_list_and_well_described() -> None:
    for each in (tools.send_message, tools.list_agents, tools.read_inbox, tools.acknowledge_message):
        assert lint(each) == []
        assert tokens(each) <= 121, (each.name, tokens(each))

"""An answer that a call was given lies in the inbox on: nobody knows whether the client got it."""

import asyncio
import json

import pytest
import sqlalchemy as sa

from rookery.core.errors import Conflict
from rookery.domains.messages.forgetting import TOLD_MS
from rookery.domains.messages.tables import messages
from rookery.lifecycle.sessions import Outcome
from tests.domains.messages.post_office import Gated, PostOffice, until
from tests.jobs.working import running_worker
from tests.server.streamable.tap import Tap, request
from tests.server.streamable.web import LEGACY, call, serving


def told_ms(office: PostOffice) -> int | None:
    return office.rows[0].told_ms


async def test_the_answer_waits_for_a_client_whose_connection_was_lost(office: PostOffice) -> None:
    slow = Gated(Outcome("done", output="at last"))
    office.use(slow)
    async with serving(office.fleet) as web, running_worker(office.platform):
        token = await web.token("ada")
        session = await web.initialize(token)
        asking = call("send_message", to_agent="bob", message="tea?")
        async with Tap(web.port) as client:
            await client.send(request(asking, token, mcp_session_id=session, mcp_protocol_version=LEGACY))
            await asyncio.wait_for(slow.started.wait(), 30)
        slow.gate.set()
        # Before 2026-07-28 a call goes on without its client: it has taken the answer, and nobody has heard it.
        await until(lambda: told_ms(office), "the call was given the answer")
        again = await web.initialize(token)
        found = await web.call(again, "read_inbox", token)
    shown = json.loads(found.text.partition("data: ")[2] or found.text) if "data: " in found.text else found.json()
    (entry,) = shown["result"]["structuredContent"]["messages"]
    assert (entry["reply"], entry["told"]) == ("at last", True)


async def test_an_answer_that_was_told_can_be_acknowledged_and_leaves_the_inbox_after_a_day(office: PostOffice) -> None:
    for text in ("!say one", "!say two"):
        await office.send("bob", text)
    first, second = await office.inbox("ada")
    assert [(each["reply"], each["told"]) for each in (first, second)] == [("one", True), ("two", True)]
    shown = (await office.fleet.call(office.agent(), "read_inbox")).as_text()
    assert "told before" in shown
    await office.fleet.call(office.agent(), "acknowledge_message", message_id=first["id"])
    assert await office.inbox("ada") == [second]
    office.change(sa.update(messages).values(told_ms=messages.c.told_ms - TOLD_MS))
    assert await office.inbox("ada") == []
    assert len(await office.inbox("ada", thread=second["thread"])) == 1
    # The next message clears what nobody is shown any more.
    assert {row.mailbox for row in office.rows} == {None, office.id_of("ada")}
    await office.post("bob", "three", wait=False)
    assert {row.mailbox for row in office.rows} == {None}
    with pytest.raises(Conflict, match="no answer"):
        await office.fleet.call(office.agent(), "acknowledge_message", message_id=second["id"])


async def test_what_is_new_comes_before_what_was_told(office: PostOffice) -> None:
    await office.send("bob", "!say old")
    office.use(None)
    await office.post("ada", "new", sender=office.agent("bob"))
    assert [each["kind"] for each in await office.inbox("ada")] == ["message", "reply"]
    assert [each["message"] for each in await office.inbox("ada", limit=1)] == ["new"]
    assert "told" not in (await office.inbox("ada"))[0]


async def test_a_failure_that_was_told_lies_in_the_inbox_as_well(office: PostOffice) -> None:
    with pytest.raises(Exception, match="DELIVERY_FAILED"):
        await office.send("bob", "!fail")
    (entry,) = await office.inbox("ada")
    assert entry["told"]
    assert entry["error"].startswith("DELIVERY_FAILED: ")

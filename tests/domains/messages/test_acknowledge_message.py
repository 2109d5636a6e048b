"""acknowledge_message: a message leaves the inbox once, and an answer reaches its sender once."""

import asyncio
from typing import Any

import pytest

from rookery.core.errors import Conflict, InvalidParams, NotFound, RateLimited
from tests.domains.messages.post_office import PostOffice


@pytest.fixture
def quiet(office: PostOffice) -> PostOffice:
    """Nobody answers by itself."""
    office.use(None)
    return office


async def acknowledge(office: PostOffice, name: str, message_id: str, **more: Any) -> Any:
    return await office.fleet.call(office.agent(name), "acknowledge_message", message_id=message_id, **more)


async def test_a_message_of_others_is_not_found(quiet: PostOffice) -> None:
    sent = await quiet.post("bob", "tea?")
    for reader in (quiet.agent("carol"), quiet.stranger, quiet.fleet.owner):
        with pytest.raises(NotFound):
            await quiet.fleet.call(reader, "acknowledge_message", message_id=sent.message_id, reply="mine")
    with pytest.raises(NotFound):
        await acknowledge(quiet, "bob", "msg-unknown")
    assert len(await quiet.inbox("bob")) == 1
    assert await quiet.inbox("ada") == []


@pytest.mark.parametrize("reply", ["", "  ", "x" * 20_001])
async def test_a_blank_or_huge_reply_is_refused(quiet: PostOffice, reply: str) -> None:
    sent = await quiet.post("bob", "tea?")
    with pytest.raises(InvalidParams):
        await acknowledge(quiet, "bob", sent.message_id, reply=reply)
    assert len(await quiet.inbox("bob")) == 1


async def test_a_message_that_a_limit_refused_is_not_found_by_its_receiver(quiet: PostOffice) -> None:
    for number in range(10):
        await quiet.post("carol", f"message {number}")
    with pytest.raises(RateLimited):
        await quiet.post("bob", "one too many")
    with pytest.raises(NotFound):
        await acknowledge(quiet, "bob", quiet.rows[-1].id, reply="hm")


async def test_acknowledging_twice_is_a_conflict_but_an_answer_may_follow(quiet: PostOffice) -> None:
    sent = await quiet.post("bob", "tea?")
    assert (await acknowledge(quiet, "bob", sent.message_id)).status == "read"
    assert await quiet.inbox("bob") == []
    with pytest.raises(Conflict, match="read already"):
        await acknowledge(quiet, "bob", sent.message_id)
    assert (await acknowledge(quiet, "bob", sent.message_id, reply="yes")).status == "completed"
    with pytest.raises(Conflict, match="completed already"):
        await acknowledge(quiet, "bob", sent.message_id, reply="no")
    assert [each["reply"] for each in await quiet.inbox("ada")] == ["yes"]


async def test_the_sender_takes_the_answer_out_of_its_inbox(quiet: PostOffice) -> None:
    sent = await quiet.post("bob", "tea?")
    with pytest.raises(Conflict, match="no answer"):
        await acknowledge(quiet, "ada", sent.message_id)
    await acknowledge(quiet, "bob", sent.message_id, reply="yes")
    (found,) = await quiet.inbox("ada")
    assert (found["kind"], found["from"], found["to"], found["reply"]) == ("reply", "ada", "bob", "yes")
    with pytest.raises(Conflict, match="your own") as caught:
        await acknowledge(quiet, "ada", sent.message_id, reply="thanks")
    assert sent.thread in (caught.value.hint or "")
    assert (await acknowledge(quiet, "ada", sent.message_id)).status == "completed"
    assert await quiet.inbox("ada") == []
    with pytest.raises(Conflict):
        await acknowledge(quiet, "ada", sent.message_id)


async def test_of_two_answers_at_the_same_moment_one_counts(quiet: PostOffice) -> None:
    sent = await quiet.post("bob", "tea?")
    answers = [acknowledge(quiet, "bob", sent.message_id, reply=f"answer {number}") for number in range(8)]
    given = await asyncio.gather(*answers, return_exceptions=True)
    assert sum(isinstance(each, Conflict) for each in given) == 7
    (found,) = await quiet.inbox("ada")
    assert not isinstance(given[int(found["reply"].split()[1])], BaseException)

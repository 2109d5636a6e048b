"""read_inbox: what waits for the reader, and the threads in which it takes part."""

from typing import Any

import pytest

from rookery.core.errors import InvalidParams, NotFound
from rookery.domains.messages.shown import MAX_SHOWN
from tests.domains.messages.post_office import PostOffice


@pytest.fixture
def quiet(office: PostOffice) -> PostOffice:
    """Nobody answers by itself."""
    office.use(None)
    return office


@pytest.mark.parametrize("wrong", [{"limit": 0}, {"limit": 51}, {"limit": "many"}, {"thread": ""}, {"agent": "bob"}])
async def test_bad_arguments_are_refused(quiet: PostOffice, wrong: dict[str, Any]) -> None:
    with pytest.raises(InvalidParams):
        await quiet.inbox("ada", **wrong)


async def test_an_inbox_is_its_owners_alone(quiet: PostOffice) -> None:
    sent = await quiet.post("bob", "tea?")
    assert [each["id"] for each in await quiet.inbox("bob")] == [sent.message_id]
    for name in ("ada", "carol"):
        assert await quiet.inbox(name) == []
    assert (await quiet.fleet.call(quiet.stranger, "read_inbox")).messages == []
    assert (await quiet.fleet.call(quiet.fleet.owner, "read_inbox")).messages == []


async def test_an_empty_inbox_says_so_in_words(quiet: PostOffice) -> None:
    assert (await quiet.fleet.call(quiet.agent(), "read_inbox")).as_text() == "No messages."


async def test_the_oldest_come_first_and_stay_until_they_are_acknowledged(quiet: PostOffice) -> None:
    for number in range(4):
        await quiet.post("bob", f"message {number}")
    found = await quiet.inbox("bob", limit=3)
    assert [each["message"] for each in found] == ["message 0", "message 1", "message 2"]
    assert await quiet.inbox("bob", limit=3) == found
    shown = (await quiet.fleet.call(quiet.agent("bob"), "read_inbox")).as_text()
    assert found[0]["id"] in shown
    assert "ada to bob" in shown


async def test_what_is_too_much_for_once_comes_the_next_time(quiet: PostOffice) -> None:
    for number in range(5):
        await quiet.post("bob", f"{number} {'x' * (MAX_SHOWN // 3 - 100)}")
    found = await quiet.inbox("bob", limit=50)
    assert [each["message"][0] for each in found] == ["0", "1", "2"]


async def test_a_thread_is_read_whole_by_those_who_take_part_and_by_nobody_else(quiet: PostOffice) -> None:
    sent = await quiet.post("bob", "tea?")
    await quiet.fleet.call(quiet.agent("bob"), "acknowledge_message", message_id=sent.message_id, reply="coffee")
    await quiet.post("bob", "with milk?", thread=sent.thread)
    await quiet.post("bob", "of another thread")
    for name in ("ada", "bob"):
        found = await quiet.inbox(name, thread=sent.thread)
        assert [(each["message"], each.get("reply")) for each in found] == [("tea?", "coffee"), ("with milk?", None)]
    for reader in (quiet.agent("carol"), quiet.stranger, quiet.fleet.owner):
        with pytest.raises(NotFound):
            await quiet.fleet.call(reader, "read_inbox", thread=sent.thread)


async def test_of_a_long_thread_the_newest_are_shown(quiet: PostOffice) -> None:
    sent = await quiet.post("bob", "message 0")
    for number in range(1, 5):
        await quiet.post("bob", f"message {number}", thread=sent.thread)
    found = await quiet.inbox("bob", thread=sent.thread, limit=2)
    assert [each["message"] for each in found] == ["message 3", "message 4"]

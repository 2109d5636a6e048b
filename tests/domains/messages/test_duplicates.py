"""The same message to the same agent within 30 seconds is sent once, whatever server it is given to."""

import asyncio
from collections.abc import Callable

import pytest

from rookery.core.errors import RateLimited
from tests.domains.messages.post_office import PostOffice
from tests.platform_fixtures import Fleet


async def test_the_second_is_suppressed_within_the_window_and_sent_after_it(office: PostOffice) -> None:
    first = await office.send("bob", "!say hello")
    again = await office.send("bob", "!say hello")
    assert "(duplicate suppressed)" in again.as_text()
    assert (again.message_id, again.thread, again.reply) == (first.message_id, first.thread, "hello")
    office.pass_time(29_000)
    assert "(duplicate suppressed)" in (await office.send("bob", "!say hello")).as_text()
    office.pass_time(1_001)
    later = await office.send("bob", "!say hello")
    assert later.message_id != first.message_id
    assert [row.status for row in office.rows] == ["completed"] * 2


async def test_only_the_first_200_characters_count(office: PostOffice) -> None:
    office.use(None)
    same = "x" * 200
    assert (await office.post("bob", same)).note.startswith("Delivered")
    assert "suppressed" in (await office.post("bob", f"{same}, and more")).note
    assert (await office.post("bob", f"{same[1:]}y")).note.startswith("Delivered")


async def test_another_sender_or_receiver_makes_another_message(office: PostOffice) -> None:
    office.use(None)
    for sender, receiver in (("ada", "bob"), ("ada", "carol"), ("carol", "bob")):
        assert (await office.post(receiver, "hello", sender=office.agent(sender))).status == "delivered"
    assert len(office.rows) == 3


async def test_a_message_that_a_limit_refused_may_be_sent_again(office: PostOffice) -> None:
    office.use(None)
    for number in range(10):
        await office.post("bob", f"message {number}")
    with pytest.raises(RateLimited):
        await office.post("bob", "once more")
    office.pass_time(60_001)
    assert (await office.post("bob", "once more")).note.startswith("Delivered")


async def test_two_servers_send_what_is_given_to_both_at_the_same_moment_once(
    office: PostOffice, database_url: str, make_fleet: Callable[..., Fleet]
) -> None:
    other = PostOffice(make_fleet(database_url, extra={}))
    for each in (office, other):
        each.use(None)
    sent = await asyncio.gather(*(each.post("bob", "hello") for each in (office, other) * 8))
    assert len(office.rows) == 1
    assert {each.message_id for each in sent} == {office.rows[0].id}
    assert sum("suppressed" in each.note for each in sent) == 15

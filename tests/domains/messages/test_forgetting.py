"""Messages and senders are kept for a while, not for ever."""

import asyncio
from collections.abc import Callable

import sqlalchemy as sa

from rookery.domains.messages.forgetting import AT_ONCE, DAY_MS
from rookery.domains.messages.tables import messages, senders
from tests.domains.messages.post_office import PostOffice
from tests.platform_fixtures import Fleet

TIMES = ("created_ms", "accepted_ms", "arrived_ms", "completed_ms")


def age(office: PostOffice, days: int, *which: sa.ColumnElement[bool]) -> None:
    older = {name: messages.c[name] - days * DAY_MS for name in TIMES}
    office.change(sa.update(messages).where(*which).values(**older))


async def test_what_is_over_for_long_is_forgotten_when_the_next_is_sent(office: PostOffice) -> None:
    office.use(None)
    for text in ("old", "answered a moment ago", "new"):
        await office.post("bob", text)
    await office.post("ada", "of another", sender=office.agent("bob"))
    age(office, 91, messages.c.content != "new")
    late = next(row for row in office.rows if row.content.startswith("answered"))
    await office.fleet.call(office.agent("bob"), "acknowledge_message", message_id=late.id, reply="yes")
    await office.post("carol", "one more")
    assert {row.content for row in office.rows} == {"answered a moment ago", "new", "one more"}


async def test_what_is_under_way_is_kept_however_long_it_takes(office: PostOffice) -> None:
    await office.post("bob", "!say slow", wait=False)
    age(office, 1000)
    await office.post("bob", "!say quick", wait=False)
    assert len(office.rows) == 2


async def test_how_long_is_a_setting_and_no_message_pays_for_all(
    database_url: str, make_fleet: Callable[..., Fleet]
) -> None:
    office = PostOffice(make_fleet(database_url, extra={}, message_keep_days=2, agent_rate_limit_per_min=1000))
    await office.open()
    office.use(None)
    for number in range(AT_ONCE + 5):
        await office.post("bob", f"message {number}")
    age(office, 1)
    await office.post("bob", "a day later")
    assert len(office.rows) == AT_ONCE + 6
    age(office, 2)
    for left in (7, 2):
        await office.post("bob", f"days later, {left}")
        assert len(office.rows) == left


async def test_senders_that_have_not_written_for_long_are_forgotten(office: PostOffice) -> None:
    office.use(None)
    for name in ("ada", "bob"):
        await office.post("carol", "hi", sender=office.agent(name))
    office.change(sa.update(senders).values(touched_ms=senders.c.touched_ms - 91 * DAY_MS))
    await office.post("carol", "again")
    assert [row.sender for row in office.select(sa.select(senders))] == [office.id_of("ada")]


async def test_many_senders_forget_at_the_same_moment(
    office: PostOffice, database_url: str, make_fleet: Callable[..., Fleet]
) -> None:
    other = PostOffice(make_fleet(database_url, extra={}))
    for each in (office, other):
        each.use(None)
    for number in range(9):
        await office.post("bob", f"message {number}")
    age(office, 91)
    posts = [
        each.post("default", f"from {name}", sender=each.agent(name))
        for each in (office, other)
        for name in ("ada", "bob", "carol")
    ]
    await asyncio.gather(*posts)
    assert {row.content for row in office.rows} == {"from ada", "from bob", "from carol"}

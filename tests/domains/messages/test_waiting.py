"""However many wait for answers, one looks for all of them."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from rookery.core.errors import Conflict, DatabaseError, ServiceUnavailable, TimedOut
from rookery.domains.messages import waiting
from rookery.domains.messages.store import Messages
from tests.domains.messages.post_office import PostOffice, until
from tests.platform_fixtures import Fleet

WAITING = 40


@pytest.fixture
async def busy(database_url: str, make_fleet: Callable[..., Fleet]) -> PostOffice:
    office = PostOffice(make_fleet(database_url, extra={}, agent_rate_limit_per_min=1000))
    await office.open()
    return office


def count_reads(office: PostOffice, monkeypatch: pytest.MonkeyPatch, broken: list[Exception]) -> list[int]:
    """The list grows by one with each read; while `broken` is not empty each takes one of it and raises that."""
    seen: list[int] = []
    real = office.platform.database.read

    async def counted(*given: Any, **more: Any) -> Any:
        seen.append(1)
        if broken:
            raise broken.pop()
        return await real(*given, **more)

    monkeypatch.setattr(office.platform.database, "read", counted)
    return seen


def end_all(office: PostOffice) -> None:
    def end(tx: Any) -> None:
        store = Messages(tx, "default")
        for row in office_rows:
            store.answer(row, f"answer to {row.content}")

    office_rows = office.rows
    office.platform.database.direct(end, write=True)


async def test_reads_do_not_grow_with_those_who_wait(
    busy: PostOffice, database_url: str, make_fleet: Callable[..., Fleet], monkeypatch: pytest.MonkeyPatch
) -> None:
    asking = [asyncio.create_task(busy.post("bob", f"question {number}")) for number in range(WAITING)]
    await until(lambda: len(busy.rows) == WAITING, "all were sent")
    reads = count_reads(busy, monkeypatch, [])
    other = make_fleet(database_url, extra={})
    for _ in range(20):
        # Another process that commits is heard by all who wait on SQLite.
        await other.call(other.owner, "create_issue", title="busy")
        await asyncio.sleep(0.02)
    assert len(reads) < WAITING
    end_all(busy)
    sent = await asyncio.wait_for(asyncio.gather(*asking), 30)
    assert [each.reply for each in sent] == [f"answer to question {number}" for number in range(WAITING)]


@pytest.mark.parametrize(
    "error",
    [
        DatabaseError("out of reach"),
        TimedOut("busy"),
        ServiceUnavailable("closing"),
        Conflict("odd"),
        ValueError("bug"),
    ],
    ids=lambda error: type(error).__name__,
)
async def test_a_look_that_fails_ends_no_wait(
    busy: PostOffice, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    monkeypatch.setattr(waiting, "LOOK_S", 0.05)
    asking = asyncio.create_task(busy.post("bob", "question"))
    await until(lambda: busy.rows, "it was sent")
    broken = [error, error, error]
    count_reads(busy, monkeypatch, broken)
    await until(lambda: not broken, "the database failed three looks")
    end_all(busy)
    assert (await asyncio.wait_for(asking, 10)).reply == "answer to question"


async def test_one_that_gives_up_leaves_the_others_waiting(busy: PostOffice) -> None:
    asking = [asyncio.create_task(busy.post("bob", f"question {number}")) for number in range(3)]
    await until(lambda: len(busy.rows) == 3, "all were sent")
    asking[0].cancel()
    with pytest.raises(asyncio.CancelledError):
        await asking[0]
    end_all(busy)
    sent = await asyncio.wait_for(asyncio.gather(*asking[1:]), 30)
    assert [each.status for each in sent] == ["completed"] * 2

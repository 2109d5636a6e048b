"""Waiting for answers: seen at once, whoever gives them, and as cheap for a thousand as for one."""

import asyncio
import time
from collections.abc import Callable, Iterator
from typing import Any, TypeVar, cast

import pytest

from rookery.asks import waiting
from rookery.asks.store import Asks, NewAsk
from rookery.asks.waiting import until_settled
from rookery.core.errors import DatabaseError, NotFound
from rookery.db.database import Database
from rookery.db.tx import Tx
from rookery.db.wakes import Listener
from tests.domains.owner.reception import Reception
from tests.waking import until_listening

T = TypeVar("T")
LIMIT_S = 20.0


@pytest.fixture(autouse=True)
def nobody_left() -> Iterator[None]:
    yield
    assert waiting._LOOKOUTS == {}, "a lookout stays for nobody"


def change(reception: Reception, work: Callable[[Asks], T]) -> T:
    return reception.platform.database.direct(lambda tx: work(Asks(tx, "default")), write=True)


def opened(reception: Reception, number: int = 0) -> Any:
    new = NewAsk(kind="approval", agent_id="agt-1", question=f"{number}?")
    return change(reception, lambda store: store.open(new))[0]


class Watched:
    """A database that counts its reads, can be out of reach for some of them, and hears nothing or everything."""

    def __init__(self, real: Database, *, failures: int = 0) -> None:
        self._real = real
        self.failures = failures
        self.reads = 0
        self.listeners: list[Listener] = []

    async def read(self, work: Callable[[Any], T], *, timeout_s: float = 60.0) -> T:
        self.reads += 1
        if self.failures:
            self.failures -= 1
            raise DatabaseError("the database is out of reach")
        return await self._real.read(work, timeout_s=timeout_s)

    def on_wake(self, listener: Listener) -> Callable[[], None]:
        self.listeners.append(listener)
        return lambda: self.listeners.remove(listener)


def waits(database: Any, row: Any, within_s: float = LIMIT_S, **how: Any) -> "asyncio.Task[Any]":
    return asyncio.create_task(until_settled(cast(Database, database), "default", row.id, within_s, **how))


async def test_what_is_not_there_is_not_waited_for(reception: Reception) -> None:
    row = opened(reception)
    with pytest.raises(NotFound):
        await until_settled(reception.platform.database, "other", row.id, LIMIT_S)
    with pytest.raises(NotFound):
        await until_settled(reception.platform.database, "default", "0" * 32, LIMIT_S)


async def test_who_waits_outlasts_a_database_that_is_away_for_a_moment(
    reception: Reception, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(waiting, "LOOK_S", 0.01)
    row = opened(reception)
    change(reception, lambda store: store.answer(row.id, "yes", "owner", "cli"))
    real = reception.platform.database
    assert (await waits(Watched(real, failures=3), row)).status == "answered"
    with pytest.raises(DatabaseError):
        await waits(Watched(real, failures=10_000), row, 0.1)


async def test_an_answer_is_seen_by_who_hears_nothing(reception: Reception) -> None:
    row = opened(reception)
    call = waits(Watched(reception.platform.database), row)
    await asyncio.sleep(0)
    change(reception, lambda store: store.answer(row.id, "yes", "owner", "cli"))
    async with asyncio.timeout(5):
        assert (await call).status == "answered"


async def test_a_lookout_that_cannot_read_for_a_while_goes_on(
    reception: Reception, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(waiting, "LOOK_S", 0.01)
    row = opened(reception)
    database = Watched(reception.platform.database)
    call = waits(database, row)
    while database.reads < 3:
        await asyncio.sleep(0.01)
    database.failures = 5
    change(reception, lambda store: store.answer(row.id, "yes", "owner", "cli"))
    assert (await call).status == "answered"


async def test_a_database_that_breaks_is_told_to_who_waits(
    reception: Reception, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(waiting, "LOOK_S", 0.01)
    row = opened(reception)
    database = Watched(reception.platform.database)
    call = waits(database, row)
    while database.reads < 2:
        await asyncio.sleep(0.01)

    async def broken(work: Callable[[Tx], Any], *, timeout_s: float = 60.0) -> Any:
        raise RuntimeError("broken")

    monkeypatch.setattr(database, "read", broken)
    with pytest.raises(RuntimeError, match="broken"):
        await call


async def test_not_now_is_enough_for_who_asks_to_be_told_so(reception: Reception) -> None:
    row = opened(reception)
    hears, deaf = reception.platform.database, Watched(reception.platform.database)
    calls = [waits(place, row, enough=lambda seen: seen.later_ms is not None) for place in (hears, deaf)]
    patient = waits(hears, row)
    await asyncio.sleep(0.05)
    change(reception, lambda store: store.answer(row.id, "later", "owner", "cli"))
    for call in calls:
        assert (await call).status == "open"
    assert not patient.done()
    change(reception, lambda store: store.answer(row.id, "yes", "owner", "cli"))
    assert (await patient).status == "answered"


async def test_two_hundred_who_wait_look_as_rarely_as_one(reception: Reception) -> None:
    rows = [opened(reception, number) for number in range(200)]
    database = Watched(reception.platform.database)
    looked: set[str] = set()
    calls = [waits(database, row, each_look=lambda waited_s, row=row: looked.add(row.id)) for row in rows]
    while len(looked) < len(rows):
        await asyncio.sleep(0.01)
    before = database.reads
    began = time.monotonic()
    while (passed := time.monotonic() - began) < 2:
        # Another process commits all the time, and does not say what.
        for listener in list(database.listeners):
            listener("")
        await asyncio.sleep(0.02)
    assert database.reads - before <= passed / waiting.CALM_S + 1
    before = database.reads
    change(reception, lambda store: [store.answer(row.id, "yes", "owner", "cli") for row in rows])
    async with asyncio.timeout(LIMIT_S):
        assert {(await call).status for call in calls} == {"answered"}
    assert database.reads - before <= len(rows) + 4 * LIMIT_S


async def test_who_hears_is_told_at_once(reception: Reception, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(waiting, "LOOK_S", 3600.0)
    monkeypatch.setattr(waiting, "CALM_S", 3600.0)
    await until_listening(reception.platform.database)
    row = opened(reception)
    call = waits(reception.platform.database, row)
    await asyncio.sleep(0.05)
    change(reception, lambda store: store.answer(row.id, "yes", "owner", "cli"))
    async with asyncio.timeout(LIMIT_S):
        assert (await call).status == "answered"

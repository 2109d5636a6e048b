"""Work that loops or hangs ends at its time limit, leaves nothing, and holds up nobody else for long."""

import asyncio
import logging
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import sqlalchemy as sa

from rookery.core.errors import TimedOut
from rookery.db import threads
from rookery.db.database import Database
from rookery.db.tx import Tx
from tests.db import sample

# An exception that is raised into a thread may arrive in a finalizer, where Python can only report it.
pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
LIMIT_S = 0.3
OTHERS_WAIT_S = 3.0
"""Far above the limit and the watch's tick, far below the default limit of a minute."""


class Hang:
    """Work that writes and then waits where no exception can reach it, until the test ends."""

    def __init__(self) -> None:
        self.entered = threading.Event()
        self.released = threading.Event()
        self.inside: set[int] = set()

    def __call__(self, tx: Tx) -> None:
        self.inside.add(threading.get_ident())
        self.entered.set()
        try:
            self.released.wait(60)
        finally:
            self.inside.discard(threading.get_ident())

    def after_writing(self, tx: Tx) -> None:
        sample.add("hung")(tx)
        self(tx)

    def end(self) -> None:
        """Let the hanging threads come back, if there are any, and wait until they have."""
        self.released.set()
        sample.wait_for(lambda: not self.inside)


@pytest.fixture
def hang(monkeypatch: pytest.MonkeyPatch) -> Iterator[Hang]:
    monkeypatch.setattr(threads, "GRACE_S", 0.4)
    work = Hang()
    yield work
    work.end()


def spin(tx: Tx) -> None:
    while True:
        pass


def spin_and_shrug(tx: Tx) -> None:
    while True:
        try:
            while True:
                pass
        except Exception:
            continue


def endless_query(tx: Tx) -> None:
    tx.scalar(sa.text(sample.ENDLESS[tx.dialect]))


ENDLESS: dict[str, Callable[[Tx], None]] = {"spin": spin, "shrug": spin_and_shrug, "query": endless_query}


@pytest.fixture(params=list(ENDLESS))
def endless(request: pytest.FixtureRequest) -> Callable[[Tx], None]:
    return ENDLESS[request.param]


async def timed(call: Any) -> tuple[Any, float]:
    began = time.monotonic()
    outcome = (await asyncio.gather(call, return_exceptions=True))[0]
    return outcome, time.monotonic() - began


async def test_an_endless_read_times_out_and_the_next_reads_work(
    database: Database, endless: Callable[[Tx], None]
) -> None:
    calls = [timed(database.read(endless, timeout_s=LIMIT_S)) for _ in range(3)]
    for outcome, took_s in await asyncio.gather(*calls):
        assert isinstance(outcome, TimedOut)
        assert LIMIT_S <= took_s < OTHERS_WAIT_S
    for _ in range(20):
        assert await database.read(lambda tx: tx.scalar(sa.text("SELECT value FROM counter"))) == 0


async def test_an_endless_write_times_out_and_is_undone(database: Database, endless: Callable[[Tx], None]) -> None:
    def write_and_loop(tx: Tx) -> None:
        sample.add("undone")(tx)
        endless(tx)

    outcome, took_s = await timed(database.write(write_and_loop, records=sample.recorded("endless"), timeout_s=LIMIT_S))
    assert isinstance(outcome, TimedOut)
    assert took_s < OTHERS_WAIT_S
    assert sample.keys(database) == []
    assert sample.requests(database) == {"endless": ["TIMEOUT"]}


async def test_others_go_on_and_are_committed_once(database: Database, endless: Callable[[Tx], None]) -> None:
    runs: dict[str, int] = {}

    def work(key: str) -> Callable[[Tx], None]:
        def add(tx: Tx) -> None:
            runs[key] = runs.get(key, 0) + 1
            sample.add(key)(tx)
            sample.count_up(tx)

        return add

    def before_and_after() -> list[Any]:
        return [timed(database.write(work(key), records=sample.recorded(key))) for key in names]

    names = [f"first{at}" for at in range(10)]
    calls = before_and_after()
    calls.append(timed(database.write(endless, records=sample.recorded("endless"), timeout_s=LIMIT_S)))
    names = [f"then{at}" for at in range(10)]
    calls += before_and_after()
    outcomes = await asyncio.gather(*calls)
    assert max(took_s for _, took_s in outcomes) < OTHERS_WAIT_S
    assert [outcome for outcome, _ in outcomes if outcome is not None] == [outcomes[10][0]]
    assert len(sample.keys(database)) == 20
    assert sample.counted(database) == 20
    found = sample.requests(database)
    assert found.pop("endless") == ["TIMEOUT"]
    assert set(map(tuple, found.values())) == {("done",)}
    assert len(found) == 20


async def test_a_thread_that_cannot_be_stopped_is_replaced_and_reported(
    database: Database, hang: Hang, caplog: pytest.LogCaptureFixture
) -> None:
    calls = [
        timed(database.write(hang.after_writing, records=sample.recorded("hung"), timeout_s=LIMIT_S)),
        timed(database.write(sample.add("other"), records=sample.recorded("other"))),
        timed(database.record(sample.make_record("note"))),
    ]
    with caplog.at_level(logging.ERROR):
        (hung, _), (other, took_s), (note, note_s) = await asyncio.gather(*calls)
    assert isinstance(hung, TimedOut)
    assert (other, note) == (None, None)
    assert max(took_s, note_s) < OTHERS_WAIT_S
    assert "could not be stopped" in caplog.text
    assert await asyncio.wait_for(database.change(sample.count_up), OTHERS_WAIT_S) == 1
    sample.wait_for(lambda: "hung" in sample.requests(database))
    hang.end()
    assert sample.keys(database) == ["other"]
    assert sample.requests(database) == {"hung": ["TIMEOUT"], "other": ["done"], "note": ["done"]}


async def test_a_row_locked_by_a_hanging_write_is_free_again(database: Database, hang: Hang) -> None:
    def lock_and_hang(tx: Tx) -> None:
        sample.count_up(tx)
        hang(tx)

    hanging = asyncio.create_task(timed(database.write(lock_and_hang, records=sample.recorded("a"), timeout_s=LIMIT_S)))
    await asyncio.to_thread(hang.entered.wait, 10)
    value, took_s = await timed(database.change(sample.count_up))
    assert value == 1
    assert took_s < OTHERS_WAIT_S
    assert isinstance((await hanging)[0], TimedOut)


async def test_a_read_thread_that_cannot_be_stopped_is_replaced(database: Database, hang: Hang) -> None:
    calls = [timed(database.read(hang, timeout_s=LIMIT_S)) for _ in range(30)]
    outcomes = await asyncio.gather(*calls)
    assert all(isinstance(outcome, TimedOut) for outcome, _ in outcomes)
    assert max(took_s for _, took_s in outcomes) < 5
    assert await asyncio.wait_for(database.read(lambda tx: 1), OTHERS_WAIT_S) == 1


async def test_two_hanging_writes_in_one_batch_are_both_recorded(database: Database, hang: Hang) -> None:
    calls = [
        timed(database.write(spin, records=sample.recorded("spin"), timeout_s=LIMIT_S)),
        timed(database.write(hang, records=sample.recorded("hang1"), timeout_s=2 * LIMIT_S)),
        timed(database.write(sample.add("mate"), records=sample.recorded("mate"))),
        timed(database.write(hang, records=sample.recorded("hang2"), timeout_s=2 * LIMIT_S)),
    ]
    outcomes = [outcome for outcome, _ in await asyncio.gather(*calls)]
    assert [type(outcome) for outcome in outcomes] == [TimedOut, TimedOut, type(None), TimedOut]
    sample.wait_for(lambda: len(sample.requests(database)) == 4)
    wanted = {"spin": ["TIMEOUT"], "hang1": ["TIMEOUT"], "mate": ["done"], "hang2": ["TIMEOUT"]}
    assert sample.requests(database) == wanted


async def test_work_that_is_done_is_never_called_undone(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    """One write is quick and has a short limit; a slow one in the same batch keeps it from being committed."""
    monkeypatch.setattr(threads, "GRACE_S", 0.1)
    go_on = threading.Event()
    blocker = asyncio.create_task(database.change(lambda tx: go_on.wait(20)))
    quick = asyncio.create_task(
        database.write(sample.add("quick"), records=sample.recorded("quick"), timeout_s=LIMIT_S)
    )
    slow = asyncio.create_task(
        database.write(lambda tx: time.sleep(4 * LIMIT_S), records=sample.recorded("slow"), timeout_s=20)
    )
    await asyncio.sleep(0)
    go_on.set()
    outcome = (await timed(quick))[0]
    await asyncio.gather(blocker, slow)
    sample.wait_for(lambda: set(sample.requests(database)) == {"quick", "slow"})
    committed = sample.keys(database) == ["quick"]
    assert committed == (outcome is None)
    assert sample.requests(database)["quick"] == (["done"] if committed else ["TIMEOUT"])


async def test_a_cancelled_write_is_undone_and_recorded(database: Database) -> None:
    entered = threading.Event()

    def write_and_spin(tx: Tx) -> None:
        sample.add("cancelled")(tx)
        entered.set()
        spin(tx)

    call = asyncio.create_task(database.write(write_and_spin, records=sample.recorded("cancelled")))
    await asyncio.to_thread(entered.wait, 10)
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    assert await asyncio.wait_for(database.change(sample.count_up), OTHERS_WAIT_S) == 1
    sample.wait_for(lambda: sample.requests(database) == {"cancelled": ["REQUEST_CANCELLED"]})
    assert sample.keys(database) == []


async def test_cancelling_never_blocks_the_event_loop(database: Database, hang: Hang) -> None:
    calls = [asyncio.create_task(database.read(hang, timeout_s=LIMIT_S)) for _ in range(4)]
    await asyncio.to_thread(hang.entered.wait, 10)
    longest, began = 0.0, time.monotonic()
    while not all(call.done() for call in calls) and time.monotonic() - began < 10:
        before = time.monotonic()
        for call in calls:
            call.cancel()
        await asyncio.sleep(0)
        longest = max(longest, time.monotonic() - before)
    assert longest < 0.5


async def test_stops_at_the_last_moment_hit_nobody_else(database: Database) -> None:
    """Many short jobs whose limit is about as long as they take: each ends one way, and no thread is lost."""

    def busy(tx: Tx) -> str:
        until = time.monotonic() + 0.05
        while time.monotonic() < until:
            pass
        return "done"

    calls = [database.write(busy, records=sample.recorded(f"req-{at}"), timeout_s=0.02 + at * 0.05) for at in range(30)]
    outcomes = await asyncio.gather(*calls, return_exceptions=True)
    assert {type(outcome) for outcome in outcomes} <= {str, TimedOut}
    sample.wait_for(lambda: len(sample.requests(database)) == 30)
    wanted = {f"req-{at}": ["done" if outcome == "done" else "TIMEOUT"] for at, outcome in enumerate(outcomes)}
    assert sample.requests(database) == wanted

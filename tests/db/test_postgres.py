"""What only PostgreSQL can do to us: deadlocks, dropped connections, locks that others hold."""

import asyncio
import contextlib
import threading
from collections.abc import Callable, Iterator

import pytest
import sqlalchemy as sa
from sqlalchemy.exc import InternalError
from sqlalchemy.pool import NullPool

from rookery.core.errors import DatabaseError, TimedOut
from rookery.db import postgres
from rookery.db.database import Database
from rookery.db.postgres import PostgresDatabase
from rookery.db.tx import Tx
from tests.db import sample

CONFLICT = "DO $$ BEGIN RAISE EXCEPTION 'try again' USING ERRCODE = '40001'; END $$"


@pytest.fixture
def database(postgres_url: str) -> Iterator[Database]:
    with contextlib.closing(sample.open_sample(postgres_url)) as opened:
        yield opened


class Unlucky:
    """Work that collides with somebody else so many times before it succeeds."""

    def __init__(self, times: int) -> None:
        self.left = times

    def __call__(self, tx: Tx) -> None:
        sample.count_up(tx)
        if self.left:
            self.left -= 1
            tx.connection.exec_driver_sql(CONFLICT)


async def test_a_write_that_collides_is_tried_again_and_recorded_once(database: Database) -> None:
    await database.write(Unlucky(2), records=sample.recorded("req-1"))
    assert sample.counted(database) == 1
    assert sample.requests(database) == {"req-1": ["done"]}


async def test_a_write_that_keeps_colliding_fails_and_is_recorded(database: Database) -> None:
    with pytest.raises(DatabaseError, match="try again") as caught:
        await database.write(Unlucky(100), records=sample.recorded("req-1"))
    assert caught.value.retryable
    assert sample.counted(database) == 0
    assert sample.requests(database) == {"req-1": ["DATABASE_ERROR"]}


async def test_two_writes_that_lock_each_other_out_both_succeed(database: Database) -> None:
    await database.change(lambda tx: tx.run(sa.text("INSERT INTO counter VALUES (2, 0)")))
    meeting = asyncio.Barrier(2)
    loop = asyncio.get_running_loop()
    met: set[int] = set()

    def both(first: int, second: int) -> Callable[[Tx], None]:
        def work(tx: Tx) -> None:
            raise_one = "UPDATE counter SET value = value + 1 WHERE id = :id"
            tx.run(sa.text(raise_one).bindparams(id=first))
            if first not in met:
                met.add(first)
                asyncio.run_coroutine_threadsafe(meeting.wait(), loop).result(10)
            tx.run(sa.text(raise_one).bindparams(id=second))

        return work

    await asyncio.gather(database.change(both(1, 2)), database.change(both(2, 1)))
    values = database.direct(lambda tx: [row.value for row in tx.all(sa.text("SELECT value FROM counter"))])
    assert values == [2, 2]


def drop_connections(url: str) -> None:
    mine = "pid <> pg_backend_pid() AND datname = current_database()"
    engine = sa.create_engine(url, poolclass=NullPool)
    with engine.begin() as connection:
        connection.exec_driver_sql(f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE {mine}")


async def test_after_every_connection_was_dropped_calls_work_and_changes_are_heard(
    database: Database, postgres_url: str
) -> None:
    with contextlib.closing(sample.open_sample(postgres_url)) as other:
        assert (database.epoch("scopes"), other.epoch("scopes")) == (0, 0)
        await asyncio.gather(*(database.change(sample.count_up) for _ in range(10)))
        drop_connections(postgres_url)
        for _ in range(5):
            await database.change(lambda tx: tx.bump("scopes"))
            await database.record(sample.make_record())
            await database.read(lambda tx: tx.all(sa.text("SELECT 1")))
        sample.wait_for(lambda: other.epoch("scopes") == 5, 5)


async def test_a_write_that_waits_for_a_lock_times_out(database: Database, postgres_url: str) -> None:
    engine = sa.create_engine(postgres_url, poolclass=NullPool)
    with engine.begin() as connection:
        connection.exec_driver_sql("UPDATE counter SET value = 100")
        with pytest.raises(TimedOut):
            await database.write(sample.count_up, records=sample.recorded("req-1"), timeout_s=0.3)
    assert await database.change(sample.count_up) == 101
    assert sample.requests(database) == {"req-1": ["TIMEOUT"]}


async def test_a_process_that_stands_still_in_a_transaction_loses_its_locks(
    postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As one does that is stopped by SIGSTOP: it neither goes on nor lets go."""
    monkeypatch.setattr(postgres, "IDLE_MS", 200)
    free, taken = threading.Event(), threading.Event()

    def stand_still(tx: Tx) -> None:
        sample.count_up(tx)
        taken.set()
        free.wait(20)
        sample.count_up(tx)

    with (
        contextlib.closing(sample.open_sample(postgres_url)) as stopped,
        contextlib.closing(sample.open_sample(postgres_url)) as other,
    ):
        still = asyncio.create_task(asyncio.to_thread(stopped.direct, stand_still, write=True))
        await asyncio.to_thread(taken.wait, 10)
        assert await other.write(sample.count_up, records=lambda error: [], timeout_s=10) == 1
        free.set()
        with pytest.raises(InternalError, match="idle-in-transaction"):
            await still
        assert await other.change(sample.count_up) == 2


def test_who_comes_after_the_end_leaves_no_connection_behind(postgres_url: str) -> None:
    database = sample.open_sample(postgres_url)
    database.close()
    assert database.direct(lambda tx: tx.scalar(sa.text("SELECT 1"))) == 1
    assert isinstance(database, PostgresDatabase)
    database.commit_records([sample.make_record("late")])
    others = sa.text(
        "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
    )
    engine = sa.create_engine(postgres_url, poolclass=NullPool)
    with engine.connect() as connection:
        sample.wait_for(lambda: connection.execute(others).scalar() == 0, 5)

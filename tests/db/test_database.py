"""What a transaction promises, the same on both databases."""

import asyncio
import contextlib
import os
import sqlite3
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from sqlalchemy import exc
from sqlalchemy.dialects import postgresql, sqlite

from rookery.core.errors import Conflict, RookeryError, ServiceUnavailable
from rookery.db.database import Database, open_database
from rookery.db.tx import Tx
from tests.db import sample


def fail(tx: Tx) -> None:
    sample.add("half done")(tx)
    raise Conflict("no")


async def test_a_read_cannot_write(database: Database) -> None:
    with pytest.raises(exc.DBAPIError, match=r"readonly|read-only"):
        await database.read(sample.count_up)
    assert sample.counted(database) == 0


async def test_a_read_sees_one_state_although_others_write_meanwhile(database: Database) -> None:
    read_once, written = threading.Event(), threading.Event()
    query = sa.text("SELECT value FROM counter")

    def look_twice(tx: Tx) -> list[int]:
        first = tx.scalar(query)
        read_once.set()
        assert written.wait(10)
        return [first, tx.scalar(query)]

    looking = asyncio.create_task(database.read(look_twice))
    await asyncio.to_thread(read_once.wait, 10)
    await database.change(sample.count_up)
    written.set()
    assert await looking == [0, 0]


async def test_a_failed_write_leaves_nothing_while_the_others_are_committed(database: Database) -> None:
    work = [*(sample.add(f"k{number:03}") for number in range(180)), *[fail] * 20]
    calls = [database.write(one, records=sample.recorded(f"req-{at}")) for at, one in enumerate(work)]
    outcomes = await asyncio.gather(*calls, return_exceptions=True)
    assert [type(outcome) for outcome in outcomes] == [type(None)] * 180 + [Conflict] * 20
    assert sample.keys(database) == [f"k{number:03}" for number in range(180)]
    codes = sample.requests(database)
    assert [codes[f"req-{at}"] for at in range(200)] == [["done"]] * 180 + [["CONFLICT"]] * 20


async def test_a_write_that_breaks_a_constraint_leaves_nothing(database: Database) -> None:
    await database.change(lambda tx: tx.run(sa.text("INSERT INTO right_half VALUES ('rook')")))
    with pytest.raises(exc.IntegrityError):
        await database.change(sample.add("rook"))
    assert database.direct(lambda tx: tx.scalar(sa.text("SELECT count(*) FROM left_half"))) == 0


def test_a_change_says_how_many_rows_it_touched(database: Database) -> None:
    table = sa.table("left_half", sa.column("key"))
    dialect = database.direct(lambda tx: tx.dialect)
    insert = (sqlite if dialect == "sqlite" else postgresql).insert(table).on_conflict_do_nothing()

    def work(tx: Tx) -> list[int]:
        once = insert.values(key="a")
        many = [{"key": "b"}, {"key": "c"}]
        return [tx.run(once), tx.run(once), tx.run(sa.insert(table), many), tx.run(sa.delete(table))]

    assert database.direct(work, write=True) == [1, 0, 2, 3]


async def test_a_write_without_statements_is_recorded_like_any_other(database: Database) -> None:
    await database.write(lambda tx: None, records=sample.recorded("req-1"))
    assert sample.requests(database) == {"req-1": ["done"]}


@pytest.mark.parametrize("kind", [SystemExit, KeyboardInterrupt, GeneratorExit, asyncio.CancelledError])
@pytest.mark.parametrize("how", ["read", "write"])
async def test_work_that_tries_to_end_its_thread_fails_by_itself(
    database: Database, kind: type[BaseException], how: str
) -> None:
    def leave(tx: Tx) -> None:
        raise kind

    call = database.read(leave) if how == "read" else database.write(leave, records=sample.recorded("req-1"))
    with pytest.raises(RuntimeError, match=kind.__name__):
        await asyncio.wait_for(call, 10)
    assert await asyncio.wait_for(database.change(sample.count_up), 10) == 1
    assert sample.requests(database) == ({} if how == "read" else {"req-1": ["RuntimeError"]})


async def test_a_record_that_cannot_be_stored_fails_alone(database: Database) -> None:
    bad = "\ud800" if database.url.startswith("sqlite") else "\x00"
    notes = [database.record(sample.make_record(f"note-{at}", trace=bad if at == 7 else None)) for at in range(20)]
    writes = [
        database.write(
            sample.add(f"k{at}"), records=lambda error, at=at: [sample.make_record(bad if at == 3 else f"req-{at}")]
        )
        for at in range(9)
    ]
    outcomes: list[Any] = await asyncio.wait_for(asyncio.gather(*notes, *writes, return_exceptions=True), 20)
    assert [at for at, outcome in enumerate(outcomes) if outcome is not None] == [7, 23]
    assert all(outcome.code == "AUDIT_UNAVAILABLE" for outcome in outcomes if outcome is not None)
    assert sample.keys(database) == [f"k{at}" for at in range(9) if at != 3]
    await asyncio.wait_for(database.record(sample.make_record("still there")), 10)


async def test_a_failure_nobody_foresaw_fails_its_call_and_not_the_next(database: Database) -> None:
    def broken(tx: Tx, records: Any) -> None:
        raise LookupError("out of order")

    good, database.seal = database.seal, broken
    for call in (
        database.record(sample.make_record()),
        database.record(sample.make_record(effect="read")),
        database.write(sample.count_up, records=sample.recorded("req-1")),
    ):
        with pytest.raises(RookeryError, match="out of order") as caught:
            await asyncio.wait_for(call, 10)
        assert caught.value.code == "AUDIT_UNAVAILABLE"
    database.seal = good
    await asyncio.wait_for(database.record(sample.make_record("req-2")), 10)
    assert await database.write(sample.count_up, records=sample.recorded("req-3")) == 1
    assert sample.requests(database) == {"req-2": ["done"], "req-3": ["done"]}


async def test_a_slow_read_does_not_hold_up_the_next_one(database: Database) -> None:
    go_on = threading.Event()
    await database.read(lambda tx: None)
    slow = [asyncio.create_task(database.read(lambda tx: go_on.wait(20))) for _ in range(5)]
    quick = asyncio.create_task(database.read(lambda tx: "quick"))
    assert await asyncio.wait_for(quick, 5) == "quick"
    go_on.set()
    assert await asyncio.gather(*slow) == [True] * 5


async def test_a_bump_is_seen_by_other_processes_once_it_is_committed(
    open_database: Callable[..., Database], database_url: str
) -> None:
    here, there = open_database(database_url), open_database(database_url)
    assert (here.epoch("scopes"), there.epoch("scopes"), there.epoch("other")) == (0, 0, 0)
    await here.change(lambda tx: tx.bump("scopes"))
    assert here.epoch("scopes") == 1
    sample.wait_for(lambda: there.epoch("scopes") == 1, 2)

    def bump_and_fail(tx: Tx) -> None:
        tx.bump("scopes")
        raise Conflict("no")

    with pytest.raises(Conflict):
        await here.change(bump_and_fail)
    there.direct(lambda tx: tx.bump("scopes"), write=True)
    assert there.epoch("scopes") == 2
    sample.wait_for(lambda: here.epoch("scopes") == 2, 2)
    assert there.epoch("other") == 0


async def test_an_epoch_never_goes_back(open_database: Callable[..., Database], database_url: str) -> None:
    here = open_database(database_url)
    for expected in range(1, 60):
        await here.change(lambda tx: tx.bump("scopes"))
        assert here.epoch("scopes") == expected


def open_files() -> set[str]:
    found: set[str] = set()
    for name in os.listdir("/proc/self/fd"):
        try:
            found.add(f"{name} {os.readlink(f'/proc/self/fd/{name}')}")
        except FileNotFoundError:
            continue
    return found


def threads() -> set[threading.Thread]:
    """Threads of databases. The watch belongs to the process and sleeps while there is nothing to watch."""
    return {thread for thread in threading.enumerate() if thread.name != "rookery-watch"}


async def test_closing_finishes_what_is_queued_and_lets_go_of_everything(database_url: str) -> None:
    await asyncio.to_thread(lambda: None)
    files_before, threads_before = open_files(), threads()
    database = sample.open_sample(database_url)
    database.epoch("scopes")
    writes = [
        asyncio.create_task(database.write(sample.add(f"k{at}"), records=sample.recorded(f"req-{at}")))
        for at in range(50)
    ]
    reads = [asyncio.create_task(database.read(lambda tx: 1)) for _ in range(50)]
    notes = [database.record(sample.make_record(f"note-{at}")) for at in range(50)]
    await asyncio.sleep(0)
    database.close()
    assert await asyncio.gather(*reads) == [1] * 50
    await asyncio.gather(*writes, *notes)
    assert threads() - threads_before == set()
    assert open_files() - files_before == set()
    again = open_database(database_url)
    assert len(sample.keys(again)) == 50
    assert len(sample.requests(again)) == 100
    again.close()


async def test_a_closed_database_refuses_at_once(database: Database) -> None:
    await database.change(sample.count_up)
    database.close()
    database.close()
    for call in (
        lambda: database.read(lambda tx: None),
        lambda: database.change(sample.count_up),
        lambda: database.record(sample.make_record()),
        lambda: database.record(sample.make_record(effect="read")),
    ):
        with pytest.raises(ServiceUnavailable, match="closed"):
            await asyncio.wait_for(call(), 5)


def test_a_database_that_another_process_is_just_making_is_waited_for(tmp_path: Path) -> None:
    path = tmp_path / "new.db"
    with contextlib.closing(sqlite3.connect(path, isolation_level=None, check_same_thread=False)) as maker:
        maker.execute("CREATE TABLE birds (id INTEGER)")
        maker.execute("BEGIN IMMEDIATE")
        ready = threading.Timer(0.2, maker.execute, ["ROLLBACK"])
        ready.start()
        with contextlib.closing(open_database(f"sqlite:///{path}")) as database:
            assert database.direct(lambda tx: tx.first("SELECT count(*) FROM birds")) == (0,)
        ready.join()

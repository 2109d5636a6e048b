"""Processes that share an SQLite file take turns, and none waits for ever for one that stands still."""

import asyncio
import contextlib
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from rookery.core.errors import AuditUnavailable, TimedOut
from rookery.db import sqlite_writer, threads
from rookery.db.database import Database
from rookery.db.file_lock import FileLock
from rookery.db.tx import Tx
from tests.db import sample


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path / 'rookery.db'}"


@pytest.fixture
def database(url: str) -> Iterator[Database]:
    with contextlib.closing(sample.open_sample(url)) as opened:
        yield opened


@pytest.fixture
def held(url: str, database: Database) -> Iterator[FileLock]:
    """The lock as another process holds it that was stopped in the middle of a write."""
    lock = FileLock(url.removeprefix("sqlite:///"))
    lock.acquire()
    yield lock
    lock.close()


async def test_while_another_process_stands_still_calls_are_refused_in_time(
    database: Database, held: FileLock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sqlite_writer, "WAIT_S", 0.3)
    monkeypatch.setattr(threads, "GRACE_S", 0.2)
    began = time.monotonic()
    first = [database.record(sample.make_record(f"note-{at}", effect="read")) for at in range(5)]
    write = asyncio.create_task(database.write(sample.add("late"), records=sample.recorded("late"), timeout_s=0.3))
    for note in first:
        with pytest.raises(AuditUnavailable, match="another process has held the database"):
            await note
    with pytest.raises(AuditUnavailable, match="another process"):
        await database.record(sample.make_record("later"))
    with pytest.raises(TimedOut):
        await write
    assert time.monotonic() - began < 3
    held.release()
    assert await asyncio.wait_for(database.change(sample.count_up), 5) == 1
    await asyncio.wait_for(database.record(sample.make_record("last")), 5)
    assert sample.keys(database) == []
    assert sample.requests(database)["late"] == ["TIMEOUT"]


async def test_a_process_with_much_to_write_lets_others_have_their_turn(url: str, database: Database) -> None:
    def slow(tx: Tx) -> None:
        time.sleep(0.02)
        sample.count_up(tx)

    with contextlib.closing(sample.open_sample(url)) as other:
        many = [asyncio.create_task(database.change(slow)) for _ in range(150)]
        waits: list[float] = []
        while not all(task.done() for task in many):
            began = time.monotonic()
            await other.change(sample.count_up)
            waits.append(time.monotonic() - began)
        await asyncio.gather(*many)
    assert len(waits) > 3
    assert max(waits) < 1
    assert sample.counted(database) == 150 + len(waits)

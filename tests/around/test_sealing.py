"""On PostgreSQL records are committed with their calls, in parallel, and chained by whoever comes first."""

import asyncio
import contextlib
import subprocess
import sys
import threading
from pathlib import Path

import pytest
import sqlalchemy as sa
from sqlalchemy import exc

from rookery.around.chain import seal_pending, verify
from rookery.core.record import COLUMNS
from rookery.db.database import Database, open_database
from rookery.db.tx import Tx
from tests.db import sample

ROOT = Path(__file__).parents[2]


async def test_a_waiting_record_can_be_given_its_place_and_nothing_else(postgres_url: str) -> None:
    with contextlib.closing(sample.open_sample(postgres_url)) as database:
        database.tick = None
        await database.record(sample.make_record("waiting"))
        for change in ("tool = 'another'", "position = 1", "hash = 'x'", "position = 1, hash = 'x', tool = 'another'"):
            with pytest.raises(exc.DBAPIError, match="append-only"):
                await database.change(lambda tx, change=change: tx.run(sa.text(f"UPDATE audit_log SET {change}")))
        database.direct(seal_pending, write=True)
        assert database.direct(verify).records == 1


def is_sealed(database: Database, records: int) -> bool:
    state = database.direct(verify)
    assert state.broken_at is None
    return (state.records, state.waiting) == (records, 0)


async def test_on_postgresql_records_are_chained_within_a_second(postgres_url: str) -> None:
    with contextlib.closing(sample.open_sample(postgres_url)) as database:
        await asyncio.gather(*(database.record(sample.make_record(f"req-{at}")) for at in range(20)))
        sample.wait_for(lambda: is_sealed(database, 20), 3)


async def test_records_that_are_committed_out_of_order_are_all_chained_once(postgres_url: str) -> None:
    """The first transaction takes the lower number and is committed last."""
    with contextlib.closing(sample.open_sample(postgres_url)) as database:
        held, go_on = threading.Event(), threading.Event()

        def slow(tx: Tx) -> None:
            tx.insert_rows("audit_log", COLUMNS, [sample.make_record("slow")])
            held.set()
            assert go_on.wait(20)

        waiting = asyncio.create_task(database.change(slow))
        await asyncio.to_thread(held.wait, 10)
        for at in range(5):
            await database.record(sample.make_record(f"req-{at}"))
        sample.wait_for(lambda: is_sealed(database, 5), 3)
        go_on.set()
        await waiting
        sample.wait_for(lambda: is_sealed(database, 6), 3)
        rows = sample.audit_rows(database)
        assert [row.request for row in sorted(rows, key=lambda row: row.position)][-1] == "slow"
        assert rows[0].request == "slow"


def test_two_sealing_processes_chain_everything_once(postgres_url: str) -> None:
    sample.open_sample(postgres_url).close()
    command = [sys.executable, "-m", "tests.db.contender", postgres_url, "1.5"]
    with contextlib.ExitStack() as stack:
        processes = [
            stack.enter_context(
                subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
            )
            for _ in range(2)
        ]
        for process in processes:
            assert process.stdin
            process.stdin.write("go\n")
            process.stdin.flush()
        for process in processes:
            process.communicate(timeout=60)
    with contextlib.closing(open_database(postgres_url)) as database:
        database.tick = seal_pending
        records = len(sample.audit_rows(database))
        assert records == sample.counted(database) > 0
        database.direct(seal_pending, write=True)
        assert is_sealed(database, records)
        positions = [row.position for row in sample.audit_rows(database)]
        assert sorted(positions) == list(range(1, records + 1))

"""The chain over the audit log: nothing can be changed, removed or put in without its being found out."""

import contextlib
from collections.abc import Iterator
from pathlib import Path

import pytest
import sqlalchemy as sa
from sqlalchemy import exc
from sqlalchemy.pool import NullPool

from rookery.around.chain import Verified, seal_pending, verify
from rookery.core.record import COLUMNS
from rookery.db.database import Database
from tests.db import sample

FIELDS = ", ".join(COLUMNS)


async def write_log(database: Database, records: int = 9) -> Verified:
    """A log of so many records, chained, each committed by itself."""
    for at in range(records):
        await database.record(sample.make_record(f"req-{at}", effect="read" if at % 2 else "write"))
    database.direct(seal_pending, write=True)
    state = database.direct(verify)
    assert (state.records, state.waiting, state.broken_at) == (records, 0, None)
    return state


@pytest.fixture
def database(database_url: str) -> Iterator[Database]:
    with contextlib.closing(sample.open_sample(database_url)) as opened:
        yield opened


def break_in(database: Database, *statements: str) -> None:
    """Change the log as someone would who has the database to himself."""
    engine = sa.create_engine(database.url, poolclass=NullPool)
    with engine.begin() as connection:
        if engine.dialect.name == "sqlite":
            for name in ("no_update", "no_delete"):
                connection.exec_driver_sql(f"DROP TRIGGER IF EXISTS audit_log_{name}")
        else:
            connection.exec_driver_sql("ALTER TABLE audit_log DISABLE TRIGGER ALL")
        for statement in statements:
            connection.exec_driver_sql(statement)


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE audit_log SET tool = 'another' WHERE position = 3",
        "UPDATE audit_log SET position = 100, hash = 'x' WHERE position = 3",
        "UPDATE audit_log SET position = NULL, hash = NULL WHERE position = 3",
        "DELETE FROM audit_log WHERE position = 3",
        "DELETE FROM audit_log",
    ],
)
async def test_the_database_itself_refuses_to_change_the_log(database: Database, statement: str) -> None:
    before = await write_log(database)
    with pytest.raises(exc.DBAPIError, match="append-only"):
        database.direct(lambda tx: tx.run(sa.text(statement)), write=True)
    with pytest.raises(exc.DBAPIError, match="append-only"):
        await database.change(lambda tx: tx.run(sa.text(statement)))
    assert database.direct(verify) == before


async def test_the_log_cannot_be_emptied_and_no_record_replaced(database: Database) -> None:
    before = await write_log(database)
    copy = f"SELECT id, {FIELDS}, position, hash FROM audit_log WHERE position = 3"
    statement = f"INSERT OR REPLACE INTO audit_log (id, {FIELDS}, position, hash) {copy}"
    if database.url.startswith("postgresql"):
        statement = "TRUNCATE audit_log"
    with pytest.raises(exc.DBAPIError, match="append-only"):
        await database.change(lambda tx: tx.run(sa.text(statement)))
    assert database.direct(verify) == before


SHIFT = "UPDATE audit_log SET position = -position - 1 WHERE position >= 4"
BACK = "UPDATE audit_log SET position = -position WHERE position < 0"
SWAPPED = "UPDATE audit_log SET request = CASE position WHEN 4 THEN 'req-4' ELSE 'req-3' END WHERE position IN (4, 5)"
TAMPERING: dict[str, tuple[list[str], str]] = {
    "a changed record": (["UPDATE audit_log SET outcome = 'refused' WHERE position = 4"], "does not match"),
    "a changed hash": (["UPDATE audit_log SET hash = 'x' WHERE position = 4"], "does not match"),
    "a removed record": (["DELETE FROM audit_log WHERE position = 4"], "record 4 is missing"),
    "a removed record, the rest moved up": (
        [
            "DELETE FROM audit_log WHERE position = 4",
            "UPDATE audit_log SET position = -position + 1 WHERE position > 4",
            BACK,
        ],
        "does not match",
    ),
    "a record taken out of the chain": (
        ["UPDATE audit_log SET position = NULL, hash = NULL WHERE position = 4"],
        "record 4 is missing",
    ),
    "an inserted record": (
        [
            SHIFT,
            BACK,
            f"INSERT INTO audit_log ({FIELDS}, position, hash) SELECT {FIELDS}, 4, hash FROM audit_log "
            "WHERE position = 3",
        ],
        "",
    ),
    "two records that changed places": ([SWAPPED], "does not match"),
    "the first record removed": (["DELETE FROM audit_log WHERE position = 1"], "record 1 is missing"),
}


@pytest.mark.parametrize("what", list(TAMPERING))
async def test_tampering_is_found(database: Database, what: str) -> None:
    await write_log(database)
    statements, why = TAMPERING[what]
    break_in(database, *statements)
    state = database.direct(verify)
    assert state.broken_at == (1 if "first" in what else 4)
    assert state.why is not None
    assert why in state.why


async def test_a_removed_end_is_found_by_who_remembers_the_head(database: Database) -> None:
    remembered = (await write_log(database)).head
    await database.record(sample.make_record("later"))
    database.direct(seal_pending, write=True)
    found = sa.text("SELECT count(*) FROM audit_log WHERE hash = :hash").bindparams(hash=remembered)
    assert database.direct(lambda tx: tx.scalar(found)) == 1
    break_in(database, "DELETE FROM audit_log WHERE position >= 9")
    state = database.direct(verify)
    assert (state.broken_at, state.records) == (None, 8)
    assert state.head != remembered
    assert database.direct(lambda tx: tx.scalar(found)) == 0


async def test_a_record_slipped_in_outside_the_chain_is_found(tmp_path: Path) -> None:
    with contextlib.closing(sample.open_sample(f"sqlite:///{tmp_path / 'x.db'}")) as database:
        await write_log(database)
        break_in(database, f"INSERT INTO audit_log ({FIELDS}) SELECT {FIELDS} FROM audit_log WHERE position = 3")
        state = database.direct(verify)
        assert state.why == "1 records are outside the chain"
        await database.record(sample.make_record("still recorded"))
        assert "still recorded" in sample.requests(database)

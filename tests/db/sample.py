"""A small table, its migration, and what tests of the database do with it."""

import time
from collections.abc import Callable, Sequence
from typing import Any

import sqlalchemy as sa

from rookery.around import audit
from rookery.around.chain import seal_pending
from rookery.core.call import Records
from rookery.core.errors import RookeryError
from rookery.core.record import COLUMNS, Record
from rookery.db.database import Database, open_database
from rookery.db.migrate import Migration, migrate
from rookery.db.tx import Tx

MIGRATIONS = (
    Migration(
        1,
        "sample",
        [
            "CREATE TABLE counter (id BIGINT NOT NULL PRIMARY KEY, value BIGINT NOT NULL)",
            "INSERT INTO counter VALUES (1, 0)",
            "CREATE TABLE left_half (key TEXT NOT NULL PRIMARY KEY)",
            "CREATE TABLE right_half (key TEXT NOT NULL PRIMARY KEY)",
        ],
    ),
)
PLAN = {"audit": audit.MIGRATIONS, "sample": MIGRATIONS}
ENDLESS = {
    "sqlite": "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n",
    "postgresql": "SELECT pg_sleep(600)",
}


def open_sample(url: str, *, audited: bool = True) -> Database:
    """A database with the sample's tables and, unless told otherwise, the audit log."""
    database = open_database(url)
    migrate(database, PLAN, None)
    if audited:
        database.seal = audit.append
        database.tick = seal_pending
    return database


def make_record(request: str = "req-1", tool: str = "sample", **values: Any) -> Record:
    """An audit record of a call that nobody made."""
    plain: dict[str, Any] = dict.fromkeys(COLUMNS)
    plain |= {"at_ms": time.time_ns() // 1_000_000, "tenant": "default", "kind": "agent", "subject": "tester"}
    plain |= {"source": "stdio", "request": request, "tool": tool, "effect": "write", "outcome": "done"}
    plain |= {"input_digest": "0" * 64, "duration_us": 1}
    return Record(**{**plain, **values})


def recorded(request: str) -> Records:
    """Records of a write: `done`, or `failed` with the name of what was raised."""

    def records(error: BaseException | None) -> list[Record]:
        if error is None:
            return [make_record(request)]
        code = error.code if isinstance(error, RookeryError) else type(error).__name__
        return [make_record(request, outcome="failed", code=code)]

    return records


def add(key: str) -> Callable[[Tx], None]:
    """Work that writes two rows, of which there must never be one alone."""

    def work(tx: Tx) -> None:
        tx.run(sa.text("INSERT INTO left_half VALUES (:key)").bindparams(key=key))
        tx.run(sa.text("INSERT INTO right_half VALUES (:key)").bindparams(key=key))

    return work


def count_up(tx: Tx) -> int:
    """Work that raises the counter by one."""
    return tx.scalar(sa.text("UPDATE counter SET value = value + 1 WHERE id = 1 RETURNING value"))


def keys(database: Database) -> list[str]:
    """The keys that were added. Fails if a key has only one half."""
    left, right = (
        {row.key for row in database.direct(lambda tx, table=table: tx.all(sa.text(f"SELECT key FROM {table}")))}
        for table in ("left_half", "right_half")
    )
    assert left == right
    return sorted(left)


def counted(database: Database) -> int:
    return database.direct(lambda tx: tx.scalar(sa.text("SELECT value FROM counter")))


def audit_rows(database: Database, where: str = "1 = 1") -> Sequence[sa.Row[Any]]:
    return database.direct(lambda tx: tx.all(sa.text(f"SELECT * FROM audit_log WHERE {where} ORDER BY id")))


def requests(database: Database) -> dict[str, list[str]]:
    """The outcomes in the audit log, by request."""
    found: dict[str, list[str]] = {}
    for row in audit_rows(database):
        found.setdefault(row.request, []).append(row.code or row.outcome)
    return found


def wait_for(condition: Callable[[], bool], limit_s: float = 10.0) -> None:
    """Return as soon as `condition` holds; fail if it does not within the limit."""
    limit = time.monotonic() + limit_s
    while not condition():
        assert time.monotonic() < limit, "it did not come to pass in time"
        time.sleep(0.01)

"""The hash chain over the audit log: how it grows on PostgreSQL, and how it is checked.

A record's hash covers the record, its position and the hash before it, so no record can be changed, removed or put in
without breaking the chain from there on. Only a cut at the very end leaves no trace in the chain itself: keep a head
elsewhere and compare.
"""

import hashlib
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from rookery.core.record import COLUMNS
from rookery.db.tx import Tx

GENESIS = "0" * 64
LOCK = 0x5345414C  # "SEAL": one sealer at a time on PostgreSQL
AT_ONCE = 5000

_COLUMNS = ", ".join(COLUMNS)
_encode = json.JSONEncoder(separators=(",", ":"), ensure_ascii=True).encode


def next_hash(previous: str, position: int, record: Sequence[Any]) -> str:
    """The hash of the record at `position`, after `previous`."""
    return hashlib.sha256(f"{previous}:{position}:{_encode(record)}".encode()).hexdigest()


def seal_pending(tx: Tx) -> None:
    """Chain the committed records that are not in the chain yet. One process at a time; the others go on."""
    if tx.dialect != "postgresql" or not tx.scalar(sa.text(f"SELECT pg_try_advisory_xact_lock({LOCK})")):
        return
    waiting = tx.all(
        sa.text(f"SELECT id, {_COLUMNS} FROM audit_log WHERE position IS NULL ORDER BY id LIMIT {AT_ONCE}")
    )
    if not waiting:
        return
    head = tx.one(
        sa.text("SELECT position, hash FROM audit_log WHERE position IS NOT NULL ORDER BY position DESC LIMIT 1")
    )
    position, previous = (head.position, head.hash) if head else (0, GENESIS)
    chained: list[dict[str, Any]] = []
    for row in waiting:
        position += 1
        previous = next_hash(previous, position, tuple(row[1:]))
        chained.append({"row": row.id, "position": position, "hash": previous})
    tx.run(sa.text("UPDATE audit_log SET position = :position, hash = :hash WHERE id = :row"), chained)


@dataclass(frozen=True, slots=True)
class Verified:
    """The state of the chain. `broken_at` is the first position that does not hold, `why` says what is wrong there, and
    `broken_row` is the row that was found there."""

    records: int
    waiting: int
    head: str
    broken_at: int | None = None
    why: str | None = None
    broken_row: int | None = None


@dataclass(frozen=True, slots=True)
class Place:
    """Where in the chain a check has arrived: the last record that holds."""

    row: int
    position: int
    hash: str


START = Place(0, 0, GENESIS)


def verify(tx: Tx) -> Verified:
    """Compute the whole chain again and compare."""
    state, _ = _check(tx, START, None)
    return state if state.broken_at is not None else _outside(tx, state)


def verify_part(tx: Tx, after: Place, limit: int) -> tuple[Verified, Place, bool]:
    """Compute so many records of the chain again; with the last that holds, and whether more may follow it.

    `waiting` is counted at the end only.
    """
    state, last = _check(tx, after, limit)
    if state.broken_at is not None:
        return state, last, False
    if state.records - after.position == limit:
        return state, last, True
    return _outside(tx, state), last, False


def place_of(tx: Tx, row: int) -> Place | None:
    """The record in that row as a place from which a check can go on, if it is in the chain."""
    found = tx.one(sa.text("SELECT id, position, hash FROM audit_log WHERE id = :row"), {"row": row})
    return None if found is None or found.position is None else Place(*found)


def hash_before(tx: Tx, log: sa.FromClause) -> sa.ColumnElement[str | None]:
    """The hash before that of each record of `log`, the table of the audit log: one step in an index."""
    b = log.alias("before").c
    if tx.dialect == "sqlite":
        found = sa.select(b.hash).where(b.id < log.c.id, b.position.is_not(None)).order_by(b.id.desc()).limit(1)
    else:
        found = sa.select(b.hash).where(b.position == log.c.position - 1)
    first = sa.case((log.c.position == 1, GENESIS))
    return sa.func.coalesce(first, found.correlate(log).scalar_subquery())


def _outside(tx: Tx, state: Verified) -> Verified:
    """The state of a chain that holds, with what is not in it. On SQLite no record may be outside."""
    waiting: int = tx.scalar(sa.text("SELECT count(*) FROM audit_log WHERE position IS NULL"))
    if waiting and tx.dialect == "sqlite":
        first = tx.scalar(sa.text("SELECT min(id) FROM audit_log WHERE position IS NULL"))
        why = f"{waiting} records are outside the chain"
        return Verified(state.records, waiting, state.head, state.records + 1, why, first)
    return Verified(state.records, waiting, state.head)


def _check(tx: Tx, after: Place, limit: int | None) -> tuple[Verified, Place]:
    """Walk the chain from a place on."""
    order, last = ("id", after.row) if tx.dialect == "sqlite" else ("position", after.position)
    ends = "" if limit is None else f" LIMIT {limit}"
    query = sa.text(
        f"SELECT id, position, hash, {_COLUMNS} FROM audit_log WHERE position IS NOT NULL AND {order} > :last "
        f"ORDER BY {order}{ends}"
    )
    with tx.connection.execute(query.execution_options(yield_per=1000), {"last": last}) as rows:
        return _follow(rows, after)


def _follow(rows: Iterable[sa.Row[Any]], after: Place) -> tuple[Verified, Place]:
    last = after
    for row in rows:
        expected = last.position + 1
        if row.position != expected:
            why = (
                f"record {expected} is missing" if row.position > expected else f"record {row.position} is there twice"
            )
            return Verified(last.position, 0, last.hash, expected, why, row.id), last
        if row.hash != next_hash(last.hash, expected, tuple(row[3:])):
            why = f"record {expected} does not match its hash"
            return Verified(last.position, 0, last.hash, expected, why, row.id), last
        last = Place(row.id, expected, row.hash)
    return Verified(last.position, 0, last.hash), last

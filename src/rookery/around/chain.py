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
    """The state of the chain. `broken_at` is the first position that does not hold, `why` says what is wrong there."""

    records: int
    waiting: int
    head: str
    broken_at: int | None = None
    why: str | None = None


def verify(tx: Tx) -> Verified:
    """Compute the whole chain again and compare."""
    waiting: int = tx.scalar(sa.text("SELECT count(*) FROM audit_log WHERE position IS NULL"))
    order = "id" if tx.dialect == "sqlite" else "position"
    query = sa.text(f"SELECT position, hash, {_COLUMNS} FROM audit_log WHERE position IS NOT NULL ORDER BY {order}")
    with tx.connection.execute(query.execution_options(yield_per=1000)) as rows:
        return _follow(rows, waiting, strict=tx.dialect == "sqlite")


def _follow(rows: Iterable[sa.Row[Any]], waiting: int, *, strict: bool) -> Verified:
    """Walk the chain; `strict` where no record may be outside of it."""
    position, previous = 0, GENESIS
    for row in rows:
        expected = position + 1
        if row.position != expected:
            why = (
                f"record {expected} is missing" if row.position > expected else f"record {row.position} is there twice"
            )
            return Verified(position, waiting, previous, expected, why)
        if row.hash != next_hash(previous, expected, tuple(row[2:])):
            return Verified(position, waiting, previous, expected, f"record {expected} does not match its hash")
        position, previous = expected, row.hash
    if strict and waiting:
        return Verified(position, waiting, previous, position + 1, f"{waiting} records are outside the chain")
    return Verified(position, waiting, previous)

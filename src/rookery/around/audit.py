"""The audit log: one record a call, chained by hashes, committed with the call it describes.

Records are sealed in groups: on SQLite each commit is one seal, on PostgreSQL a sealer chains what has been committed
twice a second. A seal's hash covers its records and the seal before it, so no record can be changed, removed or put
in without breaking the chain from there on.
"""

import hashlib
import json
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from rookery.core.record import COLUMNS, Record
from rookery.db.migrate import Migration
from rookery.db.schema import append_only, metadata, serial, text, whole
from rookery.db.tx import Tx

GENESIS = "0" * 64
SEAL_LOCK = 0x5345414C  # "SEAL": one sealer at a time on PostgreSQL
SEAL_LIMIT = 5000

_NUMBERS = ("at_ms", "duration_us")
_NULLABLE = ("agent", "profile", "project", "issue", "session", "trace", "code", "layer")

audit_log = sa.Table(
    "audit_log",
    metadata,
    serial(),
    *(whole(name) if name in _NUMBERS else text(name, null=name in _NULLABLE) for name in COLUMNS),
    whole("seal", null=True),
    sa.Index(
        "audit_log_unsealed",
        "id",
        sqlite_where=sa.text("seal IS NULL"),
        postgresql_where=sa.text("seal IS NULL"),
    ),
    sa.Index("audit_log_seal", "seal"),
)
audit_seals = sa.Table(
    "audit_seals",
    metadata,
    sa.Column("id", sa.BigInteger, primary_key=True, autoincrement=False),
    whole("sealed_ms"),
    whole("records"),
    text("previous"),
    text("hash"),
)

_COLUMN_DDL = ", ".join(
    f"{name} {'BIGINT' if name in _NUMBERS else 'TEXT'}{'' if name in _NULLABLE else ' NOT NULL'}" for name in COLUMNS
)
MIGRATIONS = (
    Migration(
        1,
        "audit log",
        [
            f"CREATE TABLE audit_log (id {{serial}}, {_COLUMN_DDL}, seal BIGINT)",
            "CREATE INDEX audit_log_unsealed ON audit_log (id) WHERE seal IS NULL",
            "CREATE INDEX audit_log_seal ON audit_log (seal)",
            "CREATE TABLE audit_seals (id BIGINT NOT NULL PRIMARY KEY, sealed_ms BIGINT NOT NULL, "
            "records BIGINT NOT NULL, previous TEXT NOT NULL, hash TEXT NOT NULL)",
            append_only("audit_log", may_set="seal"),
            append_only("audit_seals"),
        ],
    ),
)

_NO_GROUP: tuple[int | None, list[tuple[Any, ...]]] = (None, [])
_HEAD = "SELECT id, hash FROM audit_seals ORDER BY id DESC LIMIT 1"


def _hash(previous: str, seal: int, sealed_ms: int, records: Iterable[Sequence[Any]]) -> str:
    digest = hashlib.sha256(f"{previous}:{seal}:{sealed_ms}".encode())
    for record in records:
        digest.update(json.dumps(list(record), separators=(",", ":"), ensure_ascii=True).encode())
        digest.update(b"\n")
    return digest.hexdigest()


def append(tx: Tx, records: Sequence[Record]) -> None:
    """Add records inside the caller's transaction; on SQLite, which has one writer at a time, sealed at once."""
    if tx.dialect != "sqlite":
        tx.insert_rows("audit_log", COLUMNS, records)
        return
    seal = _write_seal(tx, records)
    tx.insert_rows("audit_log", (*COLUMNS, "seal"), [(*record, seal) for record in records])


def _write_seal(tx: Tx, records: Sequence[Sequence[Any]]) -> int:
    """Chain `records` to the head and return the new seal's number. The caller has the chain to itself."""
    head = tx.first(_HEAD)
    seal, previous = (head[0] + 1, head[1]) if head else (1, GENESIS)
    now_ms = time.time_ns() // 1_000_000
    row = (seal, now_ms, len(records), previous, _hash(previous, seal, now_ms, records))
    tx.insert_rows("audit_seals", ("id", "sealed_ms", "records", "previous", "hash"), [row])
    return seal


def seal_pending(tx: Tx) -> None:
    """Chain the committed records that no seal covers yet. PostgreSQL only; one process at a time, the others go on."""
    if not tx.scalar(sa.text(f"SELECT pg_try_advisory_xact_lock({SEAL_LOCK})")):
        return
    columns = [audit_log.c[name] for name in COLUMNS]
    waiting = sa.select(audit_log.c.id, *columns).where(audit_log.c.seal.is_(None)).order_by(audit_log.c.id)
    rows = tx.all(waiting.limit(SEAL_LIMIT))
    if not rows:
        return
    seal = _write_seal(tx, [tuple(row[1:]) for row in rows])
    tx.run(sa.update(audit_log).where(audit_log.c.id.in_([row.id for row in rows])).values(seal=seal))


@dataclass(frozen=True, slots=True)
class Verified:
    """The state of the chain. `broken_at` is the first seal that does not hold, `why` says what is wrong with it."""

    seals: int
    records: int
    unsealed: int
    head: str
    broken_at: int | None = None
    why: str | None = None


def verify(tx: Tx) -> Verified:
    """Compute the whole chain again and compare."""
    unsealed = tx.scalar(sa.select(sa.func.count()).select_from(audit_log).where(audit_log.c.seal.is_(None)))
    columns = [audit_log.c[name] for name in COLUMNS]
    previous, seals, total = GENESIS, 0, 0
    stream = tx.connection.execution_options(yield_per=1000).execute(
        sa.select(audit_log.c.seal, *columns)
        .where(audit_log.c.seal.is_not(None))
        .order_by(audit_log.c.seal, audit_log.c.id)
    )
    groups = _by_seal(iter(stream))
    for row in tx.all(sa.select(audit_seals).order_by(audit_seals.c.id)):
        number, records = next(groups, _NO_GROUP)
        why = None
        if row.id != seals + 1:
            why = f"seal {seals + 1} is missing"
        elif number != row.id or len(records) != row.records:
            why = f"seal {row.id} covers {row.records} records, {len(records) if number == row.id else 0} are there"
        elif row.previous != previous or row.hash != _hash(previous, row.id, row.sealed_ms, records):
            why = f"the records of seal {row.id} do not match its hash"
        if why:
            return Verified(seals, total, unsealed, previous, row.id, why)
        previous, seals, total = row.hash, row.id, total + row.records
    if next(groups, None) is not None:
        return Verified(seals, total, unsealed, previous, seals + 1, "there are records whose seal is missing")
    return Verified(seals, total, unsealed, previous)


def _by_seal(rows: Iterable[sa.Row[Any]]) -> Iterator[tuple[int | None, list[tuple[Any, ...]]]]:
    """Group a stream of rows by their first column."""
    number: int | None = None
    group: list[tuple[Any, ...]] = []
    for row in rows:
        if row[0] != number and number is not None:
            yield number, group
            group = []
        number = row[0]
        group.append(tuple(row[1:]))
    if number is not None:
        yield number, group

"""Where promoted memories are written for good. The local ledger is a log that can only grow, chained and signed.

A ledger of the outside world takes the same sealed entries; none of them ever sees a plain word.
"""

import hashlib
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

import sqlalchemy as sa
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from rookery.core.ids import new_id
from rookery.db.server_keys import server_key_in
from rookery.db.tx import Tx
from rookery.domains.memory.tables import memory_ledger

T = TypeVar("T")
GENESIS = "0" * 64
KEY_NAME = "memory-ledger"
_FIELDS = ("txid", "tenant", "owner", "memory_id", "key_version", "created_ms")
_HEAD = sa.select(memory_ledger.c.hash).order_by(memory_ledger.c.seq.desc()).limit(1)
_ADD = sa.insert(memory_ledger)
_LOCK = sa.text("SELECT pg_advisory_xact_lock(hashtextextended('memory-ledger', 0))")
_ALL = sa.select(memory_ledger).order_by(memory_ledger.c.seq)


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """A sealed copy of a memory, and the number of the key that seals it."""

    tenant: str
    owner: str
    memory_id: str
    key_version: int
    payload: bytes


class Ledger(Protocol):
    """Takes an entry and gives the id of the transaction that wrote it. What fails raises, and wrote nothing."""

    async def put(self, entry: Entry) -> str: ...


class LocalLedger:
    """The log in our own database. `write` runs work in a transaction that is committed when it returns."""

    def __init__(self, write: Callable[[Callable[[Any], Any]], Awaitable[Any]]) -> None:
        self._write = write

    async def put(self, entry: Entry) -> str:
        return await self._write(lambda tx: append(tx, entry))


def append(tx: Tx, entry: Entry) -> str:
    """Add an entry to the log and return its id. Entries of several servers come one after the other."""
    if tx.dialect == "postgresql":
        tx.scalar(_LOCK)
    fields = {
        "txid": new_id("ltx"),
        "tenant": entry.tenant,
        "owner": entry.owner,
        "memory_id": entry.memory_id,
        "key_version": entry.key_version,
        "created_ms": time.time_ns() // 1_000_000,
    }
    link = _link(tx.scalar(_HEAD) or GENESIS, fields, entry.payload)
    signature = _signer(tx).sign(bytes.fromhex(link)).hex()
    tx.run(_ADD, [{**fields, "payload": entry.payload, "hash": link, "signature": signature}])
    return str(fields["txid"])


def broken_at(tx: Tx) -> int | None:
    """The first entry that is not what was written, by its number; None if the log is whole. Writes no entry."""
    public = _signer(tx).public_key()
    before = GENESIS
    for row in tx.all(_ALL):
        before = _link(before, {name: getattr(row, name) for name in _FIELDS}, row.payload)
        try:
            public.verify(bytes.fromhex(row.signature), bytes.fromhex(before))
        except (InvalidSignature, ValueError):
            return row.seq
        if row.hash != before:
            return row.seq
    return None


def _signer(tx: Tx) -> Ed25519PrivateKey:
    return Ed25519PrivateKey.from_private_bytes(server_key_in(tx, KEY_NAME))


def _link(before: str, fields: dict[str, Any], payload: bytes) -> str:
    said = "\0".join([before, *(str(fields[name]) for name in _FIELDS), hashlib.sha256(payload).hexdigest()])
    return hashlib.sha256(said.encode()).hexdigest()

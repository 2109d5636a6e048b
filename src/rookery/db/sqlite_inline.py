"""The short way for the record of a single read: committed on the event loop itself, if that needs no waiting.

Handing one small record to the writer thread and back costs more than committing it (measured: 140 µs against 40).
Where anybody else is writing, where the disk is slow, or where anything goes wrong, the record takes the ordinary way
through the writer.
"""

import contextlib
import sqlite3
import threading
import time
from collections.abc import Callable, Sequence
from typing import Protocol

import sqlalchemy as sa
from sqlalchemy import exc

from rookery.core.record import Record
from rookery.db.items import Item, Note
from rookery.db.tx import Tx

AT_MOST = 2
EVERY = 256
# A commit that held up the event loop for longer than this sends the next ones to the writer thread.
SLOW_S = 0.002
PAUSE = 500


class TryLock(Protocol):
    def try_acquire(self) -> bool: ...
    def release(self) -> None: ...
    def close(self) -> None: ...


class Inline:
    """Commits notes of reads in the calling thread. Never waits for a lock."""

    def __init__(
        self, engine: sa.Engine, lock: TryLock, seal: Callable[[Tx, Sequence[Record]], None], *, full: bool
    ) -> None:
        self._engine = engine
        self._lock = lock
        self._seal = seal
        self._turn = threading.Lock()
        self._full = full
        self._count = 0
        self._pause = 0
        self._connection: sa.Connection | None = None

    def commit(self, items: Sequence[Item]) -> bool:
        """Whether the items are committed. Only a few notes of reads qualify, and only while nobody else writes."""
        if len(items) > AT_MOST:
            return False
        if self._pause:
            self._pause -= 1
            return False
        notes = [item for item in items if isinstance(item, Note) and (self._full or not item.durable)]
        self._count += 1
        # Now and then one goes the long way, so that the writer keeps the log of pages short.
        if len(notes) < len(items) or self._count % EVERY == 0 or not self._turn.acquire(blocking=False):
            return False
        try:
            if not self._lock.try_acquire():
                return False
            started = time.monotonic()
            try:
                self._write([note.record for note in notes])
            finally:
                self._lock.release()
            if time.monotonic() - started > SLOW_S:
                self._pause = PAUSE
        except Exception:
            # The writer meets the same trouble and says what it is.
            self._disconnect()
            return False
        finally:
            self._turn.release()
        for note in notes:
            if not note.future.done():
                note.future.set_result(None)
        return True

    def _write(self, records: list[Record]) -> None:
        connection, driver = self._connect()
        driver.execute("BEGIN IMMEDIATE")
        try:
            self._seal(Tx(connection), records)
            driver.execute("COMMIT")
        finally:
            if driver.in_transaction:
                driver.execute("ROLLBACK")

    def _connect(self) -> tuple[sa.Connection, sqlite3.Connection]:
        if self._connection is None:
            self._connection = self._engine.connect()
            driver = self._connection.connection.driver_connection
            assert isinstance(driver, sqlite3.Connection)
            self._driver = driver
            # The writer thread is the one that may spend time on checkpoints and on waiting.
            sync = "FULL" if self._full else "NORMAL"
            for pragma in ("busy_timeout=0", f"synchronous={sync}", "wal_autocheckpoint=0"):
                driver.execute(f"PRAGMA {pragma}")
        return self._connection, self._driver

    def _disconnect(self) -> None:
        if self._connection is not None:
            with contextlib.suppress(exc.SQLAlchemyError, sqlite3.Error):
                self._connection.close()
        self._connection = None

    def close(self) -> None:
        with self._turn:
            self._disconnect()
            self._lock.close()

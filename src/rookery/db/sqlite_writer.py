"""The one thread that writes to SQLite: batches, savepoints, one commit for many callers."""

import contextlib
import logging
import queue
import sqlite3
import threading
from collections.abc import Callable, Sequence
from typing import Any

import sqlalchemy as sa
from sqlalchemy import exc

from rookery.core.errors import AuditUnavailable
from rookery.core.record import Record
from rookery.db.items import BATCH, Item, Note, WriteJob, settle_notes
from rookery.db.threads import Stopped, settle
from rookery.db.tx import Tx

log = logging.getLogger("rookery.writer")


class _Undone(Exception):
    """A job was stopped in the middle, so its whole batch was rolled back."""

    def __init__(self, job: WriteJob[Any]) -> None:
        self.job = job


class Writer:
    """Takes items in order and settles each one once it is committed."""

    def __init__(
        self,
        engine: sa.Engine,
        lock: Any,
        seal: Callable[[Tx, Sequence[Record]], None],
        replace: Callable[["Writer"], None],
    ) -> None:
        self.lost = False
        self._engine = engine
        self._lock = lock
        self._seal = seal
        self._replace = replace
        self._heir: Writer | None = None
        self._queue: queue.SimpleQueue[list[Item] | None] = queue.SimpleQueue()
        self._batch: list[Item] = []
        self._connection: sa.Connection | None = None
        self._raw: sqlite3.Connection | None = None
        self._full = True
        self._thread = threading.Thread(target=self._serve, name="rookery-write", daemon=True)
        self._thread.start()

    def put(self, items: list[Item]) -> None:
        """Take items in, to be committed together with whatever else waits."""
        self._queue.put(items)
        if self._heir is not None:
            self._pass_on(self._heir)

    def close(self) -> None:
        """Finish what is queued and end."""
        self._queue.put(None)
        self._thread.join(timeout=10)
        if not self.lost:
            self._lock.close()

    def hand_over(self, heir: "Writer") -> None:
        """Called from the watch when this thread hangs: undo its transaction, let `heir` do the rest."""
        self.lost = True
        if self._raw is not None:
            with contextlib.suppress(sqlite3.Error):
                self._raw.rollback()
                self._raw.close()
        self._lock.close()
        left: list[Item] = []
        for item in self._batch:
            if isinstance(item, Note) or item.reason is None:
                left.append(item)
            else:
                left += [Note(record, item.loop, durable=True) for record in item.records(item.stop_error())]
        heir.put(left)
        self._heir = heir
        self._pass_on(heir)

    def _pass_on(self, heir: "Writer") -> None:
        with contextlib.suppress(queue.Empty):
            while True:
                items = self._queue.get_nowait()
                if items is not None:
                    heir.put(items)

    def _serve(self) -> None:
        while not self.lost:
            items = self._queue.get()
            self._batch = batch = list[Item]()
            while items is not None:
                batch += items
                if len(batch) >= BATCH or self._queue.empty():
                    break
                items = self._queue.get()
            ending = items is None
            self._commit(batch)
            if ending:
                break
        self._disconnect()

    def _commit(self, batch: list[Item]) -> None:
        """Run the batch until it is committed or has failed as a whole; stopped jobs are taken out of it."""
        stopped: list[tuple[WriteJob[Any], Any, BaseException | None]] = []
        extra: list[Record] = []
        while batch or extra:
            try:
                outcomes = self._attempt(batch, extra)
            except _Undone as undone:
                if self.lost:
                    return
                self._disconnect()
                batch.remove(undone.job)
                stopped.append((undone.job, None, undone.job.stop_error()))
                extra += undone.job.records(undone.job.stop_error())
                continue
            except (exc.SQLAlchemyError, sqlite3.Error, OSError, ValueError) as error:
                if self.lost:
                    return
                self._disconnect()
                self._fail(batch, error)
                break
            if self.lost:
                return
            settle(outcomes)
            settle_notes(batch, None)
            break
        settle(stopped)

    def _attempt(self, batch: list[Item], extra: list[Record]) -> list[tuple[WriteJob[Any], Any, BaseException | None]]:
        outcomes: list[tuple[WriteJob[Any], Any, BaseException | None]] = []
        records: list[Record] = list(extra)
        with self._lock:
            connection, driver = self._connect()
            self._set_durability(driver, any(isinstance(item, WriteJob) or item.durable for item in batch))
            driver.execute("BEGIN IMMEDIATE")
            try:
                tx = Tx(connection)
                for item in batch:
                    if isinstance(item, Note):
                        records.append(item.record)
                        continue
                    value, error = self._one(item, tx, driver)
                    outcomes.append((item, value, error))
                    records += item.records(error)
                if records:
                    self._seal(tx, records)
                driver.execute("COMMIT")
            finally:
                if not self.lost:
                    connection.rollback()
                    if driver.in_transaction:
                        driver.execute("ROLLBACK")
        return outcomes

    def _one(self, job: WriteJob[Any], tx: Tx, driver: sqlite3.Connection) -> tuple[Any, BaseException | None]:
        job.on_abandoned = lambda: self._replace(self)
        if job.reason is not None:
            return None, job.stop_error()
        driver.execute("SAVEPOINT job")
        try:
            value = job.run(tx, driver.interrupt)
        except Stopped:
            raise _Undone(job) from None
        except Exception as error:
            driver.execute("ROLLBACK TO job")
            driver.execute("RELEASE job")
            return None, error
        driver.execute("RELEASE job")
        return value, None

    def _connect(self) -> tuple[sa.Connection, sqlite3.Connection]:
        if self._connection is None or self._raw is None:
            self._connection = self._engine.connect()
            driver = self._connection.connection.driver_connection
            assert isinstance(driver, sqlite3.Connection)
            self._raw = driver
            self._full = True
        return self._connection, self._raw

    def _disconnect(self) -> None:
        if self._connection is not None and not self.lost:
            with contextlib.suppress(exc.SQLAlchemyError, sqlite3.Error):
                self._connection.close()
        self._connection = self._raw = None

    def _set_durability(self, driver: sqlite3.Connection, full: bool) -> None:
        if full != self._full:
            driver.execute(f"PRAGMA synchronous={'FULL' if full else 'NORMAL'}")
            self._full = full

    def _fail(self, batch: list[Item], error: Exception) -> None:
        reason = str(getattr(error, "orig", None) or error)
        log.error("a batch could not be committed: %s", reason)
        failure = AuditUnavailable(
            f"nothing was done, since it could not be recorded: {reason}",
            hint="check the free space and the permissions of the database file; rookery doctor looks at both",
        )
        settle([(item, None, failure) for item in batch if isinstance(item, WriteJob)])
        settle_notes(batch, failure)

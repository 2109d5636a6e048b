"""The one thread that writes to SQLite: batches, savepoints, one commit for many callers."""

import contextlib
import logging
import queue
import sqlite3
import threading
import time
from collections import deque
from collections.abc import Callable, Generator, Sequence
from typing import Any

import sqlalchemy as sa
from sqlalchemy import exc

from rookery.core.errors import AuditUnavailable, ServiceUnavailable
from rookery.core.record import Record
from rookery.db.items import BATCH, Item, Note, WriteJob, settle_notes
from rookery.db.threads import WATCH, Job, Lost, Stopped, StopReason, settle
from rookery.db.tx import Tx

log = logging.getLogger("rookery.writer")
TURN_S = 0.1
"""How long a batch may go on taking jobs: other processes want to write as well."""
WAIT_S = 30.0
"""How long the record of a call may wait for another process, which may have been stopped while it was writing."""
Outcome = tuple[WriteJob[Any], Any, BaseException | None]


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
        wake: Callable[[set[str]], None],
    ) -> None:
        self.lost = False
        self._engine = engine
        self._lock = lock
        self._seal = seal
        self._replace = replace
        self._wake = wake
        self._heir: Writer | None = None
        self._ended = False
        self._queue: queue.SimpleQueue[list[Item] | None] = queue.SimpleQueue()
        # What is neither committed nor refused: the batch under way, items that go one by one, and jobs of the batch
        # that were stopped, with the records of that.
        self._batch: list[Item] = []
        self._alone: deque[Item] = deque()
        self._stopped: list[Outcome] = []
        self._extra: list[Record] = []
        self._connection: sa.Connection | None = None
        self._raw: sqlite3.Connection | None = None
        self._full = True
        self._thread = threading.Thread(target=self._serve, name="rookery-write", daemon=True)
        self._thread.start()

    def put(self, items: list[Item]) -> None:
        """Take items in, to be committed together with whatever else waits."""
        self._queue.put(items)
        # This thread may have been left, or have ended, since the caller chose it.
        if self._heir is not None or self._ended:
            self._pass_on()

    def close(self) -> None:
        """Finish what is queued and end."""
        self._queue.put(None)
        self._thread.join(timeout=10)
        if not self.lost:
            self._lock.close()

    def hand_over(self, heir: "Writer") -> None:
        """Called when this thread hangs in a job: undo its transaction, let `heir` do the rest."""
        if self._raw is not None:
            _undo(self._raw)
        self._lock.close()
        left: list[Item] = []
        for item in (*self._batch, *self._alone):
            if isinstance(item, WriteJob) and item.reason is not None:
                self._stop(item)
            else:
                left.append(item)
        if self._stopped:
            loop = self._stopped[0][0].loop
            left += [Note(record, loop, durable=True) for record in self._extra]
        heir.put(_restarted(left))
        settle(self._stopped)
        self._heir = heir
        self._pass_on()

    def _pass_on(self) -> None:
        with contextlib.suppress(queue.Empty):
            while True:
                items = self._queue.get_nowait()
                if items is not None and self._heir is not None:
                    self._heir.put(items)
                elif items is not None:
                    refuse(items, ServiceUnavailable("the database is closed", hint="try again once the server runs"))

    def _serve(self) -> None:
        ending = False
        while not ending or self._alone:
            ending = self._take() or ending
            try:
                self._commit()
            except Lost:
                return
            except (Exception, Stopped) as error:
                self._disconnect()
                self._fail(error)
        self._disconnect()
        self._ended = True
        self._pass_on()

    def _take(self) -> bool:
        """Put the next batch together; say whether it is the last."""
        if self._alone:
            self._batch = [self._alone.popleft()]
            return False
        items = self._queue.get()
        self._batch = batch = list[Item]()
        while items is not None:
            batch += items
            if len(batch) >= BATCH or self._queue.empty():
                break
            items = self._queue.get()
        return items is None

    def _commit(self) -> None:
        """Run the batch until all of it is committed; stopped jobs are taken out of it. Raises if it fails."""
        while self._batch or self._extra:
            try:
                outcomes, handled = self._attempt(self._batch)
            except _Undone as undone:
                self._disconnect()
                self._batch.remove(undone.job)
                self._stop(undone.job)
                _restarted(self._batch)
                continue
            done, self._batch, self._extra = self._batch[:handled], self._batch[handled:], []
            settle(outcomes)
            settle_notes(done, None)
        stopped, self._stopped = self._stopped, []
        settle(stopped)

    def _stop(self, job: WriteJob[Any]) -> None:
        error = job.stop_error()
        self._stopped.append((job, None, error))
        self._extra += job.records(error)

    def _attempt(self, batch: list[Item]) -> tuple[list[Outcome], int]:
        """Commit as much of the batch as fits into one turn; say what became of the jobs, and how much that was."""
        outcomes: list[Outcome] = []
        records: list[Record] = list(self._extra)
        handled = 0
        with self._turn():
            connection, driver = self._connect()
            durable = bool(records) or any(isinstance(item, WriteJob) or item.durable for item in batch)
            self._set_durability(driver, durable)
            driver.execute("BEGIN IMMEDIATE")
            try:
                tx, until = Tx(connection), time.monotonic() + TURN_S
                for item in batch:
                    if isinstance(item, Note):
                        records.append(item.record)
                    elif outcomes and time.monotonic() > until:
                        break
                    else:
                        value, error = self._one(item, tx, driver)
                        outcomes.append((item, value, error))
                        records += item.records(error)
                    handled += 1
                if records:
                    self._seal(tx, records)
                driver.execute("COMMIT")
            except Exception:
                _roll_back(connection, driver)
                raise
            # SQLAlchemy began a transaction of its own accord and has not seen the end of it.
            _roll_back(connection, driver)
        self._wake(tx.woken)
        return outcomes, handled

    @contextlib.contextmanager
    def _turn(self) -> Generator[None]:
        """Hold the lock of the database. Whoever waits for a record is refused if that takes too long."""
        if not self._lock.try_acquire():
            wait = _Wait(self._refuse_notes)
            WATCH.add(wait)
            try:
                self._lock.acquire()
            finally:
                WATCH.forget(wait)
        try:
            yield
        finally:
            self._lock.release()

    def _refuse_notes(self) -> None:
        """Called from the watch. Jobs have time limits of their own, which the watch looks after as well."""
        error = self._unrecorded(f"another process has held the database for more than {WAIT_S:g} s")
        settle_notes(list(self._batch), error)
        waiting: list[list[Item]] = []
        with contextlib.suppress(queue.Empty):
            while (items := self._queue.get_nowait()) is not None:
                waiting.append(items)
                settle_notes(items, error)
            self._queue.put(None)
        for items in waiting:
            self._queue.put([item for item in items if isinstance(item, WriteJob)])

    def _one(self, job: WriteJob[Any], tx: Tx, driver: sqlite3.Connection) -> tuple[Any, BaseException | None]:
        job.on_abandoned = self._abandoned
        if job.reason is not None:
            return None, job.stop_error()
        driver.execute("SAVEPOINT job")
        try:
            value = job.run(tx, driver.interrupt)
        except Stopped:
            raise _Undone(job) from None
        except Exception as error:
            if not driver.in_transaction:
                # SQLite itself has undone everything, as it does when the disk is full.
                raise
            driver.execute("ROLLBACK TO job")
            driver.execute("RELEASE job")
            return None, error
        driver.execute("RELEASE job")
        return value, None

    def _abandoned(self, job: Job[Any]) -> None:
        self._replace(self)

    def _connect(self) -> tuple[sa.Connection, sqlite3.Connection]:
        if self._connection is None or self._raw is None:
            self._connection = self._engine.connect()
            driver = self._connection.connection.driver_connection
            assert isinstance(driver, sqlite3.Connection)
            self._raw = driver
            self._full = True
        return self._connection, self._raw

    def _disconnect(self) -> None:
        if self._connection is not None:
            with contextlib.suppress(exc.SQLAlchemyError, sqlite3.Error):
                self._connection.close()
        self._connection = self._raw = None

    def _set_durability(self, driver: sqlite3.Connection, full: bool) -> None:
        if full != self._full:
            driver.execute(f"PRAGMA synchronous={'FULL' if full else 'NORMAL'}")
            self._full = full

    def _fail(self, error: BaseException) -> None:
        batch, self._batch = self._batch, []
        if len(batch) > 1 and isinstance(error, UnicodeError | sqlite3.DataError):
            # One of the records cannot be stored, whichever it is. The others must not suffer for it.
            self._alone.extend(_restarted(batch))
            return
        failure = self._unrecorded(str(getattr(error, "orig", None) or error) or type(error).__name__)
        stopped = [job for job, _, _ in self._stopped]
        self._stopped, self._extra = [], []
        refuse([*batch, *stopped], failure)

    def _unrecorded(self, reason: str) -> AuditUnavailable:
        log.error("a batch could not be committed: %s", reason)
        return AuditUnavailable(
            f"nothing was done, since it could not be recorded: {reason}",
            hint="check the free space and the permissions of the database file; rookery doctor looks at both",
        )


class _Wait:
    """Waiting for the lock, looked after by the watch like a job."""

    reason = None

    def __init__(self, give_up: Callable[[], None]) -> None:
        self.deadline = time.monotonic() + WAIT_S
        self._give_up = give_up

    def stop(self, reason: StopReason) -> None:
        self._give_up()


def _roll_back(connection: sa.Connection, driver: sqlite3.Connection) -> None:
    with contextlib.suppress(exc.SQLAlchemyError, sqlite3.Error):
        connection.rollback()
        if driver.in_transaction:
            driver.execute("ROLLBACK")


def refuse(items: Sequence[Item], error: Exception) -> None:
    """Tell every caller that nothing was done."""
    settle([(item, None, error) for item in items if isinstance(item, WriteJob)])
    settle_notes(items, error)


def _undo(driver: sqlite3.Connection) -> None:
    """Roll back and close the connection of a thread that may still be using it."""
    # What the thread does between the rollback and the closing must not be committed by itself.
    for step in (lambda: driver.execute("PRAGMA query_only=ON"), driver.rollback, driver.close):
        try:
            step()
        except sqlite3.Error as error:
            log.warning("a hanging transaction could not be undone at once: %s", error)


def _restarted(items: list[Item]) -> list[Item]:
    """Items that have to run again through no fault of their own, with their time limits started anew."""
    for item in items:
        if isinstance(item, WriteJob):
            item.restart()
    return items

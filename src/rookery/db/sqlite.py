"""SQLite: many readers, one writer thread per process, one writing process at a time.

Writers of several processes would starve each other under busy_timeout alone (measured: "database is locked" and
stalls of seconds), so every write transaction is `BEGIN IMMEDIATE` inside an advisory file lock, which the kernel
frees when its holder dies. The writer thread takes whatever has been asked for meanwhile into one transaction, a
savepoint each, so that many callers share one commit.
"""

import asyncio
import contextlib
import os
import sqlite3
import threading
import time
from collections.abc import Awaitable, Callable, Generator
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

import sqlalchemy as sa
from sqlalchemy import event
from sqlalchemy.engine import ExceptionContext
from sqlalchemy.pool import NullPool

from rookery.core.call import Records
from rookery.core.errors import DatabaseError, ServiceUnavailable
from rookery.core.record import Record
from rookery.db.database import Database, new_backup_file
from rookery.db.file_lock import FileLock
from rookery.db.items import Item, Note, Outbox, WriteJob
from rookery.db.pool import Pool
from rookery.db.sqlite_inline import Inline
from rookery.db.sqlite_reader import Reader, raw
from rookery.db.sqlite_writer import Writer, refuse
from rookery.db.threads import WATCH, Job, outcome_of
from rookery.db.tx import Tx
from rookery.db.wakes import Listener, Wakes

T = TypeVar("T")
READERS = 8
POLL_S = 0.25
"""How often whoever waits for something looks whether another process has committed."""
BUSY_MS = 5000
PREPARED = 1000
"""So many statements a connection keeps prepared: a fleet at work asks more than the 128 that are usual."""


def _configure(connection: sqlite3.Connection, _: object) -> None:
    connection.isolation_level = None
    connection.execute(f"PRAGMA busy_timeout={BUSY_MS}")
    _use_wal(connection)
    for pragma in (
        "synchronous=FULL",
        "foreign_keys=ON",
        # Without it INSERT OR REPLACE would delete a row of an append-only table and no trigger would fire.
        "recursive_triggers=ON",
    ):
        connection.execute(f"PRAGMA {pragma}")


def _use_wal(connection: sqlite3.Connection) -> None:
    """Switch to WAL. Of two processes that do so first at the same moment one is refused at once, timeout or not."""
    deadline = time.monotonic() + BUSY_MS / 1000
    while True:
        try:
            connection.execute("PRAGMA journal_mode=WAL")
            return
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() > deadline:
                raise
            time.sleep(0.01)


def _keep_open(context: ExceptionContext) -> None:
    # SQLAlchemy would close the connection under a job that is stopped. SQLite keeps a closed connection, with its
    # locks, for as long as a statement of it exists, so it has to be rolled back first.
    if not isinstance(context.original_exception, Exception):
        context.is_disconnect = False


class SqliteDatabase(Database):
    """A database in one file. Safe for any number of processes on one machine."""

    def __init__(self, url: str, *, full_reads: bool = False) -> None:
        self.url = url
        self.path = sa.make_url(url).database or ""
        self._full_reads = full_reads
        folder = os.path.dirname(self.path)
        if folder:
            os.makedirs(folder, mode=0o700, exist_ok=True)
        self._engine = sa.create_engine(
            url,
            poolclass=NullPool,
            # Everyone rolls back before closing; SQLAlchemy would log an error for a connection that is closed already.
            pool_reset_on_return=None,
            hide_parameters=True,
            connect_args={"check_same_thread": False, "timeout": BUSY_MS / 1000, "cached_statements": PREPARED},
        )
        event.listen(self._engine, "connect", _configure)
        event.listen(self._engine, "handle_error", _keep_open)
        self._pool = Pool("read", READERS, lambda: Reader(self._engine))
        self._writer: Writer | None = None
        self._inline = Inline(
            self._engine, FileLock(self.path), lambda tx, records: self.seal(tx, records), full=full_reads
        )
        self._lock = threading.Lock()
        self._outboxes: WeakKeyDictionary[asyncio.AbstractEventLoop, Outbox] = WeakKeyDictionary()
        self._peek: sqlite3.Connection | None = None
        self._wakes = Wakes()
        self._poll: threading.Thread | None = None
        self._closing = threading.Event()
        self._closed = False

    async def read(self, work: Callable[[Any], T], *, timeout_s: float = 60.0) -> T:
        job = Job(work, timeout_s, asyncio.get_running_loop())
        self._pool.submit(job)
        return await outcome_of(job)

    async def write(
        self,
        work: Callable[[Any], T],
        *,
        records: Records,
        timeout_s: float = 60.0,
        on_commit: Callable[[], None] | None = None,
    ) -> T:
        job = WriteJob(work, records, timeout_s, asyncio.get_running_loop())
        job.on_success = on_commit
        WATCH.add(job)
        self._outbox(job.loop).add(job)
        return await outcome_of(job)

    def record(self, record: Record) -> Awaitable[None]:
        note = Note(record, asyncio.get_running_loop(), durable=self._full_reads or record.effect != "read")
        self._outbox(note.loop).add(note)
        return note.future

    def _outbox(self, loop: asyncio.AbstractEventLoop) -> Outbox:
        box = self._outboxes.get(loop)
        if box is None:
            box = self._outboxes[loop] = Outbox(loop, self._put)
        return box

    def _put(self, items: list[Item]) -> None:
        if self._closed:
            refuse(items, ServiceUnavailable("the database is closed", hint="try again once the server runs"))
        elif not self._inline.commit(items):
            self._ready_writer().put(items)

    def _ready_writer(self) -> Writer:
        writer = self._writer
        if writer is None or writer.lost:
            with self._lock:
                if self._writer is None:
                    self._writer = self._new_writer()
                writer = self._writer
        return writer

    def _new_writer(self) -> Writer:
        return Writer(
            self._engine,
            FileLock(self.path),
            lambda tx, records: self.seal(tx, records),
            self._replace_writer,
            self._wakes.tell,
        )

    def _replace_writer(self, lost: Writer) -> None:
        """Called from the watch, which must not wait for the hanging thread's statement to end."""
        with self._lock:
            lost.lost = True
            heir = self._writer = self._new_writer()
        threading.Thread(target=lost.hand_over, args=(heir,), name="rookery-write-rescue", daemon=True).start()

    def direct(self, work: Callable[[Tx], T], *, write: bool = False) -> T:
        with self._engine.connect() as connection:
            driver = raw(connection)
            with self._file_lock() if write else contextlib.nullcontext():
                driver.execute("BEGIN IMMEDIATE" if write else "BEGIN")
                try:
                    tx = Tx(connection)
                    value = work(tx)
                    if write:
                        driver.execute("COMMIT")
                        self._wakes.tell(tx.woken)
                    return value
                finally:
                    connection.rollback()
                    if driver.in_transaction:
                        driver.execute("ROLLBACK")

    @contextlib.contextmanager
    def _file_lock(self) -> Generator[None]:
        lock = FileLock(self.path)
        try:
            lock.acquire()
            yield
        finally:
            lock.close()

    def epoch(self, name: str) -> int:
        try:
            with self._lock:
                if self._peek is None:
                    self._peek = sqlite3.connect(self.path, check_same_thread=False, isolation_level=None)
                    self._peek.execute("PRAGMA query_only=ON")
                row = self._peek.execute("SELECT value FROM epochs WHERE name = ?", (name,)).fetchone()
        except sqlite3.Error as error:
            raise DatabaseError(f"the database cannot be read: {error}", hint="rookery doctor looks at it") from error
        return row[0] if row else 0

    def on_wake(self, listener: Listener) -> Callable[[], None]:
        with self._lock:
            if self._poll is None and not self._closed:
                self._poll = threading.Thread(target=self._watch, name="rookery-watch", daemon=True)
                self._poll.start()
        return self._wakes.add(listener)

    def _watch(self) -> None:
        """Notice commits of other processes: a question to the file's header, some microseconds each."""
        with contextlib.closing(sqlite3.connect(self.path, isolation_level=None)) as eye:
            # The first look tells as well: what came between the listener's own look and ours would be overlooked.
            last: int | None = None
            while not self._closing.wait(POLL_S):
                with contextlib.suppress(sqlite3.Error):
                    seen = eye.execute("PRAGMA data_version").fetchone()[0]
                    if seen != last:
                        self._wakes.tell([""])
                    last = seen

    def backup(self, folder: str, label: str) -> str | None:
        if not self.direct(lambda tx: tx.scalar(sa.text("SELECT count(*) FROM sqlite_master"))):
            return None
        target = new_backup_file(folder, label, "db")
        with (
            contextlib.closing(sqlite3.connect(self.path)) as source,
            contextlib.closing(sqlite3.connect(target)) as copy,
        ):
            source.backup(copy)
        return target

    def close(self) -> None:
        if self._closed:
            return
        for box in list(self._outboxes.values()):
            box.flush()
        self._closed = True
        self._closing.set()
        self._pool.close()
        with self._lock:
            writer, peek, poll = self._writer, self._peek, self._poll
        if poll is not None:
            poll.join(timeout=5)
        if writer is not None:
            writer.close()
        self._inline.close()
        if peek is not None:
            peek.close()
        self._engine.dispose()

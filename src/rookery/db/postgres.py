"""PostgreSQL: parallel transactions, any number of servers and workers on any number of machines."""

import asyncio
import contextlib
import logging
import os
import queue
import shutil
import subprocess
import threading
import time
from collections.abc import Awaitable, Callable, Mapping
from glob import glob
from typing import Any, TypeVar

import psycopg
import sqlalchemy as sa
from sqlalchemy import exc

from rookery.core.call import Records
from rookery.core.errors import ConfigurationError, DatabaseError, RookeryError, ServiceUnavailable
from rookery.core.record import Record
from rookery.db.database import Database, new_backup_file
from rookery.db.items import BATCH, Note, WriteJob, settle_notes
from rookery.db.pool import Pool
from rookery.db.postgres_executor import CHANNEL, WAKES, Executor, announce, begin, unrecorded
from rookery.db.threads import Job, outcome_of
from rookery.db.tx import Tx
from rookery.db.wakes import Listener, Wakes

T = TypeVar("T")
THREADS = 12
TICK_S = 0.5
PATIENCE: dict[str, Any] = {"connect_timeout": 10, "tcp_user_timeout": 30_000}
"""A server that has vanished without a word would otherwise be waited for many minutes."""
DERIVED = "*_pgvector"
"""Tables that a server makes of others. They need an extension that is not everywhere, so no backup has them."""
IDLE_MS = 120_000
"""A process that was stopped in the middle of a transaction would keep its locks, and everyone who waits for them."""
log = logging.getLogger("rookery.postgres")


def driver_url(url: str) -> sa.URL:
    """The address with the driver that we use."""
    return sa.make_url(url).set(drivername="postgresql+psycopg")


def _limits(url: str) -> dict[str, Any]:
    """What the server is told at the start of a connection, unless the address says something itself."""
    own = sa.make_url(url).query.get("options")
    return {} if own else {"options": f"-c idle_in_transaction_session_timeout={IDLE_MS}"}


def find_program(name: str) -> str | None:
    """A PostgreSQL program on the path, or where Debian keeps it."""
    return shutil.which(name) or next(iter(sorted(glob(f"/usr/lib/postgresql/*/bin/{name}"), reverse=True)), None)


class PostgresDatabase(Database):
    """A database that many machines share."""

    def __init__(self, url: str) -> None:
        self.url = url
        # Threads bound the number of connections; a thread that hangs keeps its own until it comes back.
        self.engine = sa.create_engine(
            driver_url(url),
            pool_size=THREADS + 4,
            max_overflow=-1,
            pool_pre_ping=True,
            hide_parameters=True,
            connect_args=PATIENCE | _limits(url),
        )
        self.epochs: dict[str, int] = {}
        self._pool = Pool("pg", THREADS, lambda: Executor(self))
        self._notes: queue.SimpleQueue[Note | None] = queue.SimpleQueue()
        self._wakes = Wakes()
        self._lock = threading.Lock()
        self._threads: list[threading.Thread] = []
        self._closing = threading.Event()

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
        self._ensure_threads()
        job = WriteJob(work, records, timeout_s, asyncio.get_running_loop())
        job.on_success = on_commit
        self._pool.submit(job)
        return await outcome_of(job)

    def record(self, record: Record) -> Awaitable[None]:
        self._ensure_threads()
        note = Note(record, asyncio.get_running_loop(), durable=True)
        self._notes.put(note)
        if self._closing.is_set():
            self._refuse_notes()
        return note.future

    def commit_records(self, records: list[Record]) -> None:
        """Write records in a transaction of their own."""
        if not records:
            return
        try:
            with self.engine.connect() as connection:
                try:
                    with connection.begin():
                        self.seal(Tx(connection), records)
                finally:
                    self.let_go(connection)
        except Exception as error:
            raise unrecorded(error) from error

    def direct(self, work: Callable[[Tx], T], *, write: bool = False) -> T:
        with self.engine.connect() as connection:
            try:
                begin(connection, write=write)
                tx = Tx(connection)
                value = work(tx)
                if write:
                    announce(tx)
                    connection.commit()
                    self.learn(tx.bumped)
                return value
            finally:
                self.let_go(connection)

    def let_go(self, connection: sa.Connection) -> None:
        """Close the connection of who comes late: once the pool is given up, nobody else would."""
        if self._closing.is_set():
            connection.invalidate()

    def learn(self, epochs: Mapping[str, int]) -> None:
        """Take over epochs that are newer than those we know."""
        with self._lock:
            for name, value in epochs.items():
                self.epochs[name] = max(value, self.epochs.get(name, 0))

    def epoch(self, name: str) -> int:
        self._ensure_threads()
        return self.epochs.get(name, 0)

    def on_wake(self, listener: Listener) -> Callable[[], None]:
        self._ensure_threads()
        return self._wakes.add(listener)

    def backup(self, folder: str, label: str) -> str | None:
        tables = sa.text("SELECT count(*) FROM pg_tables WHERE schemaname = current_schema()")
        if not self.direct(lambda tx: tx.scalar(tables)):
            return None
        program = find_program("pg_dump")
        if program is None:
            raise ConfigurationError(
                "pg_dump is not installed, so no backup can be made", hint="install postgresql-client"
            )
        target = new_backup_file(folder, label, "dump")
        url = sa.make_url(self.url).set(drivername="postgresql")
        # Everyone on the machine can read a command line.
        secret = {"PGPASSWORD": str(url.password)} if url.password is not None else {}
        address = url._replace(password=None).render_as_string(hide_password=False)
        done = subprocess.run(
            [program, "--format=custom", f"--exclude-table={DERIVED}", "--file", target, "--dbname", address],
            capture_output=True,
            text=True,
            check=False,
            env={**os.environ, **secret},
        )
        if done.returncode != 0:
            os.unlink(target)
            raise DatabaseError(
                f"pg_dump failed: {done.stderr.strip()}", hint="its version must not be below the server's"
            )
        return target

    def close(self) -> None:
        if self._closing.is_set():
            return
        self._pool.close()
        self._closing.set()
        self._notes.put(None)
        # Wakes the thread that listens, which would otherwise notice half a second later.
        with contextlib.suppress(Exception):
            self.direct(lambda tx: tx.scalar(sa.select(sa.func.pg_notify(CHANNEL, ""))), write=True)
        for thread in self._threads:
            thread.join(timeout=5)
        self._refuse_notes()
        if self.tick is not None:
            with contextlib.suppress(Exception):
                self.direct(self.tick, write=True)
        self.engine.dispose()

    def _ensure_threads(self) -> None:
        if self._threads or self._closing.is_set():
            return
        try:
            self._refresh_epochs()
        except Exception as error:
            log.warning("the database is out of reach: %s", error)
        with self._lock:
            if self._threads:
                return
            for target, name in ((self._write_notes, "notes"), (self._tend, "tend")):
                thread = threading.Thread(target=target, name=f"rookery-pg-{name}", daemon=True)
                thread.start()
                self._threads.append(thread)

    def _refresh_epochs(self) -> None:
        rows = self.direct(lambda tx: tx.all(sa.text("SELECT name, value FROM epochs")))
        self.learn({row.name: row.value for row in rows})

    def _write_notes(self) -> None:
        """Records that belong to no transaction share one commit with all that wait."""
        ending = False
        while not ending:
            note = self._notes.get()
            batch: list[Note] = []
            while note is not None:
                batch.append(note)
                if len(batch) >= BATCH or self._notes.empty():
                    break
                note = self._notes.get()
            ending = note is None
            self._settle_together(batch)

    def _settle_together(self, batch: list[Note]) -> None:
        try:
            self.commit_records([note.record for note in batch])
        except RookeryError as error:
            if len(batch) > 1 and isinstance(error.__cause__, exc.DataError | UnicodeError):
                # One of them cannot be stored, whichever it is. The others must not suffer for it.
                for note in batch:
                    self._settle_together([note])
                return
            settle_notes(batch, error)
        else:
            settle_notes(batch, None)

    def _refuse_notes(self) -> None:
        """Answer notes that came too late for the thread that has ended."""
        left: list[Note] = []
        with contextlib.suppress(queue.Empty):
            while True:
                note = self._notes.get_nowait()
                if note is not None:
                    left.append(note)
        settle_notes(left, ServiceUnavailable("the database is closed", hint="try again once the server runs again"))

    def _tend(self) -> None:
        """Hear of changes that other processes made, and chain the audit log."""
        listener: psycopg.Connection[Any] | None = None
        due = time.monotonic() + TICK_S
        while not self._closing.is_set():
            try:
                if listener is None:
                    listener = self._listen()
                    # What was told while nobody listened is lost.
                    self._wakes.tell([""])
                stale = self._hear(listener, due)
                if stale or time.monotonic() >= due:
                    due = time.monotonic() + TICK_S
                    self._refresh_epochs()
                    if self.tick is not None:
                        self.direct(self.tick, write=True)
            except Exception as error:
                log.warning("the database is out of reach: %s", error)
                if listener is not None:
                    listener.close()
                listener = None
                self._closing.wait(TICK_S)
        if listener is not None:
            listener.close()

    def _hear(self, listener: psycopg.Connection[Any], until: float) -> bool:
        """Pass on what others tell, until something was told or the time has come; whether an epoch was among it."""
        told = list(listener.notifies(timeout=max(0.0, until - time.monotonic()), stop_after=1))
        self._wakes.tell(note.payload for note in told if note.channel == WAKES)
        return any(note.channel == CHANNEL for note in told)

    def _listen(self) -> psycopg.Connection[Any]:
        address = sa.make_url(self.url).set(drivername="postgresql").render_as_string(hide_password=False)
        listener: psycopg.Connection[Any] = psycopg.connect(address, autocommit=True, **PATIENCE)
        try:
            listener.execute(f"LISTEN {CHANNEL}")
            listener.execute(f"LISTEN {WAKES}")
        except BaseException:
            listener.close()
            raise
        return listener

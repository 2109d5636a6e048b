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
from collections.abc import Awaitable, Callable
from glob import glob
from typing import Any, TypeVar, cast

import psycopg
import sqlalchemy as sa
from sqlalchemy import exc

from rookery.core.call import Records
from rookery.core.errors import AuditUnavailable, ConfigurationError, DatabaseError, RookeryError
from rookery.core.record import Record
from rookery.db.database import Database
from rookery.db.items import BATCH, Note, WriteJob, settle_notes
from rookery.db.pool import Pool
from rookery.db.threads import Job, Stopped, outcome_of
from rookery.db.tx import Tx

T = TypeVar("T")
THREADS = 12
TICK_S = 0.5
RETRIES = 3
TRY_AGAIN = {"40001", "40P01"}  # serialization failure, deadlock
CHANNEL = "rookery_epoch"
log = logging.getLogger("rookery.postgres")


def driver_url(url: str) -> sa.URL:
    """The address with the driver that we use."""
    return sa.make_url(url).set(drivername="postgresql+psycopg")


def find_program(name: str) -> str | None:
    """A PostgreSQL program on the path, or where Debian keeps it."""
    return shutil.which(name) or next(iter(sorted(glob(f"/usr/lib/postgresql/*/bin/{name}"), reverse=True)), None)


class _Executor:
    """Runs one job in one transaction of a pooled connection."""

    def __init__(self, database: "PostgresDatabase") -> None:
        self._database = database

    def run(self, job: Job[Any]) -> Any:
        for attempt in range(RETRIES):
            try:
                return self._once(job)
            except exc.OperationalError as error:
                if getattr(error.orig, "sqlstate", None) in TRY_AGAIN and attempt + 1 < RETRIES:
                    continue
                raise DatabaseError(f"the database failed: {error.orig}", hint="rookery doctor looks at it") from error
        raise AssertionError("unreachable")

    def _once(self, job: Job[Any]) -> Any:
        write = isinstance(job, WriteJob)
        with self._database.engine.connect() as connection:
            if not write:
                connection = connection.execution_options(postgresql_readonly=True)
            driver = cast("psycopg.Connection[Any]", connection.connection.driver_connection)
            tx = Tx(connection)
            try:
                value = job.run(tx, lambda: driver.cancel_safe(timeout=1))
            except Stopped:
                connection.invalidate()
                if write:
                    self._database.commit_records(job.records(job.stop_error()))
                raise
            except Exception as error:
                connection.rollback()
                if write and getattr(getattr(error, "orig", None), "sqlstate", None) not in TRY_AGAIN:
                    self._database.commit_records(job.records(error))
                raise
            if write:
                self._finish(connection, tx, job)
        return value

    def _finish(self, connection: sa.Connection, tx: Tx, job: WriteJob[Any]) -> None:
        try:
            self._database.seal(tx, job.records(None))
            for name in tx.bumped:
                connection.execute(sa.text("SELECT pg_notify(:channel, :name)"), {"channel": CHANNEL, "name": name})
            connection.commit()
        except exc.SQLAlchemyError as error:
            raise unrecorded(error) from error
        self._database.epochs.update(tx.bumped)

    def close(self) -> None:
        return None


def unrecorded(error: Exception) -> RookeryError:
    """The refusal of a call whose record could not be written."""
    reason = str(getattr(error, "orig", None) or error).strip().splitlines()[0]
    log.error("a transaction could not be recorded: %s", reason)
    return AuditUnavailable(
        f"nothing was done, since it could not be recorded: {reason}",
        hint="check that PostgreSQL runs, has space and lets this user write; rookery doctor looks at it",
    )


class PostgresDatabase(Database):
    """A database that many machines share."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.engine = sa.create_engine(driver_url(url), pool_size=THREADS + 4, max_overflow=4, pool_pre_ping=True)
        self.epochs: dict[str, int] = {}
        self._pool = Pool("pg", THREADS, lambda: _Executor(self))
        self._notes: queue.SimpleQueue[Note | None] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._threads: list[threading.Thread] = []
        self._closing = threading.Event()

    async def read(self, work: Callable[[Any], T], *, timeout_s: float = 60.0) -> T:
        job = Job(work, timeout_s, asyncio.get_running_loop())
        self._pool.submit(job)
        return await outcome_of(job)

    async def write(self, work: Callable[[Any], T], *, records: Records, timeout_s: float = 60.0) -> T:
        job = WriteJob(work, records, timeout_s, asyncio.get_running_loop())
        self._pool.submit(job)
        return await outcome_of(job)

    def record(self, record: Record) -> Awaitable[None]:
        self._ensure_threads()
        note = Note(record, asyncio.get_running_loop(), durable=True)
        self._notes.put(note)
        return note.future

    def commit_records(self, records: list[Record]) -> None:
        """Write records in a transaction of their own."""
        if not records:
            return
        try:
            with self.engine.begin() as connection:
                self.seal(Tx(connection), records)
        except exc.SQLAlchemyError as error:
            raise unrecorded(error) from error

    def direct(self, work: Callable[[Tx], T], *, write: bool = False) -> T:
        with self.engine.connect() as connection:
            if not write:
                connection = connection.execution_options(postgresql_readonly=True)
            tx = Tx(connection)
            value = work(tx)
            if write:
                for name in tx.bumped:
                    connection.execute(sa.text("SELECT pg_notify(:channel, :name)"), {"channel": CHANNEL, "name": name})
                connection.commit()
                self.epochs.update(tx.bumped)
            return value

    def epoch(self, name: str) -> int:
        self._ensure_threads()
        return self.epochs.get(name, 0)

    def backup(self, folder: str, label: str) -> str | None:
        tables = sa.text("SELECT count(*) FROM pg_tables WHERE schemaname = current_schema()")
        if not self.direct(lambda tx: tx.scalar(tables)):
            return None
        program = find_program("pg_dump")
        if program is None:
            raise ConfigurationError(
                "pg_dump is not installed, so no backup can be made", hint="install postgresql-client"
            )
        os.makedirs(folder, mode=0o700, exist_ok=True)
        stamp = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime())
        target = os.path.join(folder, f"rookery-{stamp}-{os.getpid()}-{label}.dump")
        address = sa.make_url(self.url).set(drivername="postgresql").render_as_string(hide_password=False)
        done = subprocess.run(
            [program, "--format=custom", "--file", target, "--dbname", address],
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode != 0:
            raise DatabaseError(
                f"pg_dump failed: {done.stderr.strip()}", hint="its version must not be below the server's"
            )
        os.chmod(target, 0o600)
        return target

    def close(self) -> None:
        if self._closing.is_set():
            return
        self._closing.set()
        self._pool.close()
        self._notes.put(None)
        for thread in self._threads:
            thread.join(timeout=5)
        if self.tick is not None:
            with contextlib.suppress(exc.SQLAlchemyError):
                self.direct(self.tick, write=True)
        self.engine.dispose()

    def _ensure_threads(self) -> None:
        if self._threads:
            return
        with self._lock:
            if self._threads:
                return
            self._refresh_epochs()
            for target, name in ((self._write_notes, "notes"), (self._tend, "tend")):
                thread = threading.Thread(target=target, name=f"rookery-pg-{name}", daemon=True)
                thread.start()
                self._threads.append(thread)

    def _refresh_epochs(self) -> None:
        rows = self.direct(lambda tx: tx.all(sa.text("SELECT name, value FROM epochs")))
        self.epochs.update({row.name: row.value for row in rows})

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
            if not batch:
                continue
            try:
                self.commit_records([item.record for item in batch])
            except RookeryError as error:
                settle_notes(batch, error)
            else:
                settle_notes(batch, None)

    def _tend(self) -> None:
        """Hear of changes that other processes made, and chain the audit log."""
        listener: psycopg.Connection[Any] | None = None
        while not self._closing.is_set():
            try:
                if listener is None:
                    address = sa.make_url(self.url).set(drivername="postgresql").render_as_string(hide_password=False)
                    listener = psycopg.connect(address, autocommit=True)
                    listener.execute(f"LISTEN {CHANNEL}")
                for _ in listener.notifies(timeout=TICK_S, stop_after=1):
                    pass
                self._refresh_epochs()
                if self.tick is not None:
                    self.direct(self.tick, write=True)
            except (psycopg.Error, exc.SQLAlchemyError) as error:
                log.warning("the database is out of reach: %s", error)
                listener = None
                self._closing.wait(TICK_S)
        if listener is not None:
            listener.close()

"""One thread's way to run jobs on PostgreSQL: each in a transaction of its own, committed with its record."""

import logging
import random
import time
from typing import TYPE_CHECKING, Any, TypeGuard, cast

import psycopg
import sqlalchemy as sa
from sqlalchemy import exc

from rookery.core.errors import AuditUnavailable, DatabaseError, RookeryError
from rookery.db.items import WriteJob
from rookery.db.threads import Job, Lost, Stopped
from rookery.db.tx import Tx

if TYPE_CHECKING:
    from rookery.db.postgres import PostgresDatabase

RETRIES = 8
PAUSE_S = 0.01
STOOD_STILL = "25P03"  # idle in a transaction for too long
TRY_AGAIN = {"40001", "40P01"}  # serialization failure, deadlock
CHANNEL = "rookery_epoch"
WAKES = "rookery_wake"
_NOTIFY = sa.text("SELECT pg_notify(:channel, :name)")
log = logging.getLogger("rookery.postgres")


def unrecorded(error: Exception) -> RookeryError:
    """The refusal of a call whose record could not be written."""
    text = str(getattr(error, "orig", None) or error) or type(error).__name__
    reason = text.strip().splitlines()[0]
    log.error("a transaction could not be recorded: %s", reason)
    return AuditUnavailable(
        f"nothing was done, since it could not be recorded: {reason}",
        hint="check that PostgreSQL runs, has space and lets this user write; rookery doctor looks at it",
    )


def announce(tx: Tx) -> None:
    """Tell all processes, with this commit, what they have cached in vain and what they have waited for."""
    for channel, names in ((CHANNEL, tx.bumped), (WAKES, tx.woken)):
        for name in names:
            tx.scalar(_NOTIFY, {"channel": channel, "name": name})


def begin(connection: sa.Connection, *, write: bool) -> None:
    """Begin a transaction. A read can change nothing and sees one state of the database, as on SQLite."""
    if not write:
        connection.execution_options(postgresql_readonly=True, isolation_level="REPEATABLE READ")
    # Not left to the first statement: SQLAlchemy does not see what is written by the driver's own call.
    connection.begin()


class _Again(Exception):
    """The transaction collided with another one and is worth a second try."""


def _readable(error: exc.SQLAlchemyError) -> DatabaseError:
    failure = DatabaseError(f"the database failed: {getattr(error, 'orig', error)}", hint="rookery doctor looks at it")
    failure.__cause__ = error
    return failure


def _is_outage(error: Exception) -> TypeGuard[exc.SQLAlchemyError]:
    """Whether the database failed us, and not the statement."""
    state = getattr(getattr(error, "orig", None), "sqlstate", None)
    return isinstance(error, exc.OperationalError) or (isinstance(error, exc.InternalError) and state == STOOD_STILL)


def _roll_back(connection: sa.Connection) -> None:
    """Undo the transaction. A broken connection is thrown away: closing it would fail, and hide what went wrong."""
    try:
        connection.rollback()
    except exc.SQLAlchemyError:
        connection.invalidate()


class Executor:
    """Runs one job at a time in a pooled connection."""

    def __init__(self, database: "PostgresDatabase") -> None:
        self._database = database
        self._driver: psycopg.Connection[Any] | None = None

    def run(self, job: Job[Any]) -> Any:
        for attempt in range(1, RETRIES + 1):
            try:
                return self._once(job, last=attempt == RETRIES)
            except _Again:
                # Two that met once would meet again if both came back at once. Waiting longer each time, never as one.
                time.sleep(random.uniform(0, PAUSE_S * 2**attempt))
        raise AssertionError("unreachable")

    def _connect(self, job: Job[Any]) -> sa.Connection:
        try:
            return self._database.engine.connect()
        except exc.SQLAlchemyError as error:
            raise (unrecorded(error) if isinstance(job, WriteJob) else _readable(error)) from error

    def _once(self, job: Job[Any], *, last: bool) -> Any:
        with self._connect(job) as connection:
            try:
                return self._in(connection, job, last=last)
            finally:
                self._database.let_go(connection)

    def _in(self, connection: sa.Connection, job: Job[Any], *, last: bool) -> Any:
        begin(connection, write=isinstance(job, WriteJob))
        driver = cast("psycopg.Connection[Any]", connection.connection.driver_connection)
        self._driver = driver
        tx = Tx(connection)
        try:
            value = job.run(tx, lambda: driver.cancel_safe(timeout=1))
        except Lost:
            connection.invalidate()
            raise
        except Stopped:
            connection.invalidate()
            self._record(job, job.stop_error())
            raise
        except Exception as error:
            _roll_back(connection)
            if not last and getattr(getattr(error, "orig", None), "sqlstate", None) in TRY_AGAIN:
                raise _Again from error
            failure = _readable(error) if _is_outage(error) else error
            self._record(job, failure)
            raise failure from failure.__cause__
        if isinstance(job, WriteJob):
            self._commit(connection, tx, job)
        return value

    def _commit(self, connection: sa.Connection, tx: Tx, job: WriteJob[Any]) -> None:
        try:
            self._database.seal(tx, job.records(None))
            announce(tx)
            connection.commit()
        except Exception as error:
            _roll_back(connection)
            raise unrecorded(error) from error
        self._database.learn(tx.bumped)

    def _record(self, job: Job[Any], error: BaseException) -> None:
        if isinstance(job, WriteJob):
            self._database.commit_records(job.records(error))

    def rescue(self, job: Job[Any]) -> None:
        """End the hanging transaction, with the locks it holds, and record the call."""
        try:
            # The thread may come back meanwhile and close the connection itself.
            process = self._driver.info.backend_pid if self._driver is not None else 0
            self._database.direct(lambda tx: tx.scalar(sa.select(sa.func.pg_terminate_backend(process))))
        except (exc.SQLAlchemyError, psycopg.Error) as error:
            log.warning("a hanging transaction could not be ended: %s", error)
        self._record(job, job.stop_error())

    def close(self) -> None:
        return None

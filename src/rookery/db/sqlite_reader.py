"""One thread's way to read SQLite: a connection in which the database refuses writes."""

import contextlib
import sqlite3
from typing import Any

import sqlalchemy as sa
from sqlalchemy import exc

from rookery.db.threads import Job
from rookery.db.tx import Tx


def raw(connection: sa.Connection) -> sqlite3.Connection:
    """The driver's own connection below SQLAlchemy's."""
    driver = connection.connection.driver_connection
    assert isinstance(driver, sqlite3.Connection)
    return driver


class Reader:
    """One thread's read-only connection."""

    def __init__(self, engine: sa.Engine) -> None:
        self._engine = engine
        self._open()

    def _open(self) -> None:
        self._connection = self._engine.connect()
        self._raw = raw(self._connection)
        self._raw.execute("PRAGMA query_only=ON")

    def run(self, job: Job[Any]) -> Any:
        try:
            self._raw.execute("BEGIN")
        except sqlite3.Error:
            # Whatever the last job left behind, this one shall not suffer for it.
            self.close()
            self._open()
            self._raw.execute("BEGIN")
        try:
            return job.run(Tx(self._connection), self._raw.interrupt)
        finally:
            # After a stop SQLAlchemy may have closed it already, and it is not used again.
            with contextlib.suppress(exc.SQLAlchemyError, sqlite3.Error):
                self._connection.rollback()
                if self._raw.in_transaction:
                    self._raw.execute("ROLLBACK")

    def rescue(self, job: Job[Any]) -> None:
        """End the read, which would keep the log of pages from being cut."""
        self._raw.rollback()

    def close(self) -> None:
        self._connection.close()

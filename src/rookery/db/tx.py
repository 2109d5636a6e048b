"""An open transaction, as stores see it."""

import contextlib
from collections.abc import Generator, Mapping, Sequence
from typing import Any, cast

import sqlalchemy as sa
from sqlalchemy import exc

_BUMP = sa.text(
    "INSERT INTO epochs (name, value) VALUES (:name, 1) "
    "ON CONFLICT (name) DO UPDATE SET value = epochs.value + 1 RETURNING value"
)

# Without it the count of an INSERT is -1 on PostgreSQL, whether or not a conflict kept the row out.
_COUNTED = {"preserve_rowcount": True}


class Tx:
    """Runs statements in the transaction that the pipeline opened. Stores never commit."""

    __slots__ = ("bumped", "connection", "woken")

    def __init__(self, connection: sa.Connection) -> None:
        self.connection = connection
        self.bumped: dict[str, int] = {}
        self.woken: set[str] = set()

    @property
    def dialect(self) -> str:
        return self.connection.dialect.name

    def one(self, statement: sa.Executable, values: Mapping[str, Any] | None = None) -> sa.Row[Any] | None:
        """The first row, or None. `values` are for a statement that was built once, for many calls."""
        return self.connection.execute(statement, values).first()

    def all(self, statement: sa.Executable, values: Mapping[str, Any] | None = None) -> Sequence[sa.Row[Any]]:
        """Every row."""
        return self.connection.execute(statement, values).all()

    def scalar(self, statement: sa.Executable, values: Mapping[str, Any] | None = None) -> Any:
        """The first column of the first row, or None."""
        return self.connection.execute(statement, values).scalar()

    def run(self, statement: sa.Executable, rows: Sequence[Mapping[str, Any]] | None = None) -> int:
        """Run a change, once or for each of `rows`, and say how many rows it touched."""
        given = None if rows is None else list(rows)
        result = self.connection.execute(statement, given, execution_options=_COUNTED)
        return cast("sa.CursorResult[Any]", result).rowcount

    def insert_rows(self, table: str, columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
        """Add rows by the driver's own call: a fifth of what SQLAlchemy costs, for what is written with every call."""
        driver: Any = self.connection.connection.driver_connection
        mark = "?" if self.dialect == "sqlite" else "%s"
        marks = ", ".join([mark] * len(columns))
        with self.driver_errors(f"INSERT INTO {table}"):
            driver.cursor().executemany(f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({marks})", rows)

    @contextlib.contextmanager
    def driver_errors(self, what: str) -> Generator[None]:
        """What fails in the driver's own calls is raised as it would be by SQLAlchemy, which the pipeline knows."""
        dialect: Any = self.connection.dialect
        try:
            yield
        except dialect.loaded_dbapi.Error as error:
            gone = dialect.is_disconnect(error, self.connection.connection.driver_connection, None)
            raise exc.DBAPIError.instance(
                what, None, error, dialect.loaded_dbapi.Error, connection_invalidated=gone, dialect=dialect
            ) from error

    def first(self, query: str) -> Sequence[Any] | None:
        """The first row of a query without parameters, by the driver's own call."""
        driver: Any = self.connection.connection.driver_connection
        return driver.execute(query).fetchone()

    @contextlib.contextmanager
    def savepoint(self) -> Generator[None]:
        """Undo what the block did if it fails; the transaction goes on."""
        self.connection.exec_driver_sql("SAVEPOINT part")
        try:
            yield
        except BaseException:
            self.connection.exec_driver_sql("ROLLBACK TO part")
            self.connection.exec_driver_sql("RELEASE part")
            raise
        self.connection.exec_driver_sql("RELEASE part")

    def wake(self, name: str) -> None:
        """Tell whoever waits for `name`, in whatever process, once this is committed."""
        self.woken.add(name)

    def bump(self, name: str) -> None:
        """Mark that what others cache under `name` is out of date, as of this commit."""
        row = self.connection.execute(_BUMP, {"name": name}).one()
        self.bumped[name] = row.value

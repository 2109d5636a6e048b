"""The interface of a database, and how one is opened."""

import os
import time
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, TypeVar
from urllib.parse import urlsplit

from rookery.core.call import Records
from rookery.core.errors import ConfigurationError
from rookery.core.record import Record
from rookery.db.tx import Tx
from rookery.db.wakes import Listener

T = TypeVar("T")
Seal = Callable[[Tx, Sequence[Record]], None]


def no_seal(tx: Tx, records: Sequence[Record]) -> None:
    """For programs that keep no audit log, such as tests of the database alone."""


class Database(ABC):
    """Runs work in transactions. `work` gets a `Tx`; it may be run again if its batch had to be undone."""

    url: str
    seal: Seal = staticmethod(no_seal)
    """Writes audit records inside a transaction; set once, before the first call."""

    tick: Callable[[Tx], None] | None = None
    """Run now and then where records are not sealed as they are written."""

    @abstractmethod
    async def read(self, work: Callable[[Any], T], *, timeout_s: float = 60.0) -> T:
        """Run `work(tx)` in a transaction in which the database refuses writes."""

    @abstractmethod
    async def write(
        self,
        work: Callable[[Any], T],
        *,
        records: Records,
        timeout_s: float = 60.0,
        on_commit: Callable[[], None] | None = None,
    ) -> T:
        """Run `work(tx)` and commit it together with its records. When this returns, a crash loses nothing.

        `on_commit` is called on the event loop after the commit, also if the caller has gone meanwhile.
        """

    @abstractmethod
    def record(self, record: Record) -> Awaitable[None]:
        """Write one audit record. It is on its way at once; awaiting it waits until a crash cannot lose it."""

    @abstractmethod
    def direct(self, work: Callable[[Tx], T], *, write: bool = False) -> T:
        """Run `work(tx)` in the calling thread, for start-up, migrations and the CLI. Blocks."""

    @abstractmethod
    def epoch(self, name: str) -> int:
        """How often `Tx.bump(name)` was committed, by any process. Cheap enough for every call."""

    @abstractmethod
    def on_wake(self, listener: Listener) -> Callable[[], None]:
        """Call `listener`, from any thread, with each name that a commit wakes; the returned function ends that.

        The empty name says that another process has committed something, whatever it was.
        """

    @abstractmethod
    def backup(self, folder: str, label: str) -> str | None:
        """Copy everything to a file in `folder` and return its path; None if the database is empty."""

    @abstractmethod
    def close(self) -> None:
        """Finish what is queued and let go of every connection and thread."""

    async def change(self, work: Callable[[Any], T]) -> T:
        """A write that is not a call and leaves no audit record."""
        return await self.write(work, records=lambda error: [])


def new_backup_file(folder: str, label: str, ending: str) -> str:
    """An empty file for a backup, readable by its owner alone from the start, and never one that is there already."""
    os.makedirs(folder, mode=0o700, exist_ok=True)
    stamp = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime())
    path = os.path.join(folder, f"rookery-{stamp}-{os.urandom(4).hex()}-{label}.{ending}")
    os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
    return path


def default_url(home: str) -> str:
    """The database of a home folder that names no other."""
    return f"sqlite:///{os.path.join(home, 'rookery.db')}"


def open_database(url: str, *, reads: str = "normal") -> Database:
    """Connect to `url`: `sqlite:///path` or `postgresql://…`. `reads` is "full" if reads must survive a power cut."""
    scheme = urlsplit(url).scheme
    if scheme == "sqlite":
        from rookery.db.sqlite import SqliteDatabase

        return SqliteDatabase(url, full_reads=reads == "full")
    if scheme in ("postgresql", "postgres", "postgresql+psycopg"):
        from rookery.db.postgres import PostgresDatabase

        return PostgresDatabase(url)
    raise ConfigurationError(
        f"the database address {scheme}:… is of no kind we know",
        hint="use sqlite:///path/to/file or postgresql://user@host/name",
    )

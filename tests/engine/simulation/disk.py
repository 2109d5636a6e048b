"""One real SQLite database for all simulated processes, in memory, and how each of them reaches it.

Transactions are run one after the other on the event loop, each at a moment of its own, so what they see and what they
commit is what SQLite would give to processes. What is simulated is what lies around them: how long an answer takes,
whether the caller is still there, and whether the process is, before and after each commit.
"""

import asyncio
import contextlib
import random
import sqlite3
from collections.abc import Awaitable, Callable
from functools import cache
from itertools import count
from typing import Any, Literal, TypeVar

import sqlalchemy as sa
from sqlalchemy.pool import NullPool

from rookery.core.call import Records
from rookery.core.record import Record
from rookery.db.database import Database
from rookery.db.tx import Tx
from rookery.db.wakes import Listener, Wakes
from tests.engine.simulation.clock import VirtualLoop
from tests.engine.simulation.log import Log

T = TypeVar("T")
POLL_S = 0.25
DAY_S = 86_400.0
UNIX_EPOCH = 2_440_587.5
PREPARED = 1000
"""So many statements a connection keeps prepared: more than a history has."""
Moment = Literal["before", "after"]
_OPEN: list[sqlite3.Connection] = []
_NUMBERS = count()


@cache
def _engine() -> sa.Engine:
    """One for the whole run, which keeps the statements that it has compiled."""
    return sa.create_engine(
        "sqlite://",
        creator=lambda: _OPEN.pop(),
        poolclass=NullPool,
        pool_reset_on_return=None,
        hide_parameters=True,
        query_cache_size=4000,
    )


@cache
def _source(template: bytes) -> sqlite3.Connection:
    """The database that every history of this run begins with."""
    source = sqlite3.connect(":memory:")
    source.deserialize(template)
    return source


class Disk:
    """What outlives every process."""

    def __init__(self, template: bytes | None, loop: VirtualLoop, log: Log) -> None:
        self.loop = loop
        self.log = log
        self.commits = 0
        self.processes: list[SimulatedDatabase] = []
        self.on_commit: list[Callable[[str, list[tuple[Any, ...]]], None]] = []
        self._noted: list[tuple[Any, ...]] = []
        self._changes = 0
        self._address = f"file:/history-{next(_NUMBERS)}?vfs=memdb"
        self.driver, self.connection = self._connect(
            "foreign_keys=ON", "recursive_triggers=ON", "journal_mode=MEMORY", "synchronous=OFF"
        )
        if template is not None:
            _source(template).backup(self.driver)
        self.driver.create_function("simulation_note", -1, self._note)
        # A connection of its own: to forbid writing and allow it again would make SQLite prepare every statement anew.
        self._reader, self._reading = self._connect("query_only=ON")

    def _connect(self, *pragmas: str) -> tuple[sqlite3.Connection, sa.Connection]:
        driver = sqlite3.connect(
            self._address, uri=True, isolation_level=None, check_same_thread=False, cached_statements=PREPARED
        )
        for pragma in pragmas:
            driver.execute(f"PRAGMA {pragma}")
        # The time is the same for the whole of a statement, as with SQLite's own.
        driver.create_function("julianday", 1, self._julian_day, deterministic=True)
        _OPEN.append(driver)
        return driver, _engine().connect()

    def _julian_day(self, when: str) -> float:
        assert when == "now"
        return UNIX_EPOCH + self.loop.now_s / DAY_S

    def _note(self, *values: Any) -> None:
        self._noted.append(values)

    def close(self) -> None:
        self._reading.close()
        self.connection.close()

    def read(self, work: Callable[[Tx], T]) -> T:
        self._reader.execute("BEGIN")
        try:
            return work(Tx(self._reading))
        finally:
            _roll_back(self._reader, self._reading)

    def begin(self) -> Tx:
        self._noted = []
        self._changes = self.driver.total_changes
        self.driver.execute("BEGIN IMMEDIATE")
        return Tx(self.connection)

    def undo_job(self) -> None:
        """The transaction goes on without what its job did."""
        self.driver.execute("ROLLBACK TO job")
        self._noted.clear()

    def commit(self, who: str) -> bool:
        """Whether anything was changed: what changes nothing is not heard of by other processes."""
        self.driver.execute("COMMIT")
        self.roll_back()
        self.commits += 1
        noted, self._noted = self._noted, []
        for told in self.on_commit:
            told(who, noted)
        return self.driver.total_changes != self._changes

    def roll_back(self) -> None:
        _roll_back(self.driver, self.connection)


def _roll_back(driver: sqlite3.Connection, connection: sa.Connection) -> None:
    connection.rollback()
    if driver.in_transaction:
        driver.execute("ROLLBACK")


class Patience:
    """How long a database takes to answer: mostly a moment, now and then a while."""

    def __init__(self, rng: random.Random) -> None:
        self._rng = rng

    def __call__(self) -> float:
        chance = self._rng.random()
        if chance < 0.97:
            return 0.0005 + chance * 0.004
        return self._rng.uniform(0.01, 2.0) if chance < 0.998 else self._rng.uniform(2.0, 12.0)


class SimulatedDatabase(Database):
    """One process's way to the disk. `crash_at` is the commit of this process that it does not survive."""

    def __init__(self, disk: Disk, name: str, takes_s: Callable[[], float]) -> None:
        self.url = f"sqlite:///simulated/{name}"
        self.name = name
        self.crash_at: tuple[int, Moment] | None = None
        self.crash: Callable[[str], None] | None = None
        self.nap_at: tuple[int, float] | None = None
        """The commit after which the process stands still, and for how long."""
        self.nap: Callable[[float], None] | None = None
        self.commits = 0
        self.dead = False
        self._disk = disk
        self._loop = disk.loop
        self._takes_s = takes_s
        self._wakes = Wakes()
        self._told = False
        disk.processes.append(self)

    async def read(self, work: Callable[[Any], T], *, timeout_s: float = 60.0) -> T:
        return await self._later(lambda: self._disk.read(work))

    async def write(
        self,
        work: Callable[[Any], T],
        *,
        records: Records,
        timeout_s: float = 60.0,
        on_commit: Callable[[], None] | None = None,
    ) -> T:
        return await self._later(lambda: self._write(work, records, on_commit))

    def _later(self, call: Callable[[], T]) -> "asyncio.Future[T]":
        """What `call` gives, a while from now. Whoever stops waiting does not know whether it is done all the same."""
        future: asyncio.Future[T] = self._loop.create_future()

        def run() -> None:
            if future.cancelled() and self._loop.rng.random() < 0.5:
                return
            try:
                value = call()
            except Exception as error:
                if not future.done() and not self.dead:
                    future.set_exception(error)
            else:
                if not future.done() and not self.dead:
                    future.set_result(value)

        self._loop.call_later(self._takes_s(), run)
        return future

    def _write(self, work: Callable[[Tx], T], records: Records, on_commit: Callable[[], None] | None) -> T:
        disk = self._disk
        error: Exception | None = None
        value: Any = None
        tx = disk.begin()
        try:
            disk.driver.execute("SAVEPOINT job")
            try:
                value = work(tx)
            except Exception as failure:
                error = failure
                disk.undo_job()
                tx.woken.clear()
            disk.driver.execute("RELEASE job")
            if sealed := records(error):
                self.seal(tx, sealed)
            self._commit(tx)
        except BaseException:
            disk.roll_back()
            raise
        if error is not None:
            raise error
        if on_commit is not None and not self.dead:
            on_commit()
        return value

    def _commit(self, tx: Tx) -> None:
        self.commits += 1
        doom = self.crash_at
        here = doom is not None and doom[0] == self.commits and self.crash is not None
        if here and doom is not None and self.crash is not None and doom[1] == "before":
            self._disk.roll_back()
            self.crash(f"before commit {self.commits}")
            raise Crashed
        changed = self._disk.commit(self.name)
        if here and self.crash is not None:
            self.crash(f"after commit {self.commits}")
        if self.nap_at is not None and self.nap_at[0] == self.commits and self.nap is not None:
            self.nap(self.nap_at[1])
        if not self.dead:
            self._wakes.tell(sorted(tx.woken))
        if changed:
            for other in self._disk.processes:
                if other is not self:
                    other.hear()

    def hear(self) -> None:
        """Another process has committed something: whoever listens here is told with the next look."""
        if self._wakes.wanted and not self._told and not self.dead:
            self._told = True
            self._loop.call_later(self._loop.rng.uniform(0.0, POLL_S), self._tell)

    def _tell(self) -> None:
        self._told = False
        if not self.dead:
            self._wakes.tell([""])

    def record(self, record: Record) -> Awaitable[None]:
        done = self._later(lambda: self._write(lambda tx: None, lambda error: [record], None))
        done.add_done_callback(lambda future: future.cancelled() or future.exception())
        return done

    def direct(self, work: Callable[[Tx], T], *, write: bool = False) -> T:
        if not write:
            return self._disk.read(work)
        return self._write(work, lambda error: [], None)

    def epoch(self, name: str) -> int:
        row = self._disk.driver.execute("SELECT value FROM epochs WHERE name = ?", (name,)).fetchone()
        return row[0] if row else 0

    def on_wake(self, listener: Listener) -> Callable[[], None]:
        return self._wakes.add(listener)

    def backup(self, folder: str, label: str) -> str | None:
        return None

    def close(self) -> None:
        self.dead = True
        with contextlib.suppress(ValueError):
            self._disk.processes.remove(self)


class Crashed(Exception):
    """Nobody sees it: the process that would is no more."""

"""Counts how often memories are found, without making a recall a write.

Counts are kept in this process and written every few seconds by a thread of their own, so a recall waits for
nobody, and a read stays one. What was counted in the last seconds before a process dies is lost: the counts are
there to see what nobody needs, not to be exact.
"""

import logging
import threading
import time
from collections.abc import Iterable
from typing import TYPE_CHECKING, cast
from weakref import WeakKeyDictionary

import sqlalchemy as sa

from rookery.db.database import Database
from rookery.db.tx import Tx

if TYPE_CHECKING:
    from rookery.core.call import Calls

EVERY_S = 5.0
MOST = 10_000
"""Of so many memories counts are kept until they are written. Those of more are not counted."""
log = logging.getLogger("rookery.memory")
# A memory that is gone meanwhile gets no row.
_ADD = sa.text(
    "INSERT INTO memory_recalls (memory_seq, recalls, recalled_ms) "
    "SELECT seq, CAST(:recalls AS BIGINT), CAST(:recalled_ms AS BIGINT) FROM memories WHERE seq = :seq "
    "ON CONFLICT (memory_seq) DO UPDATE SET recalls = memory_recalls.recalls + excluded.recalls, "
    "recalled_ms = excluded.recalled_ms"
)


class Recalls:
    """The counts of one platform."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._lock = threading.Lock()
        self._counts: dict[int, int] = {}
        self._timer: threading.Timer | None = None
        self._written = -EVERY_S
        self._closed = False

    @property
    def pending(self) -> int:
        """Of how many memories counts are not written yet."""
        return len(self._counts)

    def add(self, seqs: Iterable[int]) -> None:
        """Count one recall of each. Any thread may call this; it does not wait for the database."""
        with self._lock:
            for seq in seqs:
                if seq in self._counts or len(self._counts) < MOST:
                    self._counts[seq] = self._counts.get(seq, 0) + 1
            self._see_to_it()

    def _see_to_it(self) -> None:
        """Have it written when it is time. Only for who holds the lock."""
        if self._timer is None and self._counts and not self._closed:
            due_s = max(0.0, self._written + EVERY_S - time.monotonic())
            self._timer = threading.Timer(due_s, self._write)
            self._timer.daemon = True
            self._timer.start()

    def flush(self, tx: Tx) -> None:
        """Write what was counted so far in this transaction."""
        with self._lock:
            counts, self._counts = self._counts, {}
        at = time.time_ns() // 1_000_000
        if counts:
            # In one order everywhere, so that two servers do not wait for each other's rows.
            tx.run(_ADD, [{"seq": seq, "recalls": counts[seq], "recalled_ms": at} for seq in sorted(counts)])

    def close(self) -> None:
        """Write what was counted and leave no thread behind. For when the database is closed, just before that."""
        with self._lock:
            self._closed = True
            timer = self._timer
        if timer is not None:
            timer.cancel()
            timer.join()
        if self._counts:
            self._write()

    def _write(self) -> None:
        try:
            self._database.direct(self.flush, write=True)
        except Exception as error:
            log.debug("recalls were not counted: %s", error)
        finally:
            with self._lock:
                self._timer = None
                self._written = time.monotonic()
                self._see_to_it()


_OF: "WeakKeyDictionary[Calls, Recalls]" = WeakKeyDictionary()
_MAKING = threading.Lock()


def recalls_of(calls: "Calls") -> Recalls:
    """The counts of the platform to which this call path belongs."""
    with _MAKING:
        found = _OF.get(calls)
        if found is None:
            found = _OF[calls] = Recalls(cast(Database, calls.database))
        return found


def close_recalls(calls: "Calls") -> None:
    """The end of the counts of a platform, if it counted any."""
    with _MAKING:
        found = _OF.get(calls)
    if found is not None:
        found.close()

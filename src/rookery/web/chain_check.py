"""How far the audit log's chain has been computed again, remembered by the server for every page that shows it.

The chain is checked a part at a time, each a call of whoever looks at the page, so that no request takes long however
long the log is. What has been checked is extended by what is new; from time to time, and whenever somebody asks for it,
all of it is computed from the first record on.
"""

import asyncio
import time
from dataclasses import dataclass, replace
from weakref import WeakKeyDictionary

from rookery.db.database import Database
from rookery.domains.audit.audit_proof import verify_audit_part
from rookery.web.visit import Values, Visit

PART = 5_000
WHOLE_MS = 15 * 60_000
"""After so long all of it is computed again, the next time that somebody looks."""
FRESH_MS = 60_000
"""For so long nothing is added to a check."""


@dataclass(frozen=True, slots=True)
class Pass:
    """A check under way: up to which record it has come, and when it, or that which it extends, began at the first."""

    whole_ms: int
    after: int = 0
    head: str | None = None
    records: int = 0
    total: int = 0


class ChainCheck:
    """The last result, with when it was found and when all of it was begun, and the check that is under way."""

    def __init__(self) -> None:
        self.result: Values | None = None
        self.under_way: Pass | None = None
        self._busy = asyncio.Lock()

    async def begin(self, visit: Visit) -> None:
        """Compute all of it again, now the first part."""
        going = Pass(_now_ms())
        self._take(going, await _part(visit, going))

    async def go_on(self, visit: Visit, *, budget_s: float = 0.0) -> None:
        """Check another part, and more while there is time; nothing if all is fresh or another request does so."""
        if self._busy.locked():
            return
        async with self._busy:
            ends = time.monotonic() + budget_s
            self.under_way = self.under_way or self._due()
            while (going := self.under_way) is not None:
                found = await _part(visit, going)
                # Somebody may have asked for all of it meanwhile.
                if self.under_way is going:
                    self._take(going, found)
                if time.monotonic() >= ends:
                    return

    def _due(self) -> Pass | None:
        found, now = self.result, _now_ms()
        if found is None or now - found["whole_ms"] >= WHOLE_MS:
            return Pass(now)
        if not found["intact"] or now - found["checked_ms"] < FRESH_MS:
            return None
        if not found["last"]:
            return Pass(now)
        return Pass(found["whole_ms"], found["last"], found["head"], found["records"], found["total"])

    def _take(self, going: Pass, found: Values) -> None:
        if found["more"]:
            at = {"after": found["last"], "head": found["head"], "records": found["records"], "total": found["total"]}
            self.under_way = replace(going, **at)
            return
        self.result = {**found, "whole_ms": going.whole_ms, "checked_ms": _now_ms()}
        self.under_way = None


async def _part(visit: Visit, going: Pass) -> Values:
    return await visit.call(verify_audit_part, {"after": going.after, "head": going.head, "limit": PART})


_CHECKS: WeakKeyDictionary[Database, ChainCheck] = WeakKeyDictionary()


def chain_check(database: Database) -> ChainCheck:
    """The check of the log in this database, one for all pages of a server."""
    return _CHECKS.setdefault(database, ChainCheck())


def _now_ms() -> int:
    return time.time_ns() // 1_000_000

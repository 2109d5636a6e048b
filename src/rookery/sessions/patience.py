"""How long a turn waits for people. That is not its own time: its deadline moves by as much."""

import asyncio
import contextlib
import logging
import time
from collections.abc import AsyncGenerator, Callable

from rookery.core.errors import RookeryError
from rookery.db.database import Database
from rookery.db.tx import Tx
from rookery.lifecycle.session_store import SessionRuns
from rookery.sessions.store import SessionRows

log = logging.getLogger("rookery.sessions")


class Patience:
    """The waits of one turn. Several at the same time count once."""

    def __init__(self, database: Database, tenant: str, session_id: str, run_id: str) -> None:
        self._database = database
        self._tenant = tenant
        self._session_id = session_id
        self._run_id = run_id
        self._waits = 0
        self._since = 0.0
        self._owed_s = 0.0

    @property
    def waits(self) -> bool:
        """Whether somebody is asked at the moment."""
        return self._waits > 0

    @property
    def unwritten_s(self) -> float:
        """So long it has waited beyond what its deadline has moved so far."""
        return self._owed_s + (time.monotonic() - self._since if self._waits else 0.0)

    @contextlib.asynccontextmanager
    async def waiting(self) -> AsyncGenerator[None]:
        """While the block lasts somebody is asked."""
        self._waits += 1
        if self._waits == 1:
            self._since = time.monotonic()
        try:
            if self._waits == 1:
                await self._try(lambda tx: SessionRows(tx, self._tenant).waits(self._session_id, for_person=True))
            yield
        finally:
            self._waits -= 1
            if self._waits == 0:
                self._owed_s += time.monotonic() - self._since
                # Whoever is cancelled here has waited all the same.
                await asyncio.shield(asyncio.ensure_future(self._settle()))

    async def _settle(self) -> None:
        owed_s = self._owed_s

        def work(tx: Tx) -> None:
            SessionRows(tx, self._tenant).waits(self._session_id, for_person=False)
            SessionRuns(tx, self._tenant).waited(self._run_id, round(owed_s * 1000))

        if await self._try(work):
            self._owed_s -= owed_s

    async def _try(self, work: Callable[[Tx], None]) -> bool:
        """Whether it could be written. If not, the wait still counts in this process."""
        try:
            await self._database.change(work)
        except RookeryError as error:
            log.warning("the wait of %s is not on record: %s", self._run_id, error.message)
            return False
        return True

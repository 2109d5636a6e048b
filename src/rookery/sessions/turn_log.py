"""The record of one turn: the events of its run in its session."""

import asyncio
import contextlib
import time
from collections.abc import Mapping, Sequence
from typing import Any

from rookery.core.errors import RookeryError
from rookery.sessions.events import EventName, SessionEvent
from rookery.sessions.log import SessionLog
from rookery.sessions.writing import Kept

FLUSH_S = 5.0
UNRECORDED_S = 30.0
"""So long a turn goes on while nothing of it can be written."""


class TurnLog:
    """Keeps what happens in one turn."""

    def __init__(self, log: SessionLog, tenant: str, session_id: str, run_id: str) -> None:
        self._log = log
        self._tenant = tenant
        self._session_id = session_id
        self._run_id = run_id
        self._unrecorded_since: float | None = None

    def put(self, name: EventName, data: Mapping[str, Any]) -> None:
        """Something happened. ServiceUnavailable if it can never be written."""
        self.keep(SessionEvent(name, data))

    def keep(self, event: SessionEvent) -> None:
        self._log.put(self._tenant, self._session_id, self._run_id, event)

    def try_to_keep(self, event: SessionEvent) -> None:
        """The same where nothing can be done about it."""
        with contextlib.suppress(RookeryError):
            self.keep(event)

    async def written(self) -> None:
        """Wait until everything is written. Raises what is in the way."""
        await self._log.flush(self._session_id)

    async def flush(self) -> bool:
        """The same for a while; whether it could be done. If not, it is tried again."""
        with contextlib.suppress(RookeryError, TimeoutError):
            async with asyncio.timeout(FLUSH_S):
                await self.written()
                return True
        return False

    def told(self, events: Sequence[Kept]) -> None:
        """These were committed with something else."""
        self._log.written(self._session_id, events)

    def trouble(self) -> str | None:
        """Why nothing could be written for too long, if that is so. To be asked now and then."""
        now = time.monotonic()
        if self._log.trouble is None:
            self._unrecorded_since = None
        elif self._unrecorded_since is None:
            self._unrecorded_since = now
        elif now - self._unrecorded_since > UNRECORDED_S:
            return f"what happens cannot be recorded: {self._log.trouble}"
        return None

"""Hears what people want of the sessions that this process hosts: it is told which, and looks at the row."""

import asyncio
import contextlib
from collections.abc import Callable

from rookery.db.database import Database
from rookery.lifecycle.pauses import WAKE as PAUSED
from rookery.sessions.store import control_name

CALM_S = 0.25
"""Other processes may commit all the time, and do not say what: nobody is called more often than this."""
_PREFIX = control_name("")


class Controls:
    """Calls the hosts of sessions when somebody may have changed something about them."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._hosts: dict[str, Callable[[], None]] = {}
        self._loop: asyncio.AbstractEventLoop | None = None
        self._deaf: Callable[[], None] | None = None
        self._soon: asyncio.TimerHandle | None = None

    def add(self, session_id: str, call: Callable[[], None]) -> None:
        """Call this from now on when it may be worth a look; instead of what was called before."""
        self._hosts[session_id] = call
        if self._deaf is None:
            self._loop = asyncio.get_running_loop()
            self._deaf = self._database.on_wake(self._hear)

    def remove(self, session_id: str) -> None:
        self._hosts.pop(session_id, None)
        if not self._hosts:
            self.close()

    def close(self) -> None:
        if self._deaf is not None:
            self._deaf()
            self._deaf = None
        if self._soon is not None:
            self._soon.cancel()
            self._soon = None

    def _hear(self, name: str) -> None:
        """From any thread: somebody has committed."""
        loop = self._loop
        mine = name.startswith(_PREFIX) and name.removeprefix(_PREFIX) in self._hosts
        if loop is not None and (mine or name in ("", PAUSED)):
            # A loop that has ended hosts nothing.
            with contextlib.suppress(RuntimeError):
                loop.call_soon_threadsafe(self._heard, name)

    def _heard(self, name: str) -> None:
        call = self._hosts.get(name.removeprefix(_PREFIX))
        if call is not None:
            call()
        elif name == PAUSED:
            self._call_all()
        elif not name and self._soon is None and self._loop is not None:
            self._soon = self._loop.call_later(CALM_S, self._call_all)

    def _call_all(self) -> None:
        if self._soon is not None:
            self._soon.cancel()
            self._soon = None
        for call in list(self._hosts.values()):
            call()

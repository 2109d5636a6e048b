"""Watches, while an agent is at work, whether it is paused."""

import asyncio
import contextlib
import logging

from rookery.core.actor import Actor
from rookery.core.errors import DatabaseError
from rookery.db.database import Database
from rookery.db.tx import Tx
from rookery.identity.tables import EPOCH
from rookery.lifecycle.pauses import WAKE, Pause, Pauses

log = logging.getLogger("rookery.sessions")
LOOK_S = 5.0
"""However deaf we are, a pause is seen after so long."""
CALM_S = 0.1
"""Other processes may commit all the time, and do not say what: nobody looks more often than this."""


class PauseWatch:
    """Sees to one agent's work."""

    def __init__(self, database: Database, actor: Actor, grace_s: float) -> None:
        self._pause: Pause | None = None
        self._epoch: int | None = None
        self._stale = True
        self._database = database
        self._actor = actor
        self._grace_s = grace_s
        self._called = asyncio.Event()
        self._soon: asyncio.TimerHandle | None = None

    async def until_over(self) -> Pause:
        """The pause under which the agent has been for as long as it is given to come to an end by itself.

        One that is taken back within that time counts for nothing.
        """
        loop = asyncio.get_running_loop()

        def hear(name: str) -> None:
            if name in (WAKE, ""):
                # A loop that has ended watches nothing.
                with contextlib.suppress(RuntimeError):
                    loop.call_soon_threadsafe(self._hear, name)

        deaf = self._database.on_wake(hear)
        try:
            return await self._watch()
        finally:
            deaf()
            if self._soon is not None:
                self._soon.cancel()

    def _hear(self, name: str) -> None:
        if name:
            # What others count as their epoch may be heard of a moment later.
            self._stale = True
            self._called.set()
        elif self._soon is None:
            self._soon = asyncio.get_running_loop().call_later(CALM_S, self._call)

    def _call(self) -> None:
        self._soon = None
        self._called.set()

    async def _watch(self) -> Pause:
        loop = asyncio.get_running_loop()
        ends: float | None = None
        while True:
            pause = await self.now()
            ends = None if pause is None else loop.time() + self._grace_s if ends is None else ends
            left_s = LOOK_S if ends is None else ends - loop.time()
            if pause is not None and left_s <= 0:
                return pause
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(min(left_s, LOOK_S)):
                    await self._called.wait()
            self._called.clear()

    async def now(self) -> Pause | None:
        """What pauses the agent at this moment; as it was before, if the database cannot say."""
        epoch = self._database.epoch(EPOCH)
        if self._stale or epoch != self._epoch:
            self._stale = False
            try:
                self._pause = await self._database.read(self._look)
                self._epoch = epoch
            except DatabaseError as error:
                self._stale = True
                log.warning("whether %s is paused cannot be read: %s", self._actor.agent_name, error.message)
        return self._pause

    def _look(self, tx: Tx) -> Pause | None:
        return Pauses(tx, self._actor.tenant).holding_actor(self._actor)

"""Notes which agents come to the doors. Nobody waits for it, and what cannot be noted is noted the next time."""

import asyncio
import time
from typing import TYPE_CHECKING

from rookery.core.errors import RookeryError
from rookery.identity.sightings import note_sighting
from rookery.server.attach import AttachedSession
from rookery.server.session import Session

if TYPE_CHECKING:
    from rookery.app import Platform

AGAIN_S = 60.0
"""An agent that was noted is not noted again for so long."""
Key = tuple[str, str, str]


class Sightings:
    """The agents that one process has seen, and when."""

    def __init__(self, platform: "Platform") -> None:
        self._platform = platform
        self._noted: dict[Key, float] = {}
        self._under_way: set[asyncio.Task[None]] = set()

    async def note(self, session: Session) -> None:
        """The session's agent is here. Nobody notes a person, nor an agent that the platform runs. Returns at once."""
        if isinstance(session, AttachedSession):
            return
        try:
            actor = await session.actor()
        except RookeryError:
            # Whoever calls with it is told what is wrong.
            return
        if actor.agent is None or actor.kind == "human":
            return
        key, now = (actor.tenant, actor.agent, actor.source), time.monotonic()
        if now - self._noted.get(key, -AGAIN_S) < AGAIN_S:
            return
        self._noted[key] = now
        task = asyncio.create_task(self._write(key))
        self._under_way.add(task)
        task.add_done_callback(self._under_way.discard)

    async def settle(self) -> None:
        """Wait for what is being noted."""
        await asyncio.gather(*self._under_way)

    async def _write(self, key: Key) -> None:
        try:
            await self._platform.database.change(lambda tx: note_sighting(tx, *key))
        except RookeryError:
            self._noted.pop(key, None)

"""Who follows which session, and how they learn that there is more: from this process at once, from others soon."""

import asyncio
import contextlib
from collections import deque
from collections.abc import AsyncGenerator, Sequence

import sqlalchemy as sa

from rookery.core.errors import RookeryError
from rookery.db.database import Database
from rookery.db.tx import Tx
from rookery.sessions.tables import agent_sessions
from rookery.sessions.writing import EVENTS, Kept

LOOK_S = 2.0
"""However deaf we are, an event of another process is seen after so long."""
CALM_S = 0.25
"""Other processes may commit all the time, and do not say what: we look no more often than this."""
AT_ONCE = 500
TAIL = 256
"""So many of the last events of a session that is followed are at hand."""
TAIL_CHARACTERS = 65_536
_COUNTS = sa.select(agent_sessions.c.id, agent_sessions.c.event_count).where(
    agent_sessions.c.id.in_(sa.bindparam("ids", expanding=True))
)


class Follower:
    """Somebody who follows one session. `called` is set when there may be more than `seen`."""

    __slots__ = ("_tail", "called", "seen")

    def __init__(self, tail: deque[Kept]) -> None:
        self.called = asyncio.Event()
        self.seen = 0
        self._tail = tail

    def tail_after(self, number: int) -> list[Kept] | None:
        """What comes after that number, if all of it is at hand; None if one has to look in the database."""
        tail = self._tail
        if not tail or tail[0].number > number + 1:
            return None
        return [event for event in tail if event.number > number]


class _Followed:
    def __init__(self) -> None:
        self.tail: deque[Kept] = deque(maxlen=TAIL)
        self.followers: set[Follower] = set()


class Followers:
    """The followers of one process. While there are any, one task looks out for what other processes write."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._followed: dict[str, _Followed] = {}
        self._stirred = asyncio.Event()
        self._looking: asyncio.Task[None] | None = None

    @contextlib.asynccontextmanager
    async def one(self, session_id: str) -> AsyncGenerator[Follower]:
        """One more follower of the session."""
        followed = self._followed.setdefault(session_id, _Followed())
        follower = Follower(followed.tail)
        followed.followers.add(follower)
        if self._looking is None or self._looking.done():
            self._looking = asyncio.create_task(self._look(), name="session followers")
        try:
            yield follower
        finally:
            followed.followers.discard(follower)
            if not followed.followers and self._followed.get(session_id) is followed:
                del self._followed[session_id]
            if not self._followed:
                self._end()

    def _end(self) -> None:
        if self._looking is not None:
            self._looking.cancel()
            self._looking = None

    def tell(self, session_id: str, events: Sequence[Kept]) -> None:
        """These were written by this process just now."""
        followed = self._followed.get(session_id)
        if followed is None or not events:
            return
        tail = followed.tail
        if tail and tail[-1].number + 1 != events[0].number:
            tail.clear()
        for event in events:
            # What is long is read from the database by whoever wants it.
            if any(isinstance(value, str) and len(value) > TAIL_CHARACTERS for value in event.data.values()):
                tail.clear()
            else:
                tail.append(event)
        for follower in followed.followers:
            follower.called.set()

    async def _look(self) -> None:
        loop = asyncio.get_running_loop()

        def hear(name: str) -> None:
            """From any thread: somebody has committed."""
            if not name or name == EVENTS:
                # A loop that has ended follows nothing.
                with contextlib.suppress(RuntimeError):
                    loop.call_soon_threadsafe(self._stirred.set)

        deaf = self._database.on_wake(hear)
        try:
            while True:
                await asyncio.sleep(CALM_S)
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(LOOK_S - CALM_S):
                        await self._stirred.wait()
                self._stirred.clear()
                # Out of reach for a while: the events are safe where they are.
                with contextlib.suppress(RookeryError):
                    await self._see()
        finally:
            deaf()

    async def _see(self) -> None:
        ids = list(self._followed)
        for start in range(0, len(ids), AT_ONCE):
            part = ids[start : start + AT_ONCE]

            def counts(tx: Tx, part: list[str] = part) -> dict[str, int]:
                return {row.id: row.event_count for row in tx.all(_COUNTS, {"ids": part})}

            for session_id, count in (await self._database.read(counts)).items():
                followed = self._followed.get(session_id)
                if followed is None:
                    continue
                if followed.tail and followed.tail[-1].number < count:
                    # Another process writes them now, or this one is about to tell of more.
                    followed.tail.clear()
                for follower in followed.followers:
                    if count > follower.seen:
                        follower.called.set()

"""The record of what happens in sessions: written in batches, followed by anybody, in whatever process.

An event is shown once it is committed, and its number is its place in the session. Who follows has a number and no
buffer, so whoever is slow costs nobody anything, and nothing is seen twice or missed.
"""

import asyncio
import contextlib
import logging
from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass, field

from rookery.core.errors import RookeryError, ServiceUnavailable
from rookery.db.database import Database
from rookery.sessions.events import SessionEvent
from rookery.sessions.following import Followers
from rookery.sessions.writing import Happened, Kept, keep, keep_again, kept_after

log = logging.getLogger("rookery.sessions")
BATCH_S = 0.025
"""So long events are gathered before they are written."""
AGAIN_S = 1.0
CLOSE_S = 2.0
MOST_WAITING = 20_000
MOST_CHARACTERS = 32 << 20
"""So much of one session may wait for a database that takes nothing."""
MOST_KNOWN = 10_000


@dataclass(slots=True)
class _Part(Happened):
    """What is still to be written of one session, and who waits for that."""

    flushed: list["asyncio.Future[None]"] = field(default_factory=list["asyncio.Future[None]"])
    characters: int = 0
    failures: int = 0

    def settle(self, error: Exception | None) -> None:
        """Tell those who wait how it went."""
        for each in self.flushed:
            if not each.done():
                each.set_result(None) if error is None else each.set_exception(error)
        self.flushed = []


class SessionLog:
    """One for each process, on its event loop."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._followers = Followers(database)
        self._new: dict[str, _Part] = {}
        """What has come since the last batch."""
        self._busy: dict[str, _Part] = {}
        """What is being written."""
        self._stuck: dict[str, _Part] = {}
        """What could not be written, or may have been: of each session at most one part."""
        self._known: dict[str, int] = {}
        """The number of the last event of a session that surely is there."""
        self._more = asyncio.Event()
        self._writing: asyncio.Task[None] | None = None
        self._trouble: Exception | None = None
        self._closed = False

    @property
    def trouble(self) -> str | None:
        """Why nothing can be written at the moment; None if it can."""
        return str(self._trouble) if self._trouble is not None else None

    def put(self, tenant: str, session_id: str, run_id: str, *events: SessionEvent) -> None:
        """Keep these events soon, after those that were put before. ServiceUnavailable if too much waits already."""
        if self._closed:
            raise ServiceUnavailable("the record of sessions is closed", hint="the server is stopping")
        part = self._new.get(session_id) or _Part(tenant, session_id)
        characters = part.characters + sum(_characters(event) for event in events)
        if len(part.events) + len(events) > MOST_WAITING or characters > MOST_CHARACTERS:
            raise ServiceUnavailable(
                f"what happens cannot be recorded: {self.trouble or 'the database is too slow'}",
                hint="see whether the disk is full",
            )
        part.events += [(run_id, event) for event in events]
        part.characters = characters
        self._new[session_id] = part
        if self._writing is None or self._writing.done():
            self._writing = asyncio.create_task(self._write(), name="session log")
        self._more.set()

    async def flush(self, session_id: str) -> None:
        """Wait until everything that was put of the session is kept. Raises what is in the way; it is tried again."""
        part = self._new.get(session_id) or self._busy.get(session_id) or self._stuck.get(session_id)
        if part is None:
            return
        flushed: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        part.flushed.append(flushed)
        await flushed

    def written(self, session_id: str, events: Sequence[Kept]) -> None:
        """These were committed with something else: who follows the session is told."""
        self._tell([], [(session_id, list(events))])

    async def follow(self, tenant: str, session_id: str, after: int = 0) -> AsyncGenerator[Sequence[Kept]]:
        """The events after that number and all that come, each once and in order, until the reader ends it."""
        async with self._followers.one(session_id) as follower:
            while True:
                follower.seen = after
                follower.called.clear()
                found = follower.tail_after(after)
                if found is None:
                    found = await self._database.read(lambda tx, last=after: kept_after(tx, tenant, session_id, last))
                if found:
                    after = found[-1].number
                    yield found
                else:
                    await follower.called.wait()

    async def close(self) -> None:
        """Write what waits, if that can be done, and take nothing more."""
        self._closed = True
        if self._writing is None:
            return
        with contextlib.suppress(RookeryError, TimeoutError):
            async with asyncio.timeout(CLOSE_S):
                for session_id in {*self._new, *self._busy, *self._stuck}:
                    await self.flush(session_id)
        self._writing.cancel()
        await asyncio.gather(self._writing, return_exceptions=True)
        for part in (*self._stuck.values(), *self._new.values()):
            log.error("%d events of the session %s could not be recorded", len(part.events), part.session_id)

    async def _write(self) -> None:
        while True:
            await self._more.wait()
            await asyncio.sleep(BATCH_S if self._trouble is None else AGAIN_S)
            self._more.clear()
            if self._stuck:
                await self._try_again()
            # What came after something that is stuck has to wait for it.
            self._busy = {name: part for name, part in self._new.items() if name not in self._stuck}
            self._new = {name: part for name, part in self._new.items() if name in self._stuck}
            if self._busy:
                await self._write_batch(list(self._busy.values()))
            self._busy = {}
            if self._stuck:
                self._more.set()

    async def _write_batch(self, batch: Sequence[_Part]) -> None:
        try:
            self._tell(batch, await self._database.change(lambda tx: keep(tx, batch)))
            if not self._stuck:
                self._trouble = None
        except asyncio.CancelledError:
            # It may still be committed.
            self._stuck |= {part.session_id: part for part in batch}
            raise
        except Exception as error:
            # What is wrong with one session is nothing to the others, so each is tried by itself.
            self._stuck |= {part.session_id: part for part in batch}
            if _passes(error):
                self._hold_up(batch, error)
            else:
                await self._try_again()

    async def _try_again(self) -> None:
        """Write what is stuck, one by one; after the first for which the database is to blame the rest has to wait."""
        for part in sorted(self._stuck.values(), key=lambda part: part.failures):
            known = self._known.get(part.session_id)
            try:
                self._tell([part], await self._database.change(lambda tx, p=part, k=known: keep_again(tx, p, k)))
                del self._stuck[part.session_id]
            except Exception as error:
                part.failures += 1
                if _passes(error):
                    self._hold_up(list(self._stuck.values()), error)
                    return
                del self._stuck[part.session_id]
                log.error("events of the session %s are lost", part.session_id, exc_info=error)
                part.settle(error)
        self._trouble = None

    def _hold_up(self, parts: Sequence[_Part], error: Exception) -> None:
        if self._trouble is None:
            log.error("what happens in sessions cannot be recorded: %s", error)
        self._trouble = error
        for part in parts:
            part.settle(error)
            newer = self._new.get(part.session_id)
            if newer is not None:
                newer.settle(error)

    def _tell(self, parts: Sequence[_Part], written: Sequence[tuple[str, list[Kept]]]) -> None:
        for session_id, events in written:
            if events:
                self._known.pop(session_id, None)
                self._known[session_id] = events[-1].number
            self._followers.tell(session_id, events)
        while len(self._known) > MOST_KNOWN:
            del self._known[next(iter(self._known))]
        for part in parts:
            part.settle(None)


def _passes(error: Exception) -> bool:
    """Whether it is worth trying again."""
    return isinstance(error, RookeryError) and error.retryable


def _characters(event: SessionEvent) -> int:
    return sum(len(value) for value in event.data.values() if isinstance(value, str))

"""The record of what happens in sessions: written in batches, followed by anybody, in whatever process.

An event is shown once it is committed, and its number is its place in the session. Who follows has a number and no
buffer, so whoever is slow costs nobody anything, and nothing is seen twice or missed.
"""

import asyncio
import contextlib
import logging
from collections import deque
from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass, field
from typing import Any

import sqlalchemy as sa

from rookery.core.errors import RookeryError, ServiceUnavailable
from rookery.db.database import Database
from rookery.db.tx import Tx
from rookery.lifecycle.run_store import Runs
from rookery.lifecycle.run_tables import run_events
from rookery.sessions.events import NAME, SessionEvent, together
from rookery.sessions.following import Followers
from rookery.sessions.store import SessionRows, events_name

log = logging.getLogger("rookery.sessions")
BATCH_S = 0.025
"""So long events are gathered before they are written."""
AGAIN_S = 1.0
MOST_WAITING = 20_000
"""So many events of one session may wait for a database that takes none."""
AT_ONCE = 500
_e = run_events.c
_AFTER = (
    sa.select(_e.session_number, _e.payload, _e.at_ms, _e.run_id)
    .where(
        _e.tenant == sa.bindparam("of_tenant"),
        _e.session == sa.bindparam("of_session"),
        _e.session_number > sa.bindparam("after", type_=sa.BigInteger),
    )
    .order_by(_e.session_number)
    .limit(sa.bindparam("at_most"))
)


@dataclass(frozen=True, slots=True)
class Kept:
    """An event as it is kept: the `number` counts from 1 in its session."""

    number: int
    name: str
    data: dict[str, Any]
    at_ms: int
    run_id: str


@dataclass(slots=True)
class _Waiting:
    """What is still to be written of one session."""

    tenant: str
    session_id: str
    events: list[tuple[str, SessionEvent]] = field(default_factory=list[tuple[str, SessionEvent]])
    flushed: list["asyncio.Future[None]"] = field(default_factory=list["asyncio.Future[None]"])


def kept_after(tx: Tx, tenant: str, session_id: str, after: int, limit: int = AT_ONCE) -> list[Kept]:
    """The next events after that number."""
    values = {"of_tenant": tenant, "of_session": session_id, "after": after, "at_most": limit}
    return [_shown(row.session_number, row.payload, row.at_ms, row.run_id) for row in tx.all(_AFTER, values)]


def _shown(number: int, payload: dict[str, Any], at_ms: int, run_id: str) -> Kept:
    data = {name: value for name, value in payload.items() if name != NAME}
    return Kept(number, payload.get(NAME, "system"), data, at_ms, run_id)


class SessionLog:
    """One for each process. Everything but `put` of another thread's making is for the event loop."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._followers = Followers(database)
        self._waiting: dict[str, _Waiting] = {}
        self._underway: dict[str, _Waiting] = {}
        self._more = asyncio.Event()
        self._writing: asyncio.Task[None] | None = None
        self._trouble: Exception | None = None

    @property
    def trouble(self) -> str | None:
        """Why nothing can be written at the moment; None if it can."""
        return str(self._trouble) if self._trouble is not None else None

    def put(self, tenant: str, session_id: str, run_id: str, *events: SessionEvent) -> None:
        """Keep these events soon, after those that were put before. ServiceUnavailable if too many wait already."""
        waiting = self._waiting.get(session_id)
        if waiting is None:
            waiting = self._waiting[session_id] = _Waiting(tenant, session_id)
        if len(waiting.events) + len(events) > MOST_WAITING:
            raise ServiceUnavailable(
                f"what happens cannot be recorded: {self.trouble or 'the database is too slow'}",
                hint="see whether the disk is full",
            )
        waiting.events += [(run_id, event) for event in events]
        if self._writing is None or self._writing.done():
            self._writing = asyncio.create_task(self._write(), name="session log")
        self._more.set()

    async def flush(self, session_id: str) -> None:
        """Wait until everything that was put of the session is kept. Raises what is in the way; it is tried again."""
        waiting = self._waiting.get(session_id) or self._underway.get(session_id)
        if waiting is None:
            return
        flushed: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        waiting.flushed.append(flushed)
        await flushed

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
        """Write what waits, if that can be done, and stop."""
        if self._writing is None:
            return
        with contextlib.suppress(RookeryError, TimeoutError):
            async with asyncio.timeout(AGAIN_S):
                for session_id in list(self._waiting):
                    await self.flush(session_id)
        self._writing.cancel()
        await asyncio.gather(self._writing, return_exceptions=True)
        for waiting in self._waiting.values():
            log.error("%d events of the session %s could not be recorded", len(waiting.events), waiting.session_id)

    async def _write(self) -> None:
        while True:
            await self._more.wait()
            await asyncio.sleep(BATCH_S if self._trouble is None else AGAIN_S)
            self._more.clear()
            batch = list(self._waiting.values())
            self._underway, self._waiting = self._waiting, {}
            try:
                self._tell(await self._database.change(lambda tx, batch=batch: [_keep(tx, each) for each in batch]))
                self._trouble = None
            except Exception as error:
                await self._one_by_one(batch, error)
            except BaseException:
                self._put_back(batch)
                raise
            self._underway = {}
            for each in batch:
                _set(each.flushed, None)

    async def _one_by_one(self, batch: Sequence[_Waiting], error: Exception) -> None:
        """After a batch that failed: what is wrong with one session is nothing to the others."""
        again: list[_Waiting] = []
        for each in batch:
            try:
                if len(batch) > 1:
                    self._tell([await self._database.change(lambda tx, each=each: _keep(tx, each))])
                    continue
                reason = error
            except Exception as failure:
                reason = failure
            if isinstance(reason, RookeryError) and reason.retryable:
                error = reason
                again.append(each)
                continue
            log.error("events of the session %s are lost", each.session_id, exc_info=reason)
            _set(each.flushed, reason)
        if again:
            self._later(again, error)
        else:
            self._trouble = None

    def _later(self, batch: Sequence[_Waiting], error: Exception) -> None:
        if self._trouble is None:
            log.error("what happens in sessions cannot be recorded: %s", error)
        self._trouble = error
        for each in batch:
            _set(each.flushed, error)
            each.flushed = []
        self._put_back(batch)

    def _put_back(self, batch: Sequence[_Waiting]) -> None:
        for each in batch:
            newer = self._waiting.get(each.session_id)
            if newer is not None:
                each.events += newer.events
                each.flushed += newer.flushed
            self._waiting[each.session_id] = each
        self._more.set()

    def _tell(self, written: Sequence[tuple[str, list[Kept]]]) -> None:
        for session_id, events in written:
            self._followers.tell(session_id, events)


def _keep(tx: Tx, waiting: _Waiting) -> tuple[str, list[Kept]]:
    """Write the events of one session, and what they are now."""
    runs, kept = Runs(tx, waiting.tenant), deque[Kept]()
    parts: list[tuple[str, list[SessionEvent]]] = []
    for run_id, event in waiting.events:
        if not parts or parts[-1][0] != run_id:
            parts.append((run_id, []))
        parts[-1][1].append(event)
    for run_id, events in parts:
        rows = [event.kept for event in together(events)]
        last = SessionRows(tx, waiting.tenant).count_events(waiting.session_id, len(rows))
        first = last - len(rows) + 1
        runs.append(run_id, rows, session=(waiting.session_id, first))
        kept += [_shown(first + at, dict(row.payload), row.at_ms or 0, run_id) for at, row in enumerate(rows)]
    tx.wake(events_name(waiting.session_id))
    return waiting.session_id, list(kept)


def _set(futures: Sequence["asyncio.Future[None]"], error: Exception | None) -> None:
    for each in futures:
        if each.done():
            continue
        if error is None:
            each.set_result(None)
        else:
            each.set_exception(error)

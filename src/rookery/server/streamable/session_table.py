"""The sessions that are open here, and their record. Idle ones end; so do those that lost their right."""

import asyncio
import contextlib
import logging
import time
from collections.abc import Generator
from typing import TYPE_CHECKING

from rookery.core.errors import RookeryError
from rookery.core.ids import new_id
from rookery.identity.client_sessions import ClientSessions
from rookery.identity.store import now_ms
from rookery.server.hub import Hub
from rookery.server.session import Session
from rookery.server.streamable.exchange import Why
from rookery.server.streamable.requests import Refusal
from rookery.server.streamable.sessions import HttpSession, Owner

if TYPE_CHECKING:
    from rookery.app import Platform

TICK_S = 1.0
SEEN_S = 30.0
LOST_S = 300.0
log = logging.getLogger("rookery.sessions")


class SessionTable:
    """Open sessions by id."""

    def __init__(self, platform: "Platform", hub: Hub) -> None:
        self._platform = platform
        self._hub = hub
        self._server = new_id("srv")
        self._open: dict[str, HttpSession] = {}
        self._opening: set[str] = set()
        self._idle_s = float(platform.settings.http_session_idle_s)
        platform.metrics.level("mcp_sessions_active", lambda: len(self._open))
        self._task = asyncio.create_task(self._watch())

    def __len__(self) -> int:
        return len(self._open)

    def get(self, session_id: str, owner: Owner) -> HttpSession | None:
        """The session, if it is there and belongs to `owner`. Which of the two it was nobody is told."""
        session = self._open.get(session_id)
        if session is None or session.owner != owner or session.ended:
            return None
        if self._is_idle(session):
            return None
        session.seen = time.monotonic()
        return session

    @contextlib.contextmanager
    def place_for(self, session_id: str) -> Generator[None]:
        """Keep a place while the session's handshake runs. Refuses if no further session may be opened."""
        most = self._platform.settings.http_max_sessions
        if len(self._open) + len(self._opening - self._open.keys()) >= most:
            self._count("rejected")
            raise Refusal(503, f"{most} sessions are open; end one first", headers=((b"retry-after", b"30"),))
        self._opening.add(session_id)
        try:
            yield
        finally:
            self._opening.discard(session_id)

    async def add(self, session: HttpSession) -> None:
        """Take in a session that has shaken hands; it is in the record before its client learns its id."""
        actor = await session.session.actor()
        about = session.connection.client_params
        program = f"{about.client_info.name} {about.client_info.version}"[:200] if about is not None else ""
        row = {
            "id": session.session.id,
            "tenant": session.owner[0],
            "client": session.owner[1],
            "subject": session.owner[2],
            "kind": actor.kind,
            "agent": actor.agent,
            # Not every database can keep every character.
            "program": "".join(filter(str.isprintable, program)) or None,
            "revision": session.connection.protocol_version,
        }
        self._open[session.id] = session
        try:
            await self._platform.database.change(lambda tx: ClientSessions(tx, self._server).opened(**row))
        except BaseException:
            self._open.pop(session.id, None)
            raise
        if not session.ended:
            self._hub.join(session.session)
        self._count("created")

    def _count(self, event: str) -> None:
        self._platform.metrics.count("mcp_sessions_events_total", event=event)

    def switch(self, session: HttpSession, to: Session, credential: str) -> None:
        """The same client came with a newer credential: its rights are the session's from here on."""
        self._hub.leave(session.session)
        before = session.session
        to.client, to.told, to.subscribed, to.log_level = (
            before.client,
            before.told,
            before.subscribed,
            before.log_level,
        )
        session.session, session.credential = to, credential
        self._hub.join(to)

    async def end(self, sessions: list[HttpSession], how: str, why: Why = "ended") -> None:
        """End sessions. Their ids are unknown from this moment on."""
        for session in sessions:
            self._open.pop(session.id, None)
            self._hub.leave(session.session)
            session.end(why)
            self._count("stale_cleanup" if how == "idle" else "terminated")
        ids = [session.session.id for session in sessions]
        try:
            for start in range(0, len(ids), 500):
                part = ids[start : start + 500]
                await self._platform.database.change(
                    lambda tx, part=part: ClientSessions(tx, self._server).ended(part, how)
                )
        except RookeryError as error:
            # They have ended all the same, and a server without its database must still be able to stop.
            log.warning("the end of %d sessions was not recorded: %s", len(ids), error.message)

    def _is_idle(self, session: HttpSession) -> bool:
        return not session.busy and time.monotonic() - session.seen > self._idle_s

    async def _watch(self) -> None:
        told_at = 0.0
        while True:
            await asyncio.sleep(min(TICK_S, self._idle_s / 4))
            try:
                await self._end_those([session for session in self._open.values() if self._is_idle(session)], "idle")
                await self._end_lost()
                if time.monotonic() - told_at > SEEN_S:
                    told_at = time.monotonic()
                    await self._tell_seen()
            except Exception:
                # The next look may find the database well again.
                log.exception("sessions could not be looked after")

    async def _end_lost(self) -> None:
        looked_at = [(session, session.session) for session in self._open.values()]
        lost = [(session, identity) for session, identity in looked_at if await _lost(identity)]
        # One that came with a newer credential meanwhile goes on.
        await self._end_those([session for session, identity in lost if session.session is identity], "right lost")

    async def _end_those(self, sessions: list[HttpSession], how: str) -> None:
        if sessions:
            await self.end(sessions, how)

    async def _tell_seen(self) -> None:
        ids = [session.session.id for session in self._open.values()]
        server, before = self._server, now_ms() - int(LOST_S * 1000)
        for start in range(0, len(ids), 500):
            part = ids[start : start + 500]
            await self._platform.database.change(lambda tx, part=part: ClientSessions(tx, server).seen(part))
        await self._platform.database.change(lambda tx: ClientSessions(tx, server).lost(before))

    def quieten(self) -> None:
        """Close the streams that belong to no call: whoever listens there would keep the server from stopping."""
        for session in self._open.values():
            session.standalone.close()

    async def close(self) -> None:
        """End everything that is open; the database is still there."""
        self._task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await self._task
        await self.end(list(self._open.values()), "server stopped", "stopped")


async def _lost(session: Session) -> bool:
    """Whether the identity of a session is gone: a revoked token must not keep a stream open."""
    try:
        await session.actor()
    except RookeryError as error:
        if error.retryable:
            # That it could not be looked up says nothing about the right.
            return False
        log.info("a session lost its right: %s", error.message, extra={"session": session.id})
        return True
    return False

"""The hub: knows the live sessions and tells them when their tools change. Runs on the event loop, and only there."""

import asyncio
import contextlib
import logging
from typing import TYPE_CHECKING

from mcp.server.subscriptions import ToolsListChanged

from rookery.core.errors import RookeryError
from rookery.core.events import Event
from rookery.identity.tables import EPOCH
from rookery.server.session import Session

if TYPE_CHECKING:
    from rookery.app import Platform

POLL_S = 1.0
log = logging.getLogger("rookery.hub")


class Hub:
    """Watches for changed rights, made here or by another process, and notifies exactly the sessions concerned."""

    def __init__(self, platform: "Platform") -> None:
        self.sessions: set[Session] = set()
        self._platform = platform
        self._changed = asyncio.Event()
        self._unsubscribe = platform.events.subscribe(self._heard)
        self._task = asyncio.create_task(self._watch())

    def _heard(self, event: Event) -> None:
        if event.name == "ScopeChanged":
            self._changed.set()

    async def _watch(self) -> None:
        seen: int | None = None
        while True:
            try:
                now = self._platform.database.epoch(EPOCH)
                changed, seen = seen is not None and now != seen, now
                for session in [each for each in self.sessions if changed or each.outdated]:
                    await self._refresh(session)
            except Exception:
                # The next look may find the database well again, and nobody else tells the sessions.
                log.exception("changed rights could not be looked for")
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._changed.wait(), POLL_S)
            self._changed.clear()

    async def _refresh(self, session: Session) -> None:
        if session.told is None:
            return
        try:
            names = [tool.name for tool in await session.tools()]
        except RookeryError as error:
            log.warning("a session lost its identity: %s", error.message, extra={"session": session.id})
            return
        if names == session.told:
            return
        session.told = names
        await session.bus.publish(ToolsListChanged())
        # A client that does not read must not keep the others from hearing; it has the news waiting already.
        if session.client is not None and (session.announcing is None or session.announcing.done()):
            session.announcing = asyncio.create_task(session.client.send_tool_list_changed())

    async def close(self) -> None:
        self._unsubscribe()
        self._task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await self._task
        for session in self.sessions:
            if session.announcing is not None:
                session.announcing.cancel()

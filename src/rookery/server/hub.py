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
        self._loop = asyncio.get_running_loop()
        self._unsubscribe = platform.events.subscribe(self._heard)
        self._task = asyncio.create_task(self._watch())

    def _heard(self, event: Event) -> None:
        if event.name == "ScopeChanged":
            self._changed.set()

    async def _watch(self) -> None:
        seen = self._platform.database.epoch(EPOCH)
        while True:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._changed.wait(), POLL_S)
            self._changed.clear()
            now = self._platform.database.epoch(EPOCH)
            if now == seen:
                continue
            seen = now
            for session in list(self.sessions):
                await self._refresh(session)

    async def _refresh(self, session: Session) -> None:
        before = session.known_tools
        if before is None:
            return
        try:
            after = await session.tools()
        except RookeryError as error:
            log.warning("a session lost its identity: %s", error.message, extra={"session": session.id})
            return
        if [tool.name for tool in before] == [tool.name for tool in after]:
            return
        await session.bus.publish(ToolsListChanged())
        if session.client is not None:
            await session.client.send_tool_list_changed()

    async def close(self) -> None:
        self._unsubscribe()
        self._task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await self._task

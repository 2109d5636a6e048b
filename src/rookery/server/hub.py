"""The hub: knows the live sessions and tells them what has changed. Runs on the event loop, and only there."""

import asyncio
import contextlib
import logging
from typing import TYPE_CHECKING

from mcp.server.subscriptions import (
    PromptsListChanged,
    ResourcesListChanged,
    ResourceUpdated,
    ServerEvent,
    ToolsListChanged,
)

from rookery.core.errors import RookeryError
from rookery.core.events import Event
from rookery.identity.live_sessions import FACT, LiveSession, LiveSessions
from rookery.identity.tables import EPOCH
from rookery.server.session import LISTINGS, Listing, Session
from rookery.server.sightings import Sightings

if TYPE_CHECKING:
    from mcp.server.session import ServerSession

    from rookery.app import Platform

POLL_S = 1.0
CHANGED: dict[Listing, ServerEvent] = {
    "tools": ToolsListChanged(),
    "resources": ResourcesListChanged(),
    "prompts": PromptsListChanged(),
}
PUBLISHED: dict[str, Listing] = {
    "ToolsListChanged": "tools",
    "ResourcesListChanged": "resources",
    "PromptsListChanged": "prompts",
}
log = logging.getLogger("rookery.hub")


class Hub:
    """Watches for changed rights, made here or by another process, and notifies exactly the sessions concerned.

    Passes on what handlers publish of changed lists and resources, to the sessions of the same tenant.
    """

    def __init__(self, platform: "Platform") -> None:
        self.sessions: set[Session] = set()
        self.sightings = Sightings(platform)
        self._platform = platform
        self._again: set[Session] = set()
        """Those who could not be looked up when rights had changed."""
        self._changed = asyncio.Event()
        # A dict for its order: what is published again before it was told is told once.
        self._heard_of: dict[tuple[str, str, str | None], None] = {}
        self._unsubscribe = platform.events.subscribe(self._heard)
        known: LiveSessions | None = platform.calls.facts.get(FACT)
        self._forget = known.add(self._live) if known is not None else None
        self._task = asyncio.create_task(self._watch())

    def join(self, session: Session) -> None:
        """Look after `session`, until it has left as often as it joined."""
        session.hub = self
        session.present += 1
        self.sessions.add(session)

    def leave(self, session: Session) -> None:
        session.present -= 1
        if session.present <= 0:
            self.sessions.discard(session)

    def _live(self) -> list[LiveSession]:
        """Those who are here now. Asked from other threads too, so it takes one look at the set."""
        return [each.shown for each in tuple(self.sessions)]

    def _heard(self, event: Event) -> None:
        if event.name in PUBLISHED or event.name == "ResourceUpdated":
            self._heard_of[event.name, event.tenant, event.subject] = None
        elif event.name != "ScopeChanged":
            return
        self._changed.set()

    async def _watch(self) -> None:
        seen: int | None = None
        while True:
            try:
                now = self._platform.database.epoch(EPOCH)
                changed, seen = seen is not None and now != seen, now
                again, self._again = self._again, set()
                for session in [each for each in self.sessions if changed or each.outdated or each in again]:
                    await self._refresh(session)
                await self._pass_on()
            except Exception:
                # The next look may find the database well again, and nobody else tells the sessions.
                log.exception("changed rights could not be looked for")
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._changed.wait(), POLL_S)
            self._changed.clear()

    async def _refresh(self, session: Session) -> None:
        """Tell a session which of its lists are no longer what it was told."""
        try:
            for listing in LISTINGS:
                if listing not in session.told and not session.streams:
                    continue
                names = await session.names(listing)
                if names != session.told.get(listing, names):
                    session.told[listing] = names
                    self._announce(session, CHANGED[listing])
                if session.streams and names != session.streamed.get(listing):
                    session.streamed[listing] = names
                    await session.bus.publish(CHANGED[listing])
        except RookeryError as error:
            if error.retryable:
                self._again.add(session)
                return
            log.warning("a session lost its identity: %s", error.message, extra={"session": session.id})
            session.close_streams()

    async def _pass_on(self) -> None:
        """Tell the sessions what was published since the last look."""
        heard, self._heard_of = self._heard_of, {}
        for name, tenant, subject in heard:
            for session in [each for each in self.sessions if each.tenant == tenant]:
                listing = PUBLISHED.get(name)
                if listing is not None:
                    await self._tell(session, CHANGED[listing], client=listing in session.told)
                elif subject is not None:
                    await self._updated(session, subject)

    async def _updated(self, session: Session, uri: str) -> None:
        wanted = uri in session.subscribed
        if not wanted and not session.streams:
            return
        try:
            if await session.may_read(uri):
                await self._tell(session, ResourceUpdated(uri), client=wanted)
        except RookeryError as error:
            log.warning("a session lost its identity: %s", error.message, extra={"session": session.id})

    async def _tell(self, session: Session, event: ServerEvent, *, client: bool) -> None:
        if client:
            self._announce(session, event)
        if session.streams:
            await session.bus.publish(event)

    def _announce(self, session: Session, event: ServerEvent) -> None:
        """Tell a client with a lasting connection. One that does not read must not keep the others from hearing."""
        if session.client is None:
            return
        session.news[event] = None
        if session.announcing is None or session.announcing.done():
            session.announcing = asyncio.create_task(_send_news(session, session.client))

    async def close(self) -> None:
        self._unsubscribe()
        if self._forget is not None:
            self._forget()
        self._task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await self._task
        await self.sightings.settle()
        for session in self.sessions:
            if session.announcing is not None:
                session.announcing.cancel()


async def _send_news(session: Session, client: "ServerSession") -> None:
    while session.news:
        event = next(iter(session.news))
        del session.news[event]
        if isinstance(event, ResourceUpdated):
            await client.send_resource_updated(event.uri)
        elif isinstance(event, ToolsListChanged):
            await client.send_tool_list_changed()
        elif isinstance(event, ResourcesListChanged):
            await client.send_resource_list_changed()
        else:
            await client.send_prompt_list_changed()

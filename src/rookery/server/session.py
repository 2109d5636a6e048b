"""A session: who is at the other end of a connection, kept up to date."""

import asyncio
import time
from dataclasses import replace
from typing import TYPE_CHECKING

from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler

from rookery.core.actor import Actor
from rookery.core.ids import new_id
from rookery.core.tool import Tool
from rookery.identity.resolve import Binding, Resolved
from rookery.identity.tables import EPOCH

if TYPE_CHECKING:
    from mcp.server.session import ServerSession

    from rookery.app import Platform


class Session:
    """One connection's identity. Rights that were changed count from the next call on."""

    __slots__ = (
        "_bus",
        "_epoch",
        "_listed",
        "_listen",
        "_resolved",
        "announcing",
        "binding",
        "client",
        "id",
        "platform",
        "told",
    )

    def __init__(self, platform: "Platform", binding: Binding, resolved: Resolved, epoch: int) -> None:
        self.platform = platform
        self.binding = binding
        self.id = binding.session or new_id("ses")
        self.client: ServerSession | None = None
        self.told: list[str] | None = None
        """The names that the client was last told of, by a list or by the news of another; None before the first."""
        self.announcing: asyncio.Task[None] | None = None
        self._resolved = resolved
        self._epoch: int = epoch
        self._listed: list[Tool] | None = None
        self._bus: InMemorySubscriptionBus | None = None
        self._listen: ListenHandler | None = None

    async def actor(self) -> Actor:
        """Who acts, as the database has it now."""
        resolved = self._resolved
        epoch = self.platform.database.epoch(EPOCH)
        if epoch != self._epoch or self.outdated:
            resolved = await self.platform.database.read(
                lambda tx: self.platform.resolver.resolve(tx, self.binding), timeout_s=10
            )
            self._resolved, self._epoch, self._listed = resolved, epoch, None
        return resolved.actor

    async def tools(self) -> list[Tool]:
        """The tools that this session may call now."""
        actor = await self.actor()
        if self._listed is None:
            self._listed = self.platform.registry.listed(actor)
        return self._listed

    async def tell_tools(self) -> list[Tool]:
        """The same, for the client, who needs no news of them from here on."""
        tools = await self.tools()
        self.told = [tool.name for tool in tools]
        return tools

    @property
    def outdated(self) -> bool:
        """Whether a right has run out since it was last looked at."""
        until = self._resolved.good_until_ms
        return until is not None and time.time_ns() // 1_000_000 >= until

    @property
    def bus(self) -> InMemorySubscriptionBus:
        """Carries changes to the streams that a 2026-07-28 client keeps open; its own, so nobody else's leak in."""
        if self._bus is None:
            self._bus = InMemorySubscriptionBus()
        return self._bus

    @property
    def listen(self) -> ListenHandler:
        if self._listen is None:
            self._listen = ListenHandler(self.bus)
        return self._listen


async def open_session(platform: "Platform", binding: Binding) -> Session:
    """A session for a binding; raises what is wrong with the binding."""
    epoch = platform.database.epoch(EPOCH)
    session = binding.session or new_id("ses")
    bound = replace(binding, session=session)
    resolved = await platform.database.read(lambda tx: platform.resolver.resolve(tx, bound), timeout_s=10)
    return Session(platform, bound, resolved, epoch)

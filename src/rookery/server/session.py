"""A session: who is at the other end of a connection, kept up to date."""

import asyncio
import json
import time
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal

import mcp_types as types
from mcp.server.context import ServerRequestContext
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler, ServerEvent

from rookery.core.actor import Actor
from rookery.core.context import LOG_LEVELS
from rookery.core.decide import decide
from rookery.core.ids import new_id
from rookery.core.prompt import Prompt
from rookery.core.resource import Resource
from rookery.core.tool import Tool
from rookery.identity.live_sessions import LiveSession
from rookery.identity.resolve import Binding, Resolved
from rookery.identity.store import now_ms
from rookery.identity.tables import EPOCH
from rookery.server.asking import Ctx
from rookery.server.door import ClientDoor

if TYPE_CHECKING:
    from mcp.server.session import ServerSession

    from rookery.app import Platform
    from rookery.server.hub import Hub

Listing = Literal["tools", "resources", "prompts"]
LISTINGS: tuple[Listing, ...] = ("tools", "resources", "prompts")
Names = dict[Listing, list[str]]
QUIETEST_BY_DEFAULT = LOG_LEVELS.index("info")


class Session:
    """One connection's identity. Rights that were changed count from the next call on.

    Requests of 2026-07-28 over HTTP, which have no connection, share a session by identity: nothing in it may depend on
    which of them came last.
    """

    __slots__ = (
        "_bus",
        "_epoch",
        "_listed",
        "_listen",
        "_resolved",
        "announcing",
        "binding",
        "client",
        "hub",
        "id",
        "log_level",
        "news",
        "platform",
        "present",
        "since_ms",
        "streamed",
        "streams",
        "subscribed",
        "told",
    )

    def __init__(
        self, platform: "Platform", binding: Binding, resolved: Resolved, epoch: int, hub: "Hub | None" = None
    ) -> None:
        self.platform = platform
        self.binding = binding
        self.id = binding.session or new_id("ses")
        self.hub = hub
        """Who tells this session of changes. A door without lasting connections sets it; the others join."""
        self.present = 0
        """How often the hub was told to look after this session: by a connection, by each open stream."""
        self.client: ServerSession | None = None
        """The way to a client with a lasting connection that shakes hands."""
        self.told: Names = {}
        """What such a client was last told of, by a list or by the news of another."""
        self.subscribed: set[str] = set()
        """The resources that such a client wants to hear of."""
        self.log_level = QUIETEST_BY_DEFAULT
        self.streams = 0
        self.streamed: Names = {}
        """What the open streams of 2026-07-28 were last told of."""
        self.news: dict[ServerEvent, None] = {}
        """What the client has yet to be told, each once."""
        self.announcing: asyncio.Task[None] | None = None
        self.since_ms = now_ms()
        self._resolved = resolved
        self._epoch: int = epoch
        self._listed: dict[Listing, list[Any]] = {}
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
            self._resolved, self._epoch, self._listed = resolved, epoch, {}
        return resolved.actor

    @property
    def tenant(self) -> str:
        return self._resolved.actor.tenant

    @property
    def shown(self) -> LiveSession:
        """What people are told of it."""
        about = self.client.client_params if self.client is not None else None
        program = f"{about.client_info.name} {about.client_info.version}"[:200] if about is not None else ""
        actor = self._resolved.actor
        return LiveSession(
            id=self.id,
            tenant=actor.tenant,
            agent=actor.agent,
            profile=actor.profile,
            binding=self.binding,
            since_ms=self.since_ms,
            program=program,
        )

    @property
    def principal(self) -> str:
        """Tenant, client and subject, which a session keeps for life, in one text."""
        actor = self._resolved.actor
        return json.dumps([actor.tenant, actor.auth.client, actor.subject])

    def apart(self) -> "Session":
        """The same identity for one request alone: what that request sets is nobody else's."""
        apart = Session(self.platform, self.binding, self._resolved, self._epoch)
        apart._listed = self._listed
        return apart

    async def tools(self) -> list[Tool]:
        """The tools that this session may call now."""
        actor = await self.actor()
        if "tools" not in self._listed:
            self._listed["tools"] = self.platform.registry.listed(actor)
        return self._listed["tools"]

    async def resources(self) -> list[Resource]:
        """The resources and templates that it may read now."""
        actor = await self.actor()
        if "resources" not in self._listed:
            self._listed["resources"] = self.platform.registry.resources(actor)
        return self._listed["resources"]

    async def prompts(self) -> list[Prompt]:
        """The prompts that it may have now."""
        actor = await self.actor()
        if "prompts" not in self._listed:
            self._listed["prompts"] = self.platform.registry.prompts(actor)
        return self._listed["prompts"]

    async def names(self, listing: Listing) -> list[str]:
        """The names of what is listed now."""
        of = {"tools": self.tools, "resources": self.resources, "prompts": self.prompts}[listing]
        return [each.name for each in await of()]

    async def may_read(self, uri: str) -> bool:
        """Whether there is a resource at `uri` that this session may read now."""
        found = self.platform.registry.find_resource(uri)
        return found is not None and decide(await self.actor(), found[0].tool).outcome == "allow"

    def door(self, ctx: Ctx, params: types.InputResponseRequestParams) -> ClientDoor:
        """The way back from a call of this session to its client."""
        return ClientDoor(ctx, params)

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

    async def listen(
        self, ctx: ServerRequestContext[Any, Any], params: types.SubscriptionsListenRequestParams
    ) -> types.SubscriptionsListenResult:
        """Serve one stream of changes until its client ends it; the hub looks after the session as long."""
        wanted = params.notifications
        uris = [uri for uri in wanted.resource_subscriptions or () if await self.may_read(uri)]
        wanted = wanted.model_copy(update={"resource_subscriptions": uris})
        if not self.streams:
            self.streamed = {listing: await self.names(listing) for listing in LISTINGS}
        if self._listen is None:
            self._listen = ListenHandler(self.bus)
        self.streams += 1
        if self.hub is not None:
            self.hub.join(self)
        try:
            return await self._listen(ctx, params.model_copy(update={"notifications": wanted}))
        finally:
            self.streams -= 1
            if self.hub is not None:
                self.hub.leave(self)

    def close_streams(self) -> None:
        """End every open stream of changes as the protocol wants it."""
        if self._listen is not None:
            self._listen.close()


async def open_session(platform: "Platform", binding: Binding, hub: "Hub | None" = None) -> Session:
    """A session for a binding; raises what is wrong with the binding.

    `hub` is for doors whose requests share a session; a connection joins the hub itself.
    """
    epoch = platform.database.epoch(EPOCH)
    session = binding.session or new_id("ses")
    bound = replace(binding, session=session)
    resolved = await platform.database.read(lambda tx: platform.resolver.resolve(tx, bound), timeout_s=10)
    if bound.issue is not None:
        # A session stays in the project that it began in, also if its issue moves to another.
        bound = replace(bound, project=resolved.actor.project)
    return Session(platform, bound, resolved, epoch, hub)

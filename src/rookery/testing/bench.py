"""A platform on a folder of its own, with the plugins under test in it."""

import contextlib
import tempfile
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from types import ModuleType
from typing import Any

import mcp_types as types

from rookery.app import Platform, make_platform
from rookery.core.actor import Actor
from rookery.core.errors import NotFound
from rookery.core.lint import lint, lint_declared
from rookery.core.tool import Tool
from rookery.db.storage import TableStorage, now_ms
from rookery.db.tx import Tx
from rookery.identity.access import AccessStore, HolderKind
from rookery.identity.resolve import Binding
from rookery.identity.store import DEFAULT_AGENT, DEFAULT_TENANT, IdentityStore
from rookery.server.hub import Hub
from rookery.server.mcp import make_server
from rookery.server.session import open_session
from rookery.settings import Settings
from rookery.testing.client import BenchClient
from rookery.testing.connection import Era, joined
from rookery.testing.people import Model, People, Person


class Bench:
    """Makes clients, gives them rights, and lets time pass. Made by `open_bench`."""

    def __init__(self, platform: Platform, domains: Mapping[str, ModuleType]) -> None:
        self.platform = platform
        """The platform itself, for whatever is not here: its registry, its database, its settings."""
        self._domains = domains
        self._server = make_server(platform)
        self._hub = Hub(platform)
        self._clients: list[BenchClient] = []
        self._later_ms = 0
        platform.calls.open_storage = self._open_storage

    async def client(
        self,
        agent: str = DEFAULT_AGENT,
        *,
        era: Era = "2025-11-25",
        tenant: str = DEFAULT_TENANT,
        as_owner: bool = False,
        profile: str | None = None,
        permissions: Sequence[str] | None = None,
        scopes: Sequence[str] | None = None,
        elicit: Person | None = None,
        sample: Model | None = None,
        roots: Sequence[str] | None = None,
        log_level: types.LoggingLevel = "debug",
        timeout_s: float = 30,
        **binding: Any,
    ) -> BenchClient:
        """A client that has shaken hands, acting as `agent`, who is made if there is none of that name.

        `as_owner` makes it the owner instead. `profile` is the agent's type, `permissions` its own list of tools,
        and `scopes` those of a token that the client then uses. Without `elicit`, `sample` or `roots` the client
        cannot be asked for these. What else a door can bind goes into `binding`, such as `scheduler=True`.
        """
        token = self.platform.database.direct(
            lambda tx: _prepare(tx, tenant, agent, as_owner, permissions, scopes), write=True
        )
        named = None if as_owner else agent
        bound = Binding(tenant=tenant, agent=named, as_owner=as_owner, profile=profile, token=token, **binding)
        transport = joined(self._server, self._hub, await open_session(self.platform, bound))
        people = People(elicit, sample, roots)
        client = BenchClient(transport, people, era=era, log_level=log_level, timeout_s=timeout_s)
        self._clients.append(client)
        await client.open()
        return client

    async def as_owner(self, tool: str, /, **arguments: Any) -> dict[str, Any]:
        """Call a tool as the owner, past any protocol, to prepare or to look at something. Raises RookeryError."""
        return await self._owner_calls(DEFAULT_TENANT, tool, arguments)

    async def grant(self, agent: str, *tools: str, tenant: str = DEFAULT_TENANT) -> None:
        """Give `agent` tools that it would not have. Its clients see them from their next request on."""
        for tool in tools:
            await self._owner_calls(tenant, "grant_tool", {"agent": agent, "tool": tool})

    async def revoke(self, agent: str, *tools: str, tenant: str = DEFAULT_TENANT) -> None:
        """Take back what `grant` gave."""
        identity = self.actor(agent=agent, tenant=tenant).agent
        for grant in (await self._owner_calls(tenant, "list_grants", {}))["grants"]:
            if (grant["agent"], grant["revoked"]) == (identity, False) and grant["tool"] in tools:
                await self._owner_calls(tenant, "revoke_grant", {"id": grant["id"]})

    async def _owner_calls(self, tenant: str, tool: str, arguments: dict[str, Any]) -> dict[str, Any]:
        owner = self.actor(as_owner=True, tenant=tenant)
        return (await self.platform.calls.call(owner, tool, arguments)).structured

    def actor(self, **binding: Any) -> Actor:
        """Who a client with this binding is, as the permission rules see it."""
        bound = Binding(**binding)
        return self.platform.database.direct(lambda tx: self.platform.resolver.resolve(tx, bound)).actor

    def lint(self) -> list[str]:
        """What is wrong with the declarations of the plugins under test; a plugin with faults is not loaded."""
        own = [each for each in self.platform.registry.everything() if each.domain in self._domains]
        return [fault for each in own for fault in (lint(each) if isinstance(each, Tool) else lint_declared(each))]

    def pass_time(self, seconds: float) -> None:
        """Make it later for `ctx.storage`, so that what has a time to live comes to its end."""
        self._later_ms += round(seconds * 1000)

    async def close(self) -> None:
        """End every session. The platform is left to whoever made it."""
        async with contextlib.AsyncExitStack() as ends:
            ends.push_async_callback(self._hub.close)
            for client in self._clients:
                ends.push_async_callback(client.close)

    def _open_storage(self, tx: Any, tenant: str, domain: str, *, writable: bool) -> TableStorage:
        return TableStorage(tx, tenant, domain, writable=writable, clock=lambda: now_ms() + self._later_ms)


def _prepare(
    tx: Tx,
    tenant: str,
    agent: str,
    as_owner: bool,
    permissions: Sequence[str] | None,
    scopes: Sequence[str] | None,
) -> str | None:
    """Make what the client needs and is not there; the secret of its token, if it uses one."""
    store = IdentityStore(tx, tenant)
    store.set_up()
    try:
        known = store.agent(agent)
    except NotFound:
        known = store.create_agent(agent, permissions)
    if permissions is not None:
        store.update_agent(known.id, permissions=list(permissions))
    if scopes is None:
        return None
    holder: tuple[str, HolderKind] = (store.owner().id, "person") if as_owner else (known.id, "agent")
    return AccessStore(tx, tenant).create_token("bench", *holder, list(scopes), "bench", None)[1]


@asynccontextmanager
async def open_bench(domains: Mapping[str, ModuleType] | None = None, **settings: Any) -> AsyncGenerator[Bench]:
    """A bench with `domains`, plugins by the names of their entry points, until the block is left.

    `settings` are those of rookery.toml. Its database is SQLite in a folder that is removed; `database=` names
    another. Installed plugins are loaded only with `plugins=True`.
    """
    with tempfile.TemporaryDirectory(prefix="rookery-bench-") as home:
        chosen: dict[str, Any] = {"home": home, "plugins": False, **settings}
        with contextlib.closing(make_platform(Settings(**chosen), extra=domains)) as platform:
            bench = Bench(platform, domains or {})
            try:
                yield bench
            finally:
                await bench.close()

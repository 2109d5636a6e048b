"""The tools in process: what a program hands to the Claude Agent SDK, or to any client of its own, without a port."""

import asyncio
import copy
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import mcp_types as types
from mcp.server.models import InitializationOptions
from mcp.server.runner import serve_dual_era_loop

from rookery import __version__
from rookery.core.actor import Actor
from rookery.core.decide import decide
from rookery.core.errors import ConfigurationError
from rookery.core.ids import new_id
from rookery.core.registry import Registry
from rookery.core.tool import Tool
from rookery.identity.binding import Binding
from rookery.identity.renewing import Renewal
from rookery.identity.resolve import Resolved
from rookery.identity.tables import EPOCH
from rookery.server.answers import Ctx
from rookery.server.door import ClientDoor
from rookery.server.mcp import NAME, init_options, make_server
from rookery.server.session import Session
from rookery.sessions.port import OURS

if TYPE_CHECKING:
    from rookery.app import Platform
    from rookery.sessions.manager import AgentSessions

EXTRA = "extra"
"""The feature group of tools that the program brings along."""
CALL_ID = "claudecode/toolUseId"


@dataclass(frozen=True, slots=True)
class CallStatus:
    """What a running call says of itself. `call_id` is what the client calls the call, if it says so."""

    tool: str
    text: str
    call_id: str | None = None
    done: float | None = None
    """How far it is; None for a line of status or of its log."""
    total: float | None = None


OnStatus = Callable[[CallStatus], None]


def create_tool_server(
    platform: "Platform",
    actor: Actor,
    *,
    extra_tools: Sequence[Tool] = (),
    domains: Collection[str] | None = None,
    name: str = OURS,
    on_status: OnStatus | None = None,
) -> Any:
    """What belongs into the `mcp_servers` of an agent that acts as `actor`, under `name`: `mcp__rookery__ping`.

    The agent is shown what the actor may call, and nothing else. Its rights are looked up again for each call.
    `domains` limits it to those feature groups. `extra_tools` are held to the same rights as our own, and belong to
    no group. What running calls say of themselves, which the SDK does not pass on, goes to `on_status`, on the loop.
    It is a dict of type, name and instance; the SDK has a type for it that is not here without the extra `claude`.
    """
    limited = _limited(platform, actor, extra_tools, domains)
    return {"type": "sdk", "name": name, "instance": ToolServer(*limited, on_status)}


def allowed_tool_names(
    platform: "Platform",
    actor: Actor,
    *,
    extra_tools: Sequence[Tool] = (),
    domains: Collection[str] | None = None,
    name: str = OURS,
    existing: Iterable[str] = (),
) -> list[str]:
    """`existing` and the names of those tools for which nobody has to be asked: the `allowed_tools` of an agent.

    That spares the question, nothing else: a call is decided again. In mode ask there are none of ours among them,
    since the client would not ask for any that it finds there.
    """
    names = list(existing)
    if actor.mode != "ask":
        offered, held = _limited(platform, actor, extra_tools, domains)
        free = [tool for tool in offered.registry if decide(held, tool).outcome == "allow"]
        names += [f"mcp__{name}__{tool.name}" for tool in free]
    return list(dict.fromkeys(names))


def _limited(
    platform: "Platform", actor: Actor, extra_tools: Sequence[Tool], domains: Collection[str] | None
) -> tuple["Platform", Actor]:
    """The platform with the extra tools, and the actor held to the domains."""
    if extra_tools:
        registry = platform.registry.copy()
        for tool in extra_tools:
            registry.add(tool, EXTRA)
        calls = copy.copy(platform.calls)
        calls.registry = registry
        platform = replace(platform, registry=registry, calls=calls)
    if domains is None:
        return platform, actor
    names = _in_domains(platform.registry, domains)
    within, allowed = (names if held is None else held & names for held in (actor.within, actor.allowed))
    return platform, replace(actor, within=within, allowed=allowed)


def _in_domains(registry: Registry, domains: Collection[str]) -> frozenset[str]:
    known = {tool.domain for tool in registry}
    unknown = sorted(set(domains) - known)
    if unknown:
        raise ConfigurationError(
            f"there is no feature group {', '.join(unknown)}", hint=f"known: {', '.join(sorted(known - {EXTRA}))}"
        )
    return frozenset(tool.name for tool in registry if tool.domain in {*domains, EXTRA})


class ToolServer:
    """What the SDK takes for an MCP server. Unlike one, it can be connected as often as somebody connects to it."""

    def __init__(self, platform: "Platform", actor: Actor, on_status: OnStatus | None) -> None:
        self.actor = actor
        """Who acts, as the program has it. Another mode counts from the next call on."""
        self.on_status = on_status
        self._platform = platform

    def create_initialization_options(self) -> InitializationOptions:
        """What the SDK hands to `run`, which knows better once there is a session."""
        return InitializationOptions(
            server_name=NAME, server_version=__version__, capabilities=types.ServerCapabilities()
        )

    async def run(
        self,
        read_stream: Any,
        write_stream: Any,
        initialization_options: InitializationOptions | None = None,
        raise_exceptions: bool = False,
    ) -> None:
        """Serve one session, until the client closes its end."""
        session = InProcessSession(self._platform, self)
        server = await asyncio.to_thread(make_server, self._platform)
        await serve_dual_era_loop(
            server,
            read_stream,
            write_stream,
            lifespan_state=session,
            session_id=session.id,
            init_options=await init_options(server, session),
            raise_exceptions=raise_exceptions,
        )


class InProcessSession(Session):
    """The session of an actor that the program has made. What it was held to stays, what it has is looked up."""

    __slots__ = ("_of", "_renew")

    def __init__(self, platform: "Platform", of: ToolServer) -> None:
        given = of.actor
        binding = Binding(tenant=given.tenant, session=given.session or new_id("ses"))
        super().__init__(platform, binding, Resolved(given, None), platform.database.epoch(EPOCH))
        self._of = of
        # A session that the platform keeps has a mode and a run of its own, which may be others by the next call.
        kept: AgentSessions | None = platform.calls.facts.get("sessions")
        self._renew = Renewal(platform.database, platform.resolver) if kept is None else kept.renew

    async def actor(self) -> Actor:
        now = await self._renew(replace(self._of.actor, session=self.id))
        if now != self._resolved.actor:
            self._resolved, self._listed = Resolved(now, None), {}
        return now

    def door(self, ctx: Ctx, params: types.InputResponseRequestParams) -> ClientDoor:
        on_status = self._of.on_status
        return ClientDoor(ctx, params) if on_status is None else _TellingDoor(ctx, params, on_status)


class _TellingDoor(ClientDoor):
    """Tells the program as well what it tells the client."""

    __slots__ = ("_call_id", "_on_status", "_tool")

    def __init__(self, ctx: Ctx, params: types.InputResponseRequestParams, on_status: OnStatus) -> None:
        super().__init__(ctx, params)
        named: Any = ctx.meta.get(CALL_ID) if ctx.meta else None
        self._call_id = named if isinstance(named, str) else None
        self._tool: str = getattr(params, "name", "")
        self._on_status = on_status

    def tell(self, method: str, params: dict[str, Any]) -> None:
        done, total = (params["progress"], params["total"]) if method == "progress" else (None, None)
        status = CallStatus(self._tool, params["message"] or "", self._call_id, done, total)
        self._loop.call_soon_threadsafe(self._on_status, status)
        super().tell(method, params)

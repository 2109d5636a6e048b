"""The MCP server: the SDK's low-level server in front of the call path. One for all sessions."""

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, cast

import mcp_types as types
from mcp.server.caching import CacheableMethod, CacheHint
from mcp.server.context import CallNext, HandlerResult, ServerMiddleware
from mcp.server.lowlevel import NotificationOptions, Server
from mcp.server.models import InitializationOptions
from mcp.server.request_state import RequestStateBoundary, RequestStateSecurity
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from rookery import __version__
from rookery.around.timing import tracing
from rookery.core.context import LOG_LEVELS
from rookery.core.errors import InvalidRequest
from rookery.db.server_keys import server_key
from rookery.server.answers import Ctx, sealed
from rookery.server.calling import call_tool, get_prompt, not_found, read_resource
from rookery.server.completing import complete
from rookery.server.listing import list_prompts, list_resources, list_templates, list_tools
from rookery.server.session import Session

if TYPE_CHECKING:
    from rookery.app import Platform

NAME = "rookery"
MAX_SUBSCRIBED = 1000
# How long a client may take to answer what a call asked; it only ever brings its own answers back.
ANSWER_S = 3600.0
# Rights change, and a client hears of that only if it listens; until then it may show what it has.
LISTS = CacheHint(ttl_ms=10_000, scope="private")
FRESH = CacheHint(ttl_ms=0, scope="private")
CACHE: dict[CacheableMethod, CacheHint] = {
    "tools/list": LISTS,
    "prompts/list": LISTS,
    "resources/list": LISTS,
    "resources/templates/list": LISTS,
    "resources/read": FRESH,
    "server/discover": FRESH,
}


class McpServer(Server[Any]):
    """Advertises in every session that changes are told; the SDK's own says so only where it is asked to."""

    def create_initialization_options(
        self,
        notification_options: NotificationOptions | None = None,
        experimental_capabilities: dict[str, dict[str, Any]] | None = None,
        extensions: dict[str, dict[str, Any]] | None = None,
    ) -> InitializationOptions:
        told = notification_options or NotificationOptions(
            prompts_changed=True, resources_changed=True, tools_changed=True
        )
        return super().create_initialization_options(told, experimental_capabilities, extensions)


@sealed
async def _subscribe(ctx: Ctx, params: types.SubscribeRequestParams) -> types.EmptyResult:
    session: Session = ctx.lifespan_context
    if not await session.may_read(params.uri):
        raise not_found(ctx, params.uri)
    if len(session.subscribed) >= MAX_SUBSCRIBED:
        raise InvalidRequest(f"a session can follow at most {MAX_SUBSCRIBED} resources", hint="unsubscribe from some")
    session.subscribed.add(params.uri)
    return types.EmptyResult()


@sealed
async def _unsubscribe(ctx: Ctx, params: types.UnsubscribeRequestParams) -> types.EmptyResult:
    ctx.lifespan_context.subscribed.discard(params.uri)
    return types.EmptyResult()


@sealed
async def _listen(ctx: Ctx, params: types.SubscriptionsListenRequestParams) -> types.SubscriptionsListenResult:
    return await ctx.lifespan_context.listen(ctx, params)


@sealed
async def _set_level(ctx: Ctx, params: types.SetLevelRequestParams) -> types.EmptyResult:
    ctx.lifespan_context.log_level = LOG_LEVELS.index(params.level)
    return types.EmptyResult()


async def _initialized(ctx: Ctx, params: types.NotificationParams | None) -> None:
    ctx.lifespan_context.client = ctx.session


def _discover(server: Server[Any]) -> Callable[[Ctx, types.RequestParams | None], Awaitable[types.DiscoverResult]]:
    @sealed
    async def discover(ctx: Ctx, params: types.RequestParams | None) -> types.DiscoverResult:
        return types.DiscoverResult(
            supported_versions=list(MODERN_PROTOCOL_VERSIONS),
            capabilities=server.get_capabilities(protocol_version=ctx.protocol_version),
            instructions=await instructions(ctx.lifespan_context),
        )

    return discover


def make_server(platform: "Platform") -> Server[Any]:
    """The server that every MCP session of this process shares. Reads the database for the keys that servers share."""
    registry = platform.registry

    def input_schema(name: str) -> dict[str, Any] | None:
        tool = registry.get(name)
        return tool.input_schema if tool is not None else None

    server = McpServer(
        NAME,
        version=__version__,
        title="Rookery",
        cache_hints=CACHE,
        on_list_tools=list_tools,
        on_call_tool=call_tool,
        on_list_resources=list_resources,
        on_list_resource_templates=list_templates,
        on_read_resource=read_resource,
        on_subscribe_resource=_subscribe,
        on_unsubscribe_resource=_unsubscribe,
        on_list_prompts=list_prompts,
        on_get_prompt=get_prompt,
        on_completion=complete,
        on_subscriptions_listen=_listen,
        # Without it every call over HTTP would build the whole listing again to check its headers.
        get_tool_input_schema=input_schema,
    )
    if not tracing():
        # The SDK's own spans cost a tenth of a call even when nobody collects them.
        server.middleware.clear()
    server.middleware.append(_boundary(platform))
    server.add_notification_handler("notifications/initialized", types.NotificationParams, _initialized)
    server.add_request_handler("logging/setLevel", types.SetLevelRequestParams, _set_level)
    # The SDK's own answer knows no session, so an agent would not be told who it is.
    server.add_request_handler("server/discover", types.RequestParams, _discover(server))
    return server


def _boundary(platform: "Platform") -> ServerMiddleware[Any]:
    """Seals what a client carries along between the rounds of a call, for whichever server answers the next."""
    security = RequestStateSecurity(
        keys=[server_key(platform.database, "request-state")],
        ttl=ANSWER_S,
        bind_principal=lambda ctx: ctx.lifespan_context.principal,
        audience=NAME,
    )
    seal = RequestStateBoundary(security, default_audience=NAME)

    def only_where_there_are_rounds(ctx: Ctx, call_next: CallNext) -> Awaitable[HandlerResult]:
        # No coroutine of its own: in the older revisions every call would pay for it and none would use it.
        return seal(ctx, call_next) if ctx.protocol_version in MODERN_PROTOCOL_VERSIONS else call_next(ctx)

    return cast("ServerMiddleware[Any]", only_where_there_are_rounds)


async def init_options(server: Server[Any], session: Session) -> InitializationOptions:
    """What `initialize` answers in this session, instructions for the agent included."""
    options = server.create_initialization_options()
    return options.model_copy(update={"instructions": await instructions(session)})


async def instructions(session: Session) -> str:
    """Tells an agent who it is, what it may do, and what its bundles and its profile's memory add to that."""
    actor = await session.actor()
    platform = session.platform
    additions = actor.prompt_additions
    if actor.profile is not None:
        additions = await platform.database.read(lambda tx: platform.resolver.prompt_additions(tx, actor), timeout_s=10)
    name = actor.agent_name or "a person"
    role = f", as {actor.profile}" if actor.profile else ""
    where = f" You work on issue {actor.issue_identifier or actor.issue}." if actor.issue else ""
    text = (
        f"You are {name}{role}, in project {actor.project_slug}.{where} The listed tools are all you may use here; "
        "a refused call says which rule refused it and what to do instead."
    )
    return f"{text}\n\n{additions}" if additions else text

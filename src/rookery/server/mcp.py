"""The MCP server: the SDK's low-level server in front of the call path. One for all sessions."""

import functools
import logging
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, TypeVar

import mcp_types as types
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import NotificationOptions, Server
from mcp.server.models import InitializationOptions
from mcp.shared.exceptions import MCPError
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from rookery import __version__
from rookery.around.logs import bind_ids
from rookery.around.timing import tracing
from rookery.core.errors import InternalError, NotFound, RookeryError
from rookery.core.ids import new_id
from rookery.core.lint import wire_form
from rookery.core.results import Result
from rookery.core.tool import Tool
from rookery.server.door import ClientDoor, InputRequired
from rookery.server.session import Session

if TYPE_CHECKING:
    from rookery.app import Platform

Ctx = ServerRequestContext[Any, Any]
P = TypeVar("P")
R = TypeVar("R")
NAME = "rookery"
MAX_NAME = 128
log = logging.getLogger("rookery.mcp")


_wire_tools: dict[int, tuple[Tool, types.Tool]] = {}


def wire_tool(tool: Tool) -> types.Tool:
    """The tool as the SDK sends it, made once."""
    known = _wire_tools.get(id(tool))
    if known is None or known[0] is not tool:
        known = _wire_tools[id(tool)] = (tool, types.Tool.model_validate(wire_form(tool)))
    return known[1]


def error_result(error: RookeryError) -> types.CallToolResult:
    """A failed call as the model reads it, with the same content for clients that show only one face."""
    lines = [f"Error {error.code}: {error.message}"]
    if error.hint:
        lines.append(f"Hint: {error.hint}")
    return types.CallToolResult(
        content=[types.TextContent(type="text", text="\n".join(lines))],
        structured_content={"error": error.as_dict()},
        is_error=True,
    )


def success_result(result: Result) -> types.CallToolResult:
    """A call's answer in both faces."""
    return types.CallToolResult(
        content=[types.TextContent(type="text", text=result.text)], structured_content=result.structured
    )


def unexpected(error: BaseException, request: str) -> InternalError:
    """What a client reads of a fault of ours: nothing but where to look."""
    log.error("a request failed unexpectedly", exc_info=error, extra={"request": request})
    return InternalError("the server failed unexpectedly", hint=f"the server's log names request {request}")


def sealed(handler: Callable[[Ctx, P], Awaitable[R]]) -> Callable[[Ctx, P], Awaitable[R]]:
    """The handler, whose failures are the protocol's. The SDK would send the text of any exception to the client."""

    @functools.wraps(handler)
    async def answer(ctx: Ctx, params: P) -> R:
        try:
            return await handler(ctx, params)
        except MCPError:
            raise
        except RookeryError as failure:
            error = failure
        except Exception as failure:
            error = unexpected(failure, new_id("req"))
        raise MCPError(code=error.rpc, message=error.message, data=error.as_dict()) from None

    return answer


@sealed
async def list_tools(ctx: Ctx, params: types.PaginatedRequestParams | None) -> types.ListToolsResult:
    tools = await ctx.lifespan_context.tell_tools()
    return types.ListToolsResult(tools=[wire_tool(tool) for tool in tools])


@sealed
async def call_tool(ctx: Ctx, params: types.CallToolRequestParams) -> types.CallToolResult | types.InputRequiredResult:
    session: Session = ctx.lifespan_context
    if len(params.name) > MAX_NAME:
        raise MCPError(code=types.INVALID_PARAMS, message=f"Unknown tool: {params.name[:MAX_NAME]}…")
    door = ClientDoor(ctx, params)
    request = new_id("req")
    try:
        actor = await session.actor()
        trace = _trace(ctx)
        bind_ids(actor, request, trace)
        result = await session.platform.calls.call(
            actor, params.name, params.arguments, door=door, request_id=request, trace=trace
        )
        answer = success_result(result)
    except InputRequired as needed:
        return types.InputRequiredResult(input_requests={needed.key: needed.request})
    except NotFound as error:
        # A tool that is not there is the protocol's error; what a tool did not find is the tool's own.
        if error.layer == "available" or session.platform.registry.get(params.name) is None:
            raise MCPError(
                code=types.INVALID_PARAMS, message=f"Unknown tool: {params.name}", data=error.as_dict()
            ) from None
        answer = error_result(error)
    except RookeryError as error:
        answer = error_result(error)
    except Exception as error:
        answer = error_result(unexpected(error, request))
    await door.flush()
    return answer


def _trace(ctx: Ctx) -> str | None:
    """The caller's W3C trace context, if it sent one."""
    trace = (ctx.meta or {}).get("traceparent")
    return trace if isinstance(trace, str) and len(trace) <= 64 else None


async def _initialized(ctx: Ctx, params: types.NotificationParams | None) -> None:
    ctx.lifespan_context.client = ctx.session


@sealed
async def _listen(ctx: Ctx, params: types.SubscriptionsListenRequestParams) -> types.SubscriptionsListenResult:
    return await ctx.lifespan_context.listen(ctx, params)


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
    """The server that every MCP session of this process shares."""
    registry = platform.registry

    def input_schema(name: str) -> dict[str, Any] | None:
        tool = registry.get(name)
        return tool.input_schema if tool is not None else None

    server: Server[Any] = Server(
        NAME,
        version=__version__,
        title="Rookery",
        on_list_tools=list_tools,
        on_call_tool=call_tool,
        on_subscriptions_listen=_listen,
        # Without it every call over HTTP would build the whole listing again to check its headers.
        get_tool_input_schema=input_schema,
    )
    if not tracing():
        # The SDK's own spans cost a tenth of a call even when nobody collects them.
        server.middleware.clear()
    server.add_notification_handler("notifications/initialized", types.NotificationParams, _initialized)
    # The SDK's own answer knows no session, so an agent would not be told who it is.
    server.add_request_handler("server/discover", types.RequestParams, _discover(server))
    return server


async def init_options(server: Server[Any], session: Session) -> InitializationOptions:
    """What `initialize` answers in this session, instructions for the agent included."""
    options = server.create_initialization_options(NotificationOptions(tools_changed=True))
    return options.model_copy(update={"instructions": await instructions(session)})


async def instructions(session: Session) -> str:
    """Tells an agent who it is and what it may do."""
    actor = await session.actor()
    name = actor.agent_name or "a person"
    role = f", as {actor.profile}" if actor.profile else ""
    where = f" You work on issue {actor.issue}." if actor.issue else ""
    text = (
        f"You are {name}{role}, in project {actor.project_slug}.{where} The listed tools are all you may use here; "
        "a refused call says which rule refused it and what to do instead."
    )
    return f"{text}\n\n{actor.prompt_additions}" if actor.prompt_additions else text

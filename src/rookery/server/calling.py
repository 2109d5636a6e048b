"""The requests that run a handler: tools/call, resources/read, prompts/get. All of them end in the call path."""

import re
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar, cast

import mcp_types as types
from mcp.shared.exceptions import MCPError
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from rookery.around.logs import bind_ids
from rookery.core.actor import Actor
from rookery.core.decide import decide, scope_granted
from rookery.core.declared import Declared
from rookery.core.errors import NotFound, RookeryError
from rookery.core.ids import new_id
from rookery.core.questions import InputRequired, MissingCapability
from rookery.core.tool import Tool
from rookery.server.answers import (
    Ctx,
    error_result,
    prompt_result,
    protocol_error,
    read_result,
    sealed,
    success_result,
    unexpected,
)
from rookery.server.asking import input_required
from rookery.server.door import ClientDoor
from rookery.server.session import Session

T = TypeVar("T")
MAX_NAME = 128
TRACEPARENT = re.compile(r"00-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}")
# Before 2026-07-28 what is not there had a number of its own.
RESOURCE_NOT_FOUND = -32002


@sealed
async def call_tool(ctx: Ctx, params: types.CallToolRequestParams) -> types.CallToolResult | types.InputRequiredResult:
    session: Session = ctx.lifespan_context
    if not could_be_name(params.name):
        raise MCPError(code=types.INVALID_PARAMS, message=f"Unknown tool: {params.name[:MAX_NAME]}")
    door = session.door(ctx, params)
    request = new_id("req")
    try:
        actor = await session.actor()
        trace = trace_of(ctx)
        bind_ids(actor, request, trace, f"tools/call {params.name}")
        result = await session.platform.calls.call(
            actor, params.name, params.arguments, door=door, request_id=request, trace=trace
        )
        answer = success_result(result)
    except InputRequired as needed:
        answer = input_required(needed)
    except MissingCapability as error:
        if door.modern:
            raise lacking(error) from None
        answer = error_result(error)
    except NotFound as error:
        # A tool that is not there is the protocol's error; what a tool did not find is the tool's own.
        if error.layer == "available" or session.platform.registry.get(params.name) is None:
            raise MCPError(
                code=types.INVALID_PARAMS, message=f"Unknown tool: {params.name}", data=error.as_dict()
            ) from None
        answer = error_result(error)
    except RookeryError as error:
        if error.layer == "scopes" and ctx.request is not None:
            tool = session.platform.registry.require(params.name)
            ctx.request.missing_scopes = missing_scopes(await session.actor(), tool)
        answer = error_result(error)
    except Exception as error:
        answer = error_result(unexpected(error, request))
    await door.flush()
    return answer


@sealed
async def read_resource(
    ctx: Ctx, params: types.ReadResourceRequestParams
) -> types.ReadResourceResult | types.InputRequiredResult:
    session: Session = ctx.lifespan_context
    found = session.platform.registry.find_resource(params.uri)
    resource = found[0] if found is not None else None

    async def run(actor: Actor, door: ClientDoor, request: str, trace: str | None) -> types.ReadResourceResult:
        calls = session.platform.calls
        try:
            parts = await calls.read(actor, params.uri, door=door, request_id=request, trace=trace)
        except RookeryError as error:
            if isinstance(error, NotFound) or not shown_to(actor, resource):
                raise not_found(ctx, params.uri) from None
            if error.rpc == RESOURCE_NOT_FOUND:
                # The number that we have for a conflict: clients would take the resource for gone.
                raise MCPError(code=types.INVALID_REQUEST, message=error.message, data=error.as_dict()) from None
            raise
        return read_result(params.uri, parts)

    return await _perform(ctx, params, resource.tool.operation if resource is not None else "resources/read", run)


@sealed
async def get_prompt(
    ctx: Ctx, params: types.GetPromptRequestParams
) -> types.GetPromptResult | types.InputRequiredResult:
    session: Session = ctx.lifespan_context
    name = params.name[:MAX_NAME]
    if not could_be_name(params.name):
        raise MCPError(code=types.INVALID_PARAMS, message=f"Unknown prompt: {name}")
    prompt = session.platform.registry.prompt(params.name)

    async def run(actor: Actor, door: ClientDoor, request: str, trace: str | None) -> types.GetPromptResult:
        calls = session.platform.calls
        try:
            messages = await calls.prompt(
                actor, params.name, params.arguments, door=door, request_id=request, trace=trace
            )
        except RookeryError:
            if not shown_to(actor, prompt):
                raise MCPError(code=types.INVALID_PARAMS, message=f"Unknown prompt: {name}") from None
            raise
        return prompt_result(prompt.description if prompt is not None else "", messages)

    return await _perform(ctx, params, f"prompts/get prompt:{name}", run)


async def _perform(
    ctx: Ctx,
    params: types.InputResponseRequestParams,
    operation: str,
    run: Callable[[Actor, ClientDoor, str, str | None], Awaitable[T]],
) -> T | types.InputRequiredResult:
    """Run a handler for which a failure is the protocol's error."""
    session = cast(Session, ctx.lifespan_context)
    door = session.door(ctx, params)
    request = new_id("req")
    try:
        actor = await session.actor()
        trace = trace_of(ctx)
        bind_ids(actor, request, trace, operation)
        answer = await run(actor, door, request, trace)
    except InputRequired as needed:
        answer = input_required(needed)
    except MCPError as error:
        answer = error
    except MissingCapability as error:
        answer = lacking(error) if door.modern else protocol_error(error)
    except RookeryError as error:
        answer = protocol_error(error)
    await door.flush()
    if isinstance(answer, MCPError):
        raise answer
    return answer


def could_be_name(name: str) -> bool:
    """Whether something could have this name. Not every database could record that somebody looked for another."""
    return len(name) <= MAX_NAME and name.isprintable()


def missing_scopes(actor: Actor, tool: Tool) -> tuple[str, ...]:
    """What the caller's token would have to carry as well, for a door that can tell the caller how to get it."""
    granted = actor.scopes or frozenset()
    return tuple(scope for scope in tool.scopes if not scope_granted(granted, scope))


def shown_to(actor: Actor, declared: Declared | None) -> bool:
    """Whether the actor may know that it exists. What it may not know of is answered as what is not there."""
    return declared is not None and decide(actor, declared.tool).listed


def not_found(ctx: Ctx, uri: str) -> MCPError:
    """No resource there, or none for this caller: the same answer."""
    modern = ctx.protocol_version in MODERN_PROTOCOL_VERSIONS
    code = types.INVALID_PARAMS if modern else RESOURCE_NOT_FOUND
    return MCPError(code=code, message="Resource not found", data={"uri": uri})


def lacking(error: MissingCapability) -> MCPError:
    """What a client of 2026-07-28 is told that declared too little for a call."""
    return MCPError(
        code=types.MISSING_REQUIRED_CLIENT_CAPABILITY,
        message=error.message,
        data={"requiredCapabilities": {error.capability: {}}},
    )


def trace_of(ctx: Ctx) -> str | None:
    """The caller's W3C trace context, if it sent one: with the request, else in the header of the HTTP request."""
    trace: Any = ctx.meta.get("traceparent") if ctx.meta else None
    if trace is None and ctx.request is not None:
        trace = ctx.request.headers.get("traceparent")
    return trace if isinstance(trace, str) and TRACEPARENT.fullmatch(trace) else None

"""From what the call path gives to what the protocol sends: results, contents, failures."""

import base64
import functools
import logging
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, TypeVar

import mcp_types as types
from mcp.server.context import ServerRequestContext
from mcp.shared.exceptions import MCPError

from rookery.core.blocks import Audio, Block, Embedded, Image, Text
from rookery.core.errors import InternalError, RookeryError
from rookery.core.ids import new_id
from rookery.core.prompt import Message
from rookery.core.resource import Contents
from rookery.core.results import Result

Ctx = ServerRequestContext[Any, Any]
P = TypeVar("P")
R = TypeVar("R")
ERROR = "rookery/error"
log = logging.getLogger("rookery.mcp")


def error_result(error: RookeryError) -> types.CallToolResult:
    """A failed call: its text as the model reads it, and its parts for programs.

    The parts are not structured content: that has to match the tool's output schema, and clients that check it would
    show their own complaint instead of our error.
    """
    lines = [f"Error {error.code}: {error.message}"]
    if error.hint:
        lines.append(f"Hint: {error.hint}")
    return types.CallToolResult(
        content=[types.TextContent(type="text", text="\n".join(lines))],
        is_error=True,
        _meta={ERROR: error.as_dict()},
    )


def success_result(result: Result) -> types.CallToolResult:
    """A call's answer in both faces."""
    content: list[types.ContentBlock]
    if result.blocks is None:
        content = [types.TextContent(type="text", text=result.text)]
    else:
        content = [wire_block(block) for block in result.blocks]
    return types.CallToolResult(content=content, structured_content=result.structured)


def read_result(uri: str, parts: Sequence[Contents]) -> types.ReadResourceResult:
    """What a resource holds."""
    return types.ReadResourceResult(contents=[_contents(part.uri or uri, part.text, part.mime_type) for part in parts])


def prompt_result(description: str, messages: Sequence[Message]) -> types.GetPromptResult:
    """The messages of a prompt."""
    wire = [types.PromptMessage(role=message.role, content=wire_block(message.block)) for message in messages]
    return types.GetPromptResult(description=description, messages=wire)


def wire_block(block: Block) -> types.ContentBlock:
    """A block as the SDK sends it."""
    if isinstance(block, Text):
        return types.TextContent(type="text", text=block.text)
    if isinstance(block, Image):
        return types.ImageContent(type="image", data=_base64(block.data), mime_type=block.mime_type)
    if isinstance(block, Audio):
        return types.AudioContent(type="audio", data=_base64(block.data), mime_type=block.mime_type)
    if isinstance(block, Embedded):
        return types.EmbeddedResource(type="resource", resource=_contents(block.uri, block.text, block.mime_type))
    return types.ResourceLink(
        type="resource_link",
        uri=block.uri,
        name=block.name,
        title=block.title,
        description=block.description,
        mime_type=block.mime_type,
    )


def _contents(
    uri: str, text: str | bytes, mime_type: str | None
) -> types.TextResourceContents | types.BlobResourceContents:
    if isinstance(text, bytes):
        return types.BlobResourceContents(uri=uri, blob=_base64(text), mime_type=mime_type)
    return types.TextResourceContents(uri=uri, text=text, mime_type=mime_type)


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode()


def unexpected(error: BaseException, request: str) -> InternalError:
    """What a client reads of a fault of ours: nothing but where to look."""
    log.error("a request failed unexpectedly", exc_info=error, extra={"request": request})
    return InternalError("the server failed unexpectedly", hint=f"the server's log names request {request}")


def protocol_error(error: RookeryError) -> MCPError:
    """A failure where the protocol has no result for it."""
    return MCPError(code=error.rpc, message=error.message, data=error.as_dict())


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
        raise protocol_error(error) from None

    return answer

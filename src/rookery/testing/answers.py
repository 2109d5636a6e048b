"""What a client got back, in the form that assertions want."""

import base64
from dataclasses import dataclass
from typing import Any, cast

import mcp_types as types
from mcp import MCPError

from rookery.server.answers import ERROR


class CallFailed(Exception):
    """The server said no. `code` is a name such as NOT_FOUND where the server gave one, else the protocol's number."""

    def __init__(self, message: str, told: dict[str, Any], *, rpc: int | None = None) -> None:
        self.code: str = str(told.get("code", rpc))
        self.message: str = told.get("message", message)
        self.hint: str | None = told.get("hint")
        self.layer: str | None = told.get("layer")
        """The rule that refused the call, such as `role` or `scopes`."""
        self.retryable: bool = told.get("retryable", False)
        self.rpc = rpc
        """The protocol's number of the error; None for a tool that failed, which is no error of the protocol."""
        self.told = told
        """Everything the server said besides."""
        super().__init__(f"{self.code}: {self.message}" + (f" ({self.hint})" if self.hint else ""))


class ToolFailed(CallFailed):
    """A tool that failed, was refused, or is not there."""


def from_protocol(error: MCPError, kind: type[CallFailed] = CallFailed) -> CallFailed:
    """An error of the protocol as ours."""
    data: Any = error.data
    told = cast("dict[str, Any]", data) if isinstance(data, dict) else {}
    return kind(error.message, told, rpc=error.code)


@dataclass(frozen=True, slots=True)
class Answer:
    """What a tool answered. `answer["field"]` is a field of the structured result."""

    text: str
    """All text that the model is shown, block after block."""
    structured: dict[str, Any]
    blocks: list[types.ContentBlock]
    raw: types.CallToolResult

    def __getitem__(self, field: str) -> Any:
        return self.structured[field]


def to_answer(result: types.CallToolResult) -> Answer:
    """The answer, or ToolFailed if it says that the tool failed."""
    text = _text(result.content)
    if result.is_error:
        raise ToolFailed(text, (result.meta or {}).get(ERROR, {}))
    return Answer(text, result.structured_content or {}, list(result.content), result)


@dataclass(frozen=True, slots=True)
class Contents:
    """What a resource holds. Most have one part, whose text, bytes and kind are here."""

    text: str
    """The text of all parts that have one."""
    data: bytes
    """The bytes of all parts that are not text."""
    mime_type: str | None
    raw: types.ReadResourceResult


def to_contents(result: types.ReadResourceResult) -> Contents:
    texts = [part.text for part in result.contents if isinstance(part, types.TextResourceContents)]
    blobs = [base64.b64decode(part.blob) for part in result.contents if isinstance(part, types.BlobResourceContents)]
    mime_type = result.contents[0].mime_type if result.contents else None
    return Contents("\n".join(texts), b"".join(blobs), mime_type, result)


@dataclass(frozen=True, slots=True)
class Prompted:
    """The messages of a prompt, and their text."""

    text: str
    messages: list[types.PromptMessage]
    raw: types.GetPromptResult


def to_prompted(result: types.GetPromptResult) -> Prompted:
    return Prompted(_text([message.content for message in result.messages]), list(result.messages), result)


def _text(blocks: list[types.ContentBlock]) -> str:
    return "\n".join(block.text for block in blocks if isinstance(block, types.TextContent))

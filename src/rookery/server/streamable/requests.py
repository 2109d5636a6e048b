"""What comes in: headers that may stand only once, a body of limited size, one JSON-RPC message."""

import asyncio
from typing import Any, cast

import mcp_types as types
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS, MODERN_PROTOCOL_VERSIONS
from pydantic_core import from_json
from starlette.types import Receive, Scope

from rookery.server.lines import usable_id

SINGLE = frozenset(
    {
        "authorization",
        "content-encoding",
        "content-length",
        "content-type",
        "host",
        "last-event-id",
        "mcp-method",
        "mcp-name",
        "mcp-protocol-version",
        "mcp-session-id",
        "origin",
    }
)
VERSION = "mcp-protocol-version"
SUPPORTED = [*HANDSHAKE_PROTOCOL_VERSIONS, *MODERN_PROTOCOL_VERSIONS]
# So long a whole body may take, whichever way it comes.
BODY_S = 30.0


CLOSE = ((b"connection", b"close"),)


class Refusal(Exception):
    """A request that is not served: the HTTP status, and the JSON-RPC error that its body carries."""

    def __init__(
        self,
        status: int,
        message: str,
        *,
        code: int = types.INVALID_REQUEST,
        data: Any = None,
        request_id: int | str | None = None,
        headers: tuple[tuple[bytes, bytes], ...] = (),
    ) -> None:
        super().__init__(message)
        self.status = status
        self.message = message
        self.code = code
        self.data = data
        self.request_id = request_id
        self.headers = headers


class HttpRequest:
    """The head of a request. Handlers see it as `ctx.request`."""

    __slots__ = ("accepts_json", "accepts_sse", "headers", "method", "missing_scopes", "raw")

    def __init__(self, scope: Scope) -> None:
        self.method: str = scope["method"]
        self.raw: list[tuple[bytes, bytes]] = scope["headers"]
        self.headers: dict[str, str] = {}
        for raw_name, raw_value in self.raw:
            name, value = raw_name.decode("latin-1"), raw_value.decode("latin-1").strip(" \t")
            if name in self.headers:
                if name in SINGLE or name.startswith("mcp-param-"):
                    # Two readers that take the first and the last copy would disagree about who asks for what.
                    raise Refusal(400, f"the header {name} appears more than once", code=types.HEADER_MISMATCH)
                value = f"{self.headers[name]}, {value}"
            self.headers[name] = value
        self.accepts_json, self.accepts_sse = accepted(self.headers.get("accept"))
        self.missing_scopes: tuple[str, ...] = ()


def accepted(accept: str | None) -> tuple[bool, bool]:
    """Whether the client takes JSON, and whether it takes event streams."""
    if accept is None:
        return False, False
    kinds = {kind.partition(";")[0].strip().lower() for kind in accept.split(",")}
    everything = "*/*" in kinds
    return (
        everything or not kinds.isdisjoint(("application/json", "application/*")),
        everything or not kinds.isdisjoint(("text/event-stream", "text/*")),
    )


def unsupported_version(version: str, request_id: int | str | None = None) -> Refusal:
    """The refusal of a revision that this server does not speak. It names those that it does."""
    return Refusal(
        400,
        f"this server speaks {', '.join(SUPPORTED)}",
        code=types.UNSUPPORTED_PROTOCOL_VERSION,
        # Those that `server/discover` names: with the others a client has to shake hands first.
        data={"supported": list(MODERN_PROTOCOL_VERSIONS), "requested": version[:100]},
        request_id=request_id,
    )


def is_modern(request: HttpRequest) -> bool:
    """Whether a request without a body is of the era without sessions. A revision that we do not speak is refused."""
    version = request.headers.get(VERSION)
    if version is not None and version not in SUPPORTED:
        raise unsupported_version(version)
    return version in MODERN_PROTOCOL_VERSIONS


def check_body_headers(request: HttpRequest, max_bytes: int) -> None:
    """Refuse a body by its headers: of a foreign kind, packed, said to be too large, or not sent as HTTP has it."""
    headers = request.headers
    if "upgrade" in headers and "upgrade" in headers.get("connection", "").lower():
        # The parser takes what follows such a head for another protocol, so the body never comes.
        raise Refusal(400, "no other protocol is spoken here; send the request without Upgrade", headers=CLOSE)
    if headers.get("transfer-encoding", "chunked").lower() != "chunked":
        raise Refusal(501, "the only transfer encoding here is chunked", headers=CLOSE)
    if headers.get("content-type", "").partition(";")[0].strip().lower() != "application/json":
        raise Refusal(415, "the body must be sent as application/json")
    if headers.get("content-encoding", "identity").lower() != "identity":
        raise Refusal(415, "packed bodies are not taken", headers=((b"accept-encoding", b"identity"),))
    length = headers.get("content-length", "0")
    if not (length.isascii() and length.isdigit()):
        raise Refusal(400, "content-length must be a number")
    if len(length) > 18 or int(length) > max_bytes:
        raise too_large(max_bytes)


def too_large(max_bytes: int) -> Refusal:
    return Refusal(413, f"a body may have at most {max_bytes} bytes")


async def read_body(receive: Receive, max_bytes: int) -> bytes:
    """The whole body. One that is too large or does not end is refused; so is one whose sender has gone."""
    try:
        async with asyncio.timeout(BODY_S):
            return await _read_all(receive, max_bytes)
    except TimeoutError:
        raise Refusal(408, "the body did not end in time", headers=CLOSE) from None


async def _read_all(receive: Receive, max_bytes: int) -> bytes:
    parts: list[bytes] = []
    size = 0
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise Refusal(400, "the connection was closed before the body ended")
        part = cast(bytes, message.get("body", b""))
        size += len(part)
        if size > max_bytes:
            raise too_large(max_bytes)
        parts.append(part)
        if not message.get("more_body", False):
            return b"".join(parts)


def parse(body: bytes) -> dict[str, Any]:
    """The JSON-RPC message of a body: a request, a notification or an answer. Everything else is refused."""
    try:
        # What is no UTF-8, and half of a pair of surrogates, would fail later and worse: in the database.
        value: Any = from_json(body, allow_inf_nan=False)
    except ValueError:
        raise Refusal(400, "the body is not JSON, or it is nested too deeply", code=types.PARSE_ERROR) from None
    if isinstance(value, list):
        raise Refusal(400, "batches are not part of this protocol")
    if not isinstance(value, dict):
        raise Refusal(400, "the body is not a JSON-RPC 2.0 message")
    message = cast("dict[str, Any]", value)
    request = usable_id(message.get("id"))
    if message.get("jsonrpc") != "2.0" or not _well_formed(message):
        raise Refusal(400, "the body is not a JSON-RPC 2.0 message", request_id=request)
    if "id" in message and request is None and ("method" in message or message["id"] is not None):
        raise Refusal(400, "an id must be a string or a whole number")
    return message


def _well_formed(message: dict[str, Any]) -> bool:
    if not isinstance(message.get("params"), dict | None):
        return False
    if "method" in message:
        return isinstance(message["method"], str)
    answers = ("result" in message) + ("error" in message)
    return answers == 1 and isinstance(message.get("result", message.get("error")), dict)

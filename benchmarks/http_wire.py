"""HTTP/1.1 and MCP as far as measured calls need them: ready-made requests, answers recognised without a parser."""

import itertools
import json
import re
from dataclasses import dataclass
from typing import Any

from benchmarks.raw_client import FAILURES, FIRST_ID, MeasureError, request_parts

HANDSHAKE, MODERN = "2025-11-25", "2026-07-28"
PATH = "/mcp"
BLANK_LINE = b"\r\n\r\n"
LAST_CHUNK = b"\r\n0\r\n\r\n"
LENGTH = re.compile(rb"\r\ncontent-length: *(\d+)", re.IGNORECASE)
SUCCESS = b"HTTP/1.1 200 "
UNWANTED = (*FAILURES, b'"error"')
KINDS = {"application/json": "json", "text/event-stream": "sse"}


@dataclass(frozen=True)
class Endpoint:
    """Where a running server takes MCP requests, and with which token."""

    name: str
    pid: int
    port: int
    token: str | None = None


def post(endpoint: Endpoint, length: int, headers: dict[str, str]) -> bytes:
    """The head of a POST whose body has `length` bytes."""
    every = {
        "Host": f"127.0.0.1:{endpoint.port}",
        "Accept": "application/json, text/event-stream",
        "Content-Type": "application/json",
        "Content-Length": str(length),
    }
    if endpoint.token is not None:
        every["Authorization"] = f"Bearer {endpoint.token}"
    lines = [f"POST {PATH} HTTP/1.1", *(f"{name}: {value}" for name, value in (every | headers).items())]
    return "\r\n".join(lines).encode() + BLANK_LINE


def message(endpoint: Endpoint, content: dict[str, Any], headers: dict[str, str]) -> bytes:
    """A whole request with one JSON-RPC message."""
    body = json.dumps({"jsonrpc": "2.0", **content}).encode()
    return post(endpoint, len(body), headers) + body


class Pings:
    """Requests for `tools/call ping` of one client, each with an id of its own."""

    def __init__(self, endpoint: Endpoint, era: str, session: str | None) -> None:
        params: dict[str, Any] = {"name": "ping", "arguments": {}}
        headers = {"MCP-Protocol-Version": era}
        if session is not None:
            headers["Mcp-Session-Id"] = session
        if era == MODERN:
            params["_meta"] = modern_meta()
            headers |= {"Mcp-Method": "tools/call", "Mcp-Name": "ping"}
        before, after = request_parts("tools/call", params)
        after = after.rstrip(b"\n")
        self._before = post(endpoint, len(b"%b%d%b" % (before, FIRST_ID, after)), headers) + before
        self._after = after
        self._ids = itertools.count(FIRST_ID)
        self.last_id = FIRST_ID

    def next(self) -> bytes:
        """The next request. Its id is `last_id` until the one after it."""
        self.last_id = next(self._ids)
        return b"%b%d%b" % (self._before, self.last_id, self._after)


def modern_meta() -> dict[str, Any]:
    """What a request says about its client where there is no handshake."""
    prefix = "io.modelcontextprotocol/"
    return {
        f"{prefix}protocolVersion": MODERN,
        f"{prefix}clientCapabilities": {},
        f"{prefix}clientInfo": {"name": "rookery-bench", "version": "1"},
    }


def is_whole(received: bytes) -> bool:
    """Whether these bytes are an answer to its end. Only one answer may be under way on the connection."""
    end = received.find(BLANK_LINE)
    if end < 0:
        return False
    length = LENGTH.search(received, 0, end)
    if length is not None:
        return len(received) >= end + len(BLANK_LINE) + int(length[1])
    return received.endswith(LAST_CHUNK)


def is_pong(answer: bytes) -> bool:
    """Whether the answer looks like a successful ping; cheap enough for every answer."""
    return answer.startswith(SUCCESS) and b"pong" in answer and not any(word in answer for word in UNWANTED)


def check_fully(answer: bytes, wanted_id: int) -> str:
    """`json` or `sse`, for an answer that is a successful ping in all its parts; else a `MeasureError`."""
    kind, content = parse(answer)
    try:
        result = content["result"]
        said = json.loads(result["content"][0]["text"])
        good = content["id"] == wanted_id and not result.get("isError")
        good = good and said == result["structuredContent"] and said["status"] == "pong"
    except (KeyError, IndexError, TypeError, ValueError):
        good = False
    if not good:
        raise MeasureError(f"not a successful ping: {answer[:600]!r}")
    return kind


def parse(answer: bytes) -> tuple[str, dict[str, Any]]:
    """How the answer came and the JSON-RPC message in it: of a stream the last one."""
    head, _, body = answer.partition(BLANK_LINE)
    headers = headers_of(head)
    if headers.get("transfer-encoding") == "chunked":
        body = joined(body)
    kind = KINDS.get(headers.get("content-type", "").partition(";")[0], "nothing")
    try:
        if kind == "sse":
            lines = [line[5:] for line in body.splitlines() if line.startswith(b"data:") and line[5:].strip()]
            return kind, json.loads(lines[-1])
        return kind, json.loads(body)
    except (ValueError, IndexError) as error:
        raise MeasureError(f"not JSON-RPC: {answer[:600]!r}") from error


def headers_of(head: bytes) -> dict[str, str]:
    """The headers of an answer under their names in small letters."""
    pairs = (line.partition(":") for line in head.decode("latin-1").split("\r\n")[1:])
    return {name.lower(): value.strip() for name, _, value in pairs}


def joined(chunks: bytes) -> bytes:
    """The body that these chunks make up."""
    body = b""
    while chunks:
        size, _, rest = chunks.partition(b"\r\n")
        length = int(size.partition(b";")[0], 16)
        body += rest[:length]
        chunks = rest[length + 2 :] if length else b""
    return body

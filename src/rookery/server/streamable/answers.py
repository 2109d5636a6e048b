"""What goes out: one JSON body, an error, or the start of an event stream; the same headers on each."""

import json
from typing import Any

from pydantic_core import PydanticSerializationError, to_json
from starlette.types import Send

from rookery.server.streamable.requests import Refusal

Headers = tuple[tuple[bytes, bytes], ...]
JSON = (b"content-type", b"application/json")
EVENTS: Headers = (
    (b"content-type", b"text/event-stream"),
    (b"cache-control", b"no-cache, no-transform"),
    (b"x-accel-buffering", b"no"),
)


def encode(value: Any) -> bytes:
    """The value as JSON. For half of a pair of surrogates, which UTF-8 cannot say, there is a question mark."""
    try:
        return to_json(value)
    except (PydanticSerializationError, UnicodeError):
        return json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode(errors="replace")


def result_message(request_id: int | str, result: dict[str, Any]) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": request_id, "result": result}


def error_message(request_id: int | str | None, code: int, message: str, data: Any = None) -> dict[str, Any]:
    error: dict[str, Any] = {"code": code, "message": message}
    if data is not None:
        error["data"] = data
    return {"jsonrpc": "2.0", "id": request_id, "error": error}


async def send_json(send: Send, status: int, value: Any, headers: Headers = ()) -> None:
    """One JSON body."""
    body = encode(value)
    length = (b"content-length", b"%d" % len(body))
    await send({"type": "http.response.start", "status": status, "headers": [JSON, length, *headers]})
    await send({"type": "http.response.body", "body": body})


async def send_empty(send: Send, status: int, headers: Headers = ()) -> None:
    """A status without a body."""
    length: Headers = () if status == 204 else ((b"content-length", b"0"),)
    await send({"type": "http.response.start", "status": status, "headers": [*length, *headers]})
    await send({"type": "http.response.body", "body": b""})


async def send_refusal(send: Send, refusal: Refusal, headers: Headers = ()) -> None:
    """A refused request's status and JSON-RPC error."""
    body = error_message(refusal.request_id, refusal.code, refusal.message, refusal.data)
    await send_json(send, refusal.status, body, (*headers, *refusal.headers))


async def start_events(send: Send, headers: Headers) -> None:
    """The head of an event stream."""
    await send({"type": "http.response.start", "status": 200, "headers": [*EVENTS, *headers]})

"""HTTP sessions of the revisions that shake hands: bound to whoever opened them, asked back, resumed, ended."""

import asyncio
import hashlib
import secrets
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping
from typing import Any

from mcp.server.connection import Connection
from mcp.shared.dispatcher import CallOptions, coerce_request_id
from mcp.shared.exceptions import MCPError
from mcp_types import CONNECTION_CLOSED, ErrorData
from mcp_types.version import is_version_at_least
from pydantic import ValidationError

from rookery.core.actor import Actor
from rookery.server.session import Session
from rookery.server.streamable.exchange import Exchange, Why
from rookery.server.streamable.streams import Stream

PRIMED_SINCE = "2025-11-25"
KEPT_STREAMS = 32
KEPT_STREAM_BYTES = 4 << 20
Owner = tuple[str, str, str]


def owner_of(actor: Actor) -> Owner:
    """Whom a session belongs to: nobody else's requests reach it, whatever id they carry."""
    return actor.tenant, actor.auth.client, actor.auth.subject


def new_session_id() -> str:
    return secrets.token_hex(32)


def session_header(session_id: str) -> tuple[bytes, bytes]:
    return b"mcp-session-id", session_id.encode()


def record_id(session_id: str) -> str:
    """The name of a session in records and logs, from which its id cannot be told."""
    return f"ses_{hashlib.sha256(session_id.encode()).hexdigest()[:24]}"


class HttpSession:
    """One session. It is the SDK's outbound channel for what belongs to no request, sent on the GET stream."""

    def __init__(self, session_id: str, session: Session, owner: Owner, credential: str) -> None:
        self.id = session_id
        self.header = (session_header(session_id),)
        self.session = session
        self.owner = owner
        self.credential = credential
        self.connection = Connection.for_loop(self, session_id=session.id)
        self.standalone = Stream(0)
        self.running: dict[int | str, Exchange] = {}
        self.calls: set[Exchange] = set()
        """All that run. Of calls to which a client gave the same id, `running` knows the newest alone."""
        self.busy = 0
        self.seen = time.monotonic()
        self.ended = False
        self._streams: OrderedDict[int, Stream] = OrderedDict()
        self._numbers = 0
        self._nonce = secrets.token_hex(4)
        self._asked: dict[str, asyncio.Future[dict[str, Any]]] = {}
        self._questions = 0

    @property
    def primed(self) -> bool:
        """Whether the client understands a frame without content."""
        return is_version_at_least(self.connection.protocol_version, PRIMED_SINCE)

    def left(self) -> None:
        """A request or a stream of this session is over; from the last one on it may be idle."""
        self.busy -= 1
        self.seen = time.monotonic()

    # Streams.

    def open_stream(self) -> Stream:
        """A stream for one answer. The oldest that are finished are forgotten."""
        self._numbers += 1
        stream = self._streams[self._numbers] = Stream(self._numbers)
        size = sum(kept.size for kept in self._streams.values())
        for number, kept in list(self._streams.items()):
            if len(self._streams) <= KEPT_STREAMS and size <= KEPT_STREAM_BYTES:
                break
            if kept.closed:
                size -= kept.size
                del self._streams[number]
        return stream

    def resume(self, event: str) -> tuple[Stream, int] | None:
        """The stream of an event id and the frame to go on after, or None if it is not known (any more)."""
        numbers = event.split("-")
        if len(numbers) != 2 or not all(part.isascii() and part.isdigit() and len(part) < 12 for part in numbers):
            return None
        number, after = int(numbers[0]), int(numbers[1])
        stream = self.standalone if number == 0 else self._streams.get(number)
        # A gap in what was said would go unnoticed, so there is nothing rather than less.
        return (stream, after) if stream is not None and stream.forgotten <= after <= stream.last else None

    # The SDK's outbound channel.

    async def notify(self, method: str, params: Mapping[str, Any] | None, opts: CallOptions | None = None) -> None:
        message: dict[str, Any] = {"jsonrpc": "2.0", "method": method}
        if params is not None:
            message["params"] = dict(params)
        self.standalone.put(message)

    async def send_raw_request(
        self, method: str, params: Mapping[str, Any] | None, opts: CallOptions | None = None
    ) -> dict[str, Any]:
        return await self.ask(self.standalone.put, method, params, (opts or {}).get("timeout"))

    async def ask(
        self,
        say: Callable[[dict[str, Any]], None],
        method: str,
        params: Mapping[str, Any] | None,
        timeout_s: float | None,
    ) -> dict[str, Any]:
        """Put a question to the client and wait for its answer, which comes with a request of its own."""
        self._questions += 1
        number = f"{self._nonce}-{self._questions}"
        message: dict[str, Any] = {"jsonrpc": "2.0", "id": number, "method": method}
        if params is not None:
            message["params"] = dict(params)
        waiting = self._asked[number] = asyncio.get_running_loop().create_future()
        answered = False
        try:
            say(message)
            async with asyncio.timeout(timeout_s):
                answer = await waiting
                answered = True
                return answer
        except MCPError:
            answered = True
            raise
        finally:
            del self._asked[number]
            if not answered and not self.ended:
                say({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": number}})

    # What the client sends besides requests.

    def answered(self, message: Mapping[str, Any]) -> None:
        """Take the client's answer to a question; one that nobody waits for is dropped."""
        waiting = self._asked.get(str(message.get("id")))
        if waiting is None or waiting.done():
            return
        if "result" in message:
            waiting.set_result(message["result"])
            return
        try:
            error = ErrorData.model_validate(message["error"])
        except ValidationError:
            error = ErrorData(code=CONNECTION_CLOSED, message="the client's answer makes no sense")
        waiting.set_exception(MCPError.from_error_data(error))

    def cancelled(self, params: Mapping[str, Any]) -> None:
        """The client gives up on a request of its own."""
        request = params.get("requestId")
        if isinstance(request, int | str) and not isinstance(request, bool):
            running = self.running.get(coerce_request_id(request))
            if running is not None:
                running.cancel("cancelled")

    def end(self, why: Why = "ended") -> None:
        """Close every stream, end every call, give up every question."""
        self.ended = True
        for exchange in list(self.calls):
            exchange.cancel(why)
        gone = ErrorData(code=CONNECTION_CLOSED, message="the session has ended")
        for waiting in self._asked.values():
            if not waiting.done():
                waiting.set_exception(MCPError.from_error_data(gone))
        self.standalone.close()
        for stream in self._streams.values():
            if not any(stream is exchange.stream for exchange in self.calls):
                stream.close()

"""One request and its answer: JSON if the call has nothing else to say, an event stream if it has, or if it takes long.

The SDK's own transports put a queue, a task or both between the request and its handler. Here the handler runs in the
task of the HTTP request itself, and everything else is made when it is needed.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Literal, Protocol

import anyio
from mcp.server.runner import modern_error_data
from mcp.shared.dispatcher import CallOptions
from mcp.shared.exceptions import MCPError, NoBackChannelError
from mcp.shared.inbound import ERROR_CODE_HTTP_STATUS
from mcp.shared.jsonrpc_dispatcher import progress_token_from_params
from mcp.shared.message import ServerMessageMetadata
from mcp.shared.transport_context import TransportContext
from mcp_types import CONNECTION_CLOSED, ErrorData
from starlette.types import Receive, Send

from rookery.core.errors import RookeryError
from rookery.server.session import Session
from rookery.server.streamable.answers import Headers, error_message, result_message, send_json, start_events
from rookery.server.streamable.requests import HttpRequest
from rookery.server.streamable.streams import Stream, until_gone
from rookery.server.wire import STOPPED

# From here on a call counts as long: its client is watched, in case it goes.
LINGER_S = 0.05
# A client, or a proxy before it, that hears nothing for long gives up.
SILENCE_S = 2.0
Why = Literal["cancelled", "ended", "stopped", "gone"]
"""What ended a call from outside: the client, the session's end, the server's end, or a lost connection."""
CUT_OFF: dict[str, tuple[int, ErrorData]] = {
    "cancelled": (200, ErrorData(code=-32800, message="Request cancelled")),
    "ended": (200, ErrorData(code=CONNECTION_CLOSED, message="The session ended while this call was running.")),
    "stopped": (503, STOPPED),
}


class Back(Protocol):
    """The lasting side of an exchange: a session that can be asked, and from which a cut stream can be resumed."""

    @property
    def primed(self) -> bool: ...
    def open_stream(self) -> Stream: ...
    async def ask(
        self,
        say: Callable[[dict[str, Any]], None],
        method: str,
        params: Mapping[str, Any] | None,
        timeout_s: float | None,
    ) -> dict[str, Any]: ...


class Exchange:
    """The SDK's dispatch context of one request. `back` is absent where nothing outlives the request."""

    __slots__ = (
        "_cancel_event",
        "_ended",
        "_long",
        "_loop",
        "_progress_token",
        "_pump",
        "_receive",
        "_running",
        "_send",
        "_stream",
        "_task",
        "_watch",
        "_why",
        "back",
        "headers",
        "http",
        "listening",
        "message_metadata",
        "modern",
        "request_id",
        "transport",
        "wanting",
    )

    def __init__(
        self,
        http: HttpRequest,
        send: Send,
        receive: Receive,
        message: dict[str, Any],
        *,
        headers: Headers,
        modern: bool,
        back: Back | None = None,
    ) -> None:
        self.http = http
        self.request_id: int | str = message["id"]
        self.modern = modern
        self.back = back
        self.transport = TransportContext(
            kind="streamable-http",
            can_send_request=back is not None and http.accepts_sse,
            headers=http.headers,
        )
        self.message_metadata = ServerMessageMetadata(
            request_context=http,
            close_sse_stream=self._release if back is not None and http.accepts_sse else None,
        )
        self._progress_token = progress_token_from_params(message.get("params"))
        self._send, self._receive, self.headers = send, receive, headers
        self._loop = asyncio.get_running_loop()
        self._task = asyncio.current_task()
        self._stream: Stream | None = None
        self._pump: asyncio.Task[bool] | None = None
        self._watch: asyncio.Task[None] | None = None
        self._long: asyncio.TimerHandle | None = None
        self._cancel_event: anyio.Event | None = None
        self._why: Why | None = None
        self._running = self._ended = False
        self.listening: Session | None = None
        self.wanting: Callable[[HttpRequest], Headers] | None = None
        """Says which scopes a client that can ask for more should come back with."""

    # What the SDK asks of a dispatch context.

    @property
    def can_send_request(self) -> bool:
        return self.transport.can_send_request and self._running

    @property
    def cancel_requested(self) -> anyio.Event:
        if self._cancel_event is None:
            self._cancel_event = anyio.Event()
            if self._why is not None:
                self._cancel_event.set()
        return self._cancel_event

    async def notify(self, method: str, params: Mapping[str, Any] | None, opts: CallOptions | None = None) -> None:
        message: dict[str, Any] = {"jsonrpc": "2.0", "method": method}
        if params is not None:
            message["params"] = dict(params)
        self._say(message)
        # A handler that only talks must let the writer write.
        await asyncio.sleep(0)

    async def progress(self, progress: float, total: float | None = None, message: str | None = None) -> None:
        if self._progress_token is None:
            return
        params = {"progressToken": self._progress_token, "progress": progress, "total": total, "message": message}
        await self.notify("notifications/progress", {key: value for key, value in params.items() if value is not None})

    async def send_raw_request(
        self, method: str, params: Mapping[str, Any] | None, opts: CallOptions | None = None
    ) -> dict[str, Any]:
        if self.back is None or not self.can_send_request:
            raise NoBackChannelError(method)
        return await self.back.ask(self._say, method, params, (opts or {}).get("timeout"))

    # The answer.

    async def answer(self, handling: Awaitable[dict[str, Any]], *, at_once: bool = False) -> bool:
        """Run the handler and send what it gives; says whether that was a result. `at_once`: as a stream."""
        self._running = True
        wait_s = LINGER_S if at_once else SILENCE_S
        self._long = self._loop.call_later(LINGER_S, self._linger, wait_s - LINGER_S)
        try:
            message, status = await self._outcome(handling)
            await self._finish(message, status, at_once=at_once)
            return "result" in (message or {})
        finally:
            self._running, self._ended = False, True
            await self._settle()

    async def _outcome(self, handling: Awaitable[dict[str, Any]]) -> tuple[dict[str, Any] | None, int]:
        """The message that answers, and the status that goes with it; no message if nobody is there to read it."""
        request = self.request_id
        try:
            return result_message(request, await handling), 200
        except asyncio.CancelledError:
            if self._why is None:
                raise
        except RookeryError as failure:
            return error_message(request, failure.rpc, failure.message, failure.as_dict()), failure.http
        except Exception as failure:
            error = failure.error if isinstance(failure, MCPError) else modern_error_data(failure)
            status = ERROR_CODE_HTTP_STATUS.get(error.code, 200) if self.modern else 200
            return error_message(request, error.code, error.message, error.data), status
        finally:
            self._running = False
            if self._why is not None and self._task is not None:
                self._task.uncancel()
        if self._why not in CUT_OFF:
            return None, 0
        status, error = CUT_OFF[self._why]
        return error_message(request, error.code, error.message, error.data), status

    async def _finish(self, message: dict[str, Any] | None, status: int, *, at_once: bool) -> None:
        if message is None:
            if self._stream is not None:
                self._stream.close()
            return
        if self._stream is None and status == 200 and self.http.accepts_sse and (at_once or not self.http.accepts_json):
            self._open()
        if self._stream is None:
            if self.http.missing_scopes and self.wanting is not None:
                status, self.headers = 403, (*self.headers, *self.wanting(self.http))
            await send_json(self._send, status, message, self.headers)
            return
        self._stream.put(message)
        self._stream.close()
        if self._pump is not None:
            await asyncio.wait((self._pump,))
            if not self._pump.cancelled() and self._pump.result():
                await self._send({"type": "http.response.body", "body": b""})

    def _say(self, message: dict[str, Any]) -> None:
        """Put a message on the answer's stream; what a client that wants none would hear is dropped."""
        if self._ended or not self.http.accepts_sse:
            return
        if self._stream is None:
            self._open()
        assert self._stream is not None
        self._stream.put(message)

    def _open(self) -> None:
        self._stream = Stream() if self.back is None else self.back.open_stream()
        if self.back is not None and self.back.primed:
            self._stream.prime()
        self._pump = self._loop.create_task(self._write(self._stream))
        self._look_out()

    async def _write(self, stream: Stream) -> bool:
        await start_events(self._send, self.headers)
        return await stream.pump(self._send)

    async def _release(self) -> None:
        """End the connection but not the call: the client comes back for the rest."""
        if self._stream is None:
            self._open()
        stream, pump = self._stream, self._pump
        if stream is None or pump is None:
            return
        # If ours has ended, the client may have come back already, by another request.
        if not pump.done() or stream.written:
            stream.release()
        if pump.done():
            return
        if self._watch is not None:
            self._watch.cancel()
        await asyncio.wait((pump,))
        await self._send({"type": "http.response.body", "body": b""})

    # Clients that go, and calls that are ended from outside.

    @property
    def stream(self) -> Stream | None:
        """The stream that the answer goes out on, if it is one."""
        return self._stream

    def cancel(self, why: Why) -> None:
        """End the call, which undoes what it did; the client is told why, if it is there."""
        if not self._running or self._why is not None or self._task is None:
            return
        self._why = why
        if self._cancel_event is not None:
            self._cancel_event.set()
        self._task.cancel()

    def _linger(self, wait_s: float) -> None:
        self._look_out()
        if self.http.accepts_sse and self._stream is None:
            self._long = self._loop.call_later(max(wait_s, 0), self._break_silence)

    def _break_silence(self) -> None:
        if self._running and self._stream is None:
            self._open()

    def _look_out(self) -> None:
        if self._watch is None:
            self._watch = self._loop.create_task(self._await_end())

    async def _await_end(self) -> None:
        await until_gone(self._receive)
        self._gone()

    def _gone(self) -> None:
        # Before 2026-07-28 a lost connection is no wish to cancel; the client may even come back for the answer.
        if self.modern:
            self.cancel("gone")
        elif self._pump is not None:
            self._pump.cancel()

    async def _settle(self) -> None:
        if self._long is not None:
            self._long.cancel()
        ours: tuple[asyncio.Task[Any] | None, ...] = (self._watch, self._pump)
        tasks: list[asyncio.Task[Any]] = [task for task in ours if task is not None and not task.done()]
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.gather(*tasks, return_exceptions=True)
        # They know of this exchange as it knows of them: memory would grow until the collector comes by.
        self._watch = self._pump = self._long = self._task = None
        self.message_metadata.close_sse_stream = None


class Notice:
    """The SDK's dispatch context of a notification: nothing is owed, and nothing can be said back."""

    can_send_request = False
    request_id = None

    def __init__(self, http: HttpRequest) -> None:
        self.transport = TransportContext(kind="streamable-http", can_send_request=False, headers=http.headers)
        self.message_metadata = ServerMessageMetadata(request_context=http)
        self.cancel_requested = anyio.Event()

    async def send_raw_request(
        self, method: str, params: Mapping[str, Any] | None, opts: CallOptions | None = None
    ) -> dict[str, Any]:
        raise NoBackChannelError(method)

    async def notify(self, method: str, params: Mapping[str, Any] | None, opts: CallOptions | None = None) -> None:
        return None

    async def progress(self, progress: float, total: float | None = None, message: str | None = None) -> None:
        return None

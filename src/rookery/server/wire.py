"""Lines of JSON-RPC to and from the SDK: no thread, no queue, nothing between the socket and the dispatcher.

The SDK drops what it cannot parse and cancels running calls at the end of input. Here, what cannot be parsed is
answered, an over-long line costs one error, and the end of input waits until every call has its answer.
"""

import asyncio
import contextlib
import json
import os
from collections import deque
from types import TracebackType
from typing import Any, Protocol, Self, cast

import mcp_types as types
from mcp.shared.message import SessionMessage
from mcp_types.jsonrpc import jsonrpc_message_adapter
from pydantic import ValidationError

CHUNK = 1 << 18
MAX_AHEAD = 8
NEVER_ANSWERED = frozenset({"subscriptions/listen"})


class Reader(Protocol):
    async def read(self, n: int) -> bytes: ...


class Writer(Protocol):
    def write(self, data: bytes) -> None: ...
    async def drain(self) -> None: ...


class Lines:
    """Lines of a byte stream, none longer than `limit`. An over-long one is skipped to its end and given as None."""

    def __init__(self, reader: Reader, limit: int) -> None:
        self._reader = reader
        self._limit = limit
        self._buffer = bytearray()
        self._searched = 0
        self._skipping = False
        self._ended = False

    async def next(self) -> bytes | None:
        """The next line without its newline, None for one that was too long. Raises EOFError at the end."""
        while True:
            end = self._buffer.find(b"\n", self._searched)
            if end >= 0:
                line = bytes(memoryview(self._buffer)[:end])
                del self._buffer[: end + 1]
                self._searched = 0
                if self._skipping or len(line) > self._limit:
                    self._skipping = False
                    return None
                return line
            self._searched = len(self._buffer)
            if self._searched > self._limit:
                self._skipping = True
                self._buffer.clear()
                self._searched = 0
            if self._ended:
                return self._last()
            chunk = await self._reader.read(CHUNK)
            self._ended = not chunk
            self._buffer += chunk

    def _last(self) -> bytes | None:
        """What stands after the last newline: a client may end without one."""
        line, skipped = bytes(self._buffer), self._skipping
        self._buffer.clear()
        self._searched, self._skipping = 0, False
        if skipped:
            return None
        if not line:
            raise EOFError
        return line


class Wire:
    """Both streams that the SDK's server runs on, over one connection."""

    def __init__(self, reader: Reader, writer: Writer, max_line_bytes: int) -> None:
        self._lines = Lines(reader, max_line_bytes)
        self._max = max_line_bytes
        self._writer = writer
        self._pending: dict[int | str, int] = {}
        self._settled = asyncio.Event()
        self._ahead: deque[SessionMessage] = deque()
        self._nonce = os.urandom(6).hex()
        self._broken = False
        self._unsent: list[bytes] = []
        self._loop = asyncio.get_running_loop()

    async def opens_modern(self) -> bool:
        """Whether the client's first request is one of the era without a handshake. Nothing is consumed."""
        with contextlib.suppress(StopAsyncIteration):
            while len(self._ahead) < MAX_AHEAD:
                item = await self._read()
                self._ahead.append(item)
                if isinstance(item.message, types.JSONRPCRequest):
                    meta = (item.message.params or {}).get("_meta")
                    return isinstance(meta, dict) and types.PROTOCOL_VERSION_META_KEY in meta
        return False

    async def receive(self) -> SessionMessage:
        """The next message that is one; everything else is answered here."""
        return self._ahead.popleft() if self._ahead else await self._read()

    async def _read(self) -> SessionMessage:
        while True:
            try:
                line = await self._lines.next()
            except (EOFError, ConnectionError):
                await self._until_answered()
                raise StopAsyncIteration from None
            if line is None:
                await self._refuse(None, types.INVALID_REQUEST, f"a line may have at most {self._max} bytes")
                continue
            if not line.strip():
                continue
            try:
                message = jsonrpc_message_adapter.validate_json(line, by_name=False)
            except ValidationError:
                await self._refuse_line(line)
                continue
            if isinstance(message, types.JSONRPCResponse | types.JSONRPCError):
                ours = self._own_id(message.id)
                if ours is None:
                    continue
                message = message.model_copy(update={"id": ours})
            self._note(message)
            return SessionMessage(message)

    def _own_id(self, request: int | str | None) -> int | None:
        """The number of the request that an answer belongs to; None if this connection never asked it.

        The SDK counts from one on every connection, so behind a relay an answer meant for a server that died would
        otherwise be taken for the answer to a question of its successor.
        """
        nonce, _, number = request.rpartition("-") if isinstance(request, str) else ("", "", "")
        return int(number) if nonce == self._nonce and number.isascii() and number.isdigit() else None

    def _note(self, message: types.JSONRPCMessage) -> None:
        if isinstance(message, types.JSONRPCRequest) and message.method not in NEVER_ANSWERED:
            self._pending[message.id] = self._pending.get(message.id, 0) + 1
        elif isinstance(message, types.JSONRPCNotification) and message.method == "notifications/cancelled":
            # A cancelled request is never answered.
            self._answered((message.params or {}).get("requestId"))

    def _answered(self, request: Any) -> None:
        if not isinstance(request, int | str) or request not in self._pending:
            return
        self._pending[request] -= 1
        if self._pending[request] <= 0:
            del self._pending[request]
            if not self._pending:
                self._settled.set()

    async def _until_answered(self) -> None:
        while self._pending and not self._broken:
            self._settled.clear()
            await self._settled.wait()

    async def _refuse_line(self, line: bytes) -> None:
        """Answer a line that is no message, with its id if it has one, so that the client can tell which it was."""
        try:
            value: Any = json.loads(line)
        except (ValueError, RecursionError):
            await self._refuse(None, types.PARSE_ERROR, "the line is not JSON")
            return
        if isinstance(value, list):
            await self._refuse(None, types.INVALID_REQUEST, "batches are not part of this protocol")
            return
        request = cast("dict[str, Any]", value).get("id") if isinstance(value, dict) else None
        known = (
            request
            if isinstance(request, str) or (isinstance(request, int) and not isinstance(request, bool))
            else None
        )
        await self._refuse(known, types.INVALID_REQUEST, "the line is not a JSON-RPC 2.0 message")

    async def _refuse(self, request: int | str | None, code: int, message: str) -> None:
        error = {"jsonrpc": "2.0", "id": request, "error": {"code": code, "message": message}}
        await self._put(json.dumps(error, separators=(",", ":")).encode())

    async def send(self, item: SessionMessage, /) -> None:
        """Write one message; waits only while the client does not read."""
        message = item.message
        if isinstance(message, types.JSONRPCRequest):
            message = message.model_copy(update={"id": f"{self._nonce}-{message.id}"})
        await self._put(message.model_dump_json(by_alias=True, exclude_unset=True).encode())
        if isinstance(message, types.JSONRPCResponse | types.JSONRPCError):
            self._answered(message.id)

    async def _put(self, data: bytes) -> None:
        # All answers of one round of the loop go out together: a write for each woke the other end each time.
        if not self._unsent:
            self._loop.call_soon(self.flush)
        self._unsent += (data, b"\n")
        try:
            await self._writer.drain()
        except (ConnectionError, RuntimeError):
            self._break()

    def flush(self) -> None:
        """Hand everything that was put to the connection."""
        unsent, self._unsent = self._unsent, []
        if not unsent or self._broken:
            return
        try:
            self._writer.write(b"".join(unsent))
        except (ConnectionError, RuntimeError):
            self._break()

    def _break(self) -> None:
        self._broken = True
        self._settled.set()

    async def aclose(self) -> None:
        self.flush()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> SessionMessage:
        return await self.receive()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc_val: BaseException | None, exc_tb: TracebackType | None
    ) -> None:
        return None

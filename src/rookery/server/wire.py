"""Lines of JSON-RPC to and from the SDK: no thread, no queue, nothing between the socket and the dispatcher.

The SDK drops what it cannot parse, cancels running calls at the end of input, and takes in any number of calls from a
client that reads no answer. Here, what cannot be parsed is answered, the end of input waits until every call has its
answer, and nothing more is read from a client that does not read.
"""

import asyncio
import contextlib
import json
import os
from collections import deque
from collections.abc import Callable
from types import TracebackType
from typing import Any, Protocol, Self, cast

import mcp_types as types
from mcp.shared.dispatcher import as_request_id, coerce_request_id
from mcp.shared.message import SessionMessage
from mcp_types.jsonrpc import jsonrpc_message_adapter
from pydantic import ValidationError
from pydantic_core import PydanticSerializationError

from rookery.core.errors import ServiceUnavailable
from rookery.server.lines import EDGE, Lines, Overlong, Reader, edge_id, usable_id

MAX_AHEAD = 8
# How much may wait for a client before nothing more is read from it.
UNREAD_BYTES = 16 << 20
# With this many calls open the next ones are taken in slowly: each costs some 20 KB.
MANY_OPEN = 1000
SLOWLY_S = 0.05
LOOK_S = 0.5
NEVER_ANSWERED = frozenset({"subscriptions/listen"})
# What the SDK answers to calls that it cancels because the session is closed, and what we say instead.
CUT_OFF = types.ErrorData(code=types.CONNECTION_CLOSED, message="Connection closed")
_stopped = ServiceUnavailable(
    "The Rookery server stopped while this call was running.", hint="It was undone unless it was nearly finished: look."
)
STOPPED = types.ErrorData(code=_stopped.rpc, message=_stopped.message, data=_stopped.as_dict())


class Writer(Protocol):
    def write(self, data: bytes) -> None: ...
    async def drain(self) -> None: ...


class Wire:
    """Both streams that the SDK's server runs on, over one connection. `gone` says whether the client cannot read."""

    def __init__(
        self, reader: Reader, writer: Writer, max_line_bytes: int, gone: Callable[[], bool] = lambda: False
    ) -> None:
        self._lines = Lines(reader, max_line_bytes)
        self._max = max_line_bytes
        self._writer = writer
        self._gone = gone
        self._open: dict[int | str, int] = {}
        self._open_count = 0
        self._questions: set[int] = set()
        self._orphans: deque[int] = deque()
        self._changed = asyncio.Event()
        self._ahead: deque[SessionMessage] = deque()
        self._nonce = os.urandom(6).hex()
        self._modern = self._ended = self._broken = False
        self._unsent: list[bytes] = []
        self._loop = asyncio.get_running_loop()
        if isinstance(writer, asyncio.StreamWriter):
            writer.transport.set_write_buffer_limits(high=UNREAD_BYTES)

    async def opens_modern(self) -> bool:
        """Whether the client's first request is one of the era without a handshake. Nothing is consumed."""
        with contextlib.suppress(StopAsyncIteration):
            while len(self._ahead) < MAX_AHEAD:
                item = await self._read()
                self._ahead.append(item)
                if isinstance(item.message, types.JSONRPCRequest):
                    meta = (item.message.params or {}).get("_meta")
                    self._modern = isinstance(meta, dict) and types.PROTOCOL_VERSION_META_KEY in meta
                    break
        return self._modern

    async def receive(self) -> SessionMessage:
        """The next message that is one; everything else is answered here."""
        return self._ahead.popleft() if self._ahead else await self._read()

    async def _read(self) -> SessionMessage:
        while True:
            await self._drained()
            if self._open_count >= MANY_OPEN:
                await self._slowly()
            try:
                line = await self._lines.next()
            except (EOFError, OSError):
                return await self._finish()
            message = await self._message(line)
            if message is not None:
                return SessionMessage(message)

    async def _slowly(self) -> None:
        # Not for long: what ends a call may be a message that has yet to be read.
        self._changed.clear()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(SLOWLY_S):
                await self._changed.wait()

    async def _finish(self) -> SessionMessage:
        """After the end of input: what the client was asked is answered in its place; ends once all its calls are."""
        self._ended = True
        self._orphans.extend(self._questions)
        self._questions.clear()
        while not self._orphans:
            if not self._open or self._broken or self._gone():
                raise StopAsyncIteration
            self._changed.clear()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(LOOK_S):
                    await self._changed.wait()
        return SessionMessage(_no_answer(self._orphans.popleft(), "the client has ended its input"))

    async def _message(self, line: bytes | Overlong) -> types.JSONRPCMessage | None:
        """The message in the line, or None if there was none for us; what is owed an error has got it."""
        if isinstance(line, Overlong):
            await self._refuse(line.id, types.INVALID_REQUEST, f"a line may have at most {self._max} bytes")
            return None
        if not line or line.isspace():
            return None
        try:
            message = jsonrpc_message_adapter.validate_json(line, by_name=False)
        except ValidationError:
            return await self._refuse_line(line)
        if isinstance(message, types.JSONRPCRequest):
            self._note(message)
        elif isinstance(message, types.JSONRPCNotification):
            # To the SDK a request without a usable id is a notification, and its sender would wait for ever.
            if b'"id"' in line and _names_id(line):
                await self._refuse(None, types.INVALID_REQUEST, "an id must be a string or a whole number")
                return None
            if message.method == "notifications/cancelled":
                # A cancelled request is never answered.
                self._answered(as_request_id((message.params or {}).get("requestId")))
        else:
            reply = self._reply(message)
            # With a method that is none it may be a request whose sender waits.
            return await self._refuse_line(line) if reply is None and b'"method"' in line else reply
        return message

    def _reply(self, message: types.JSONRPCResponse | types.JSONRPCError) -> types.JSONRPCMessage | None:
        """The client's answer to a question of this connection, under the number that the SDK gave it; else None.

        The SDK counts from one on every connection, so behind a relay an answer meant for a server that died would
        otherwise be taken for the answer to a question of its successor.
        """
        number = self._own_number(message.id)
        if number is None:
            return None
        self._questions.discard(number)
        return message.model_copy(update={"id": number})

    def _own_number(self, request: Any) -> int | None:
        nonce, _, digits = request.rpartition("-") if isinstance(request, str) and len(request) < 50 else ("", "", "")
        number = int(digits) if nonce == self._nonce and digits.isascii() and digits.isdigit() else 0
        return number if number in self._questions else None

    def _note(self, message: types.JSONRPCRequest) -> None:
        if self._modern and message.method in NEVER_ANSWERED:
            return
        key = coerce_request_id(message.id)
        self._open[key] = self._open.get(key, 0) + 1
        self._open_count += 1

    def _answered(self, request: int | str | None) -> None:
        # To the SDK a number and its digits are one id.
        key = None if request is None else coerce_request_id(request)
        if key is None or key not in self._open:
            return
        self._open[key] -= 1
        self._open_count -= 1
        if self._open[key] <= 0:
            del self._open[key]
        self._changed.set()

    async def _refuse_line(self, line: bytes) -> types.JSONRPCMessage | None:
        """Answer a line that is no message, with its id if it has one, so that the client can tell which it was."""
        try:
            value: Any = json.loads(line.decode(errors="replace"), strict=False)
        except RecursionError:
            request = edge_id(line[:EDGE], line[-EDGE:])
            await self._refuse(request, types.INVALID_REQUEST, "the line is nested too deeply")
            return None
        except ValueError:
            await self._refuse(None, types.PARSE_ERROR, "the line is not JSON")
            return None
        if isinstance(value, list):
            await self._refuse(None, types.INVALID_REQUEST, "batches are not part of this protocol")
            return None
        members = cast("dict[str, Any]", value) if isinstance(value, dict) else {}
        if "method" not in members and ("result" in members or "error" in members):
            # An answer, if to anything: nobody is owed an answer to it, but whoever asked must not wait for ever.
            number = self._own_number(members.get("id"))
            if number is None:
                return None
            self._questions.discard(number)
            return _no_answer(number, "the client's answer makes no sense")
        await self._refuse(
            usable_id(members.get("id")), types.INVALID_REQUEST, "the line is not a JSON-RPC 2.0 message"
        )
        return None

    async def _refuse(self, request: int | str | None, code: int, message: str) -> None:
        error = {"jsonrpc": "2.0", "id": request, "error": {"code": code, "message": message}}
        await self._put(json.dumps(error, separators=(",", ":")).encode())

    async def send(self, item: SessionMessage, /) -> None:
        """Write one message; waits only while the client has too much to read."""
        message = item.message
        if isinstance(message, types.JSONRPCRequest):
            number = cast(int, message.id)
            if self._ended:
                self._orphans.append(number)
                self._changed.set()
                return
            self._questions.add(number)
            message = message.model_copy(update={"id": f"{self._nonce}-{number}"})
        elif isinstance(message, types.JSONRPCNotification) and message.method == "notifications/cancelled":
            number = (message.params or {}).get("requestId")
            self._questions.discard(cast(int, number))
            params = {**(message.params or {}), "requestId": f"{self._nonce}-{number}"}
            message = message.model_copy(update={"params": params})
        elif isinstance(message, types.JSONRPCError) and message.error == CUT_OFF:
            message = message.model_copy(update={"error": STOPPED})
        await self._put(_encode(message))
        if isinstance(message, types.JSONRPCResponse | types.JSONRPCError):
            self._answered(message.id)

    async def _put(self, data: bytes) -> None:
        # All answers of one round of the loop go out together: a write for each woke the other end each time.
        if not self._unsent:
            self._loop.call_soon(self.flush)
        self._unsent += (data, b"\n")
        await self._drained()

    async def _drained(self) -> None:
        try:
            await self._writer.drain()
        except (OSError, RuntimeError):
            self._break()

    def flush(self) -> None:
        """Hand everything that was put to the connection."""
        unsent, self._unsent = self._unsent, []
        if not unsent or self._broken:
            return
        try:
            self._writer.write(b"".join(unsent))
        except (OSError, RuntimeError):
            self._break()

    def _break(self) -> None:
        self._broken = True
        self._changed.set()

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


def _names_id(line: bytes) -> bool:
    try:
        return "id" in json.loads(line)
    except ValueError:
        return False


def _no_answer(number: int, why: str) -> types.JSONRPCError:
    return types.JSONRPCError(
        jsonrpc="2.0", id=number, error=types.ErrorData(code=types.CONNECTION_CLOSED, message=why)
    )


def _encode(message: types.JSONRPCMessage) -> bytes:
    try:
        return message.model_dump_json(by_alias=True, exclude_unset=True).encode()
    except PydanticSerializationError:
        # Half of a pair of surrogates, as file names can have: UTF-8 cannot say it, and of clients that are told it
        # in JSON's own way some drop the whole message, so that its caller waits for ever.
        told = message.model_dump(by_alias=True, exclude_unset=True)
        return json.dumps(told, separators=(",", ":"), ensure_ascii=False).encode(errors="replace")

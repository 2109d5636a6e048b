"""Forwards one session between a client's stdin and stdout and the server, across restarts of the server."""

import os
import select
import time
from _socket import SHUT_WR, socket

from rookery.relay_wire import (
    ANSWER_S,
    CHUNK,
    RefusedError,
    RequestId,
    decode,
    dial,
    encode,
    id_of,
    read_line,
    send_all,
    unavailable,
)

# A longer line is still forwarded, but its id stays unknown here. The server's own limit has to be lower.
LINE_MAX = 64 * 1024 * 1024
LOOK_S = 0.5

STOPPED = unavailable(
    "The Rookery server stopped while this call was running.",
    "Whether the call took effect is unknown: look before you repeat it.",
)
NOT_RUNNING = unavailable(
    "The Rookery server is not running.",
    "The call did not run. Start the server with `rookery up` and repeat it.",
)

RESULT = b'{"jsonrpc":"2.0","id":'
NOTIFICATION = b'{"jsonrpc":"2.0","method":'


def answered_id(lines: bytearray, start: int, end: int) -> RequestId | None:
    """The id that the server's line lines[start:end] answers, or None if it is no answer."""
    if lines.startswith(NOTIFICATION, start):
        return None
    if lines.startswith(RESULT, start):
        # What our server writes, read without decoding an answer of many megabytes.
        at = start + len(RESULT)
        is_text = lines.startswith(b'"', at)
        stop = lines.find(b'"', at + 1, end) + 1 if is_text else lines.find(b",", at, end)
        token = bytes(lines[at:stop])
        if lines.startswith((b',"result":', b',"error":'), stop):
            if is_text and b"\\" not in token:
                return token[1:-1].decode(errors="replace")
            if token.isdigit() and len(token) < 20:
                return int(token)
    message = decode(lines[start:end])
    return None if message is None or "method" in message else id_of(message)


def nobody_reads(descriptor: int) -> bool:
    """Whether the pipe or socket has lost its other end."""
    poll = select.poll()
    poll.register(descriptor, 0)
    return any(event & (select.POLLERR | select.POLLHUP) for _, event in poll.poll(0))


class Pump:
    """One session over any number of connections: the client gets every request answered, in whole lines.

    Towards the server bytes go out as they come. Towards the client only complete lines do: what a dying
    server cut in two could not be taken back. At most one line and one chunk of each direction are held.
    """

    def __init__(self, path: str, hello: bytes, sock: socket, received: bytearray) -> None:
        self.path, self.hello = path, hello
        self.sock: socket | None = sock
        self.to_server = bytearray()
        self.to_client = bytearray()
        self.whole = 0  # how much of to_client is complete lines
        self.line = bytearray()  # the client's line up to now
        self.lost = ""  # the error that the client's line will get, because it cannot reach the server
        self.pending: dict[RequestId, object] = {}  # the method of each request that waits
        self.initialize = self.initialized = b""
        self.initialize_id: RequestId | None = None
        self.ended = self.unwritable = False
        self.retry_at = 0.0
        self.receive(received)

    def run(self) -> None:
        """Forward until the client has ended its input and the server has closed. OSError: stdout is gone."""
        while self.sock is not None or self.whole or not self.ended:
            sock = self.sock
            readers: list[socket | int] = []
            writers: list[socket | int] = []
            if not self.ended and not self.to_server and (sock is not None or not self.whole):
                readers.append(0)
            if self.whole:
                writers.append(1)
            elif sock is not None:
                readers.append(sock)
            if sock is not None and self.to_server and not self.unwritable:
                writers.append(sock)
            # A client that has ended its input may have gone altogether; what it started has to end then.
            readable, writable, _ = select.select(readers, writers, [], LOOK_S if self.ended else None)
            if self.ended and nobody_reads(1):
                raise BrokenPipeError
            if 1 in writable:
                self.write_client()
            # The server comes first: a call that arrives with the news of its death goes to the next one.
            if sock in readable:
                self.read_server()
            if 0 in readable:
                self.read_client()
            if self.to_server and not self.unwritable:
                self.write_server()

    def write_client(self) -> None:
        try:
            # A ready pipe takes this much without blocking. O_NONBLOCK would apply to all who share the pipe.
            count = os.write(1, self.to_client[: min(self.whole, select.PIPE_BUF)])
        except BlockingIOError:
            return
        del self.to_client[:count]
        self.whole -= count

    def say(self, line: bytes) -> None:
        self.to_client[self.whole : self.whole] = line
        self.whole += len(line)

    def read_client(self) -> None:
        try:
            chunk = os.read(0, CHUNK)
        except BlockingIOError:
            return
        except OSError:
            chunk = b""
        start = 0
        while start < len(chunk):
            end = chunk.find(b"\n", start) + 1 or len(chunk)
            self.take(chunk[start:end])
            start = end
        if not chunk:
            self.ended = True
            self.end_line()
            self.half_close()

    def take(self, piece: bytes) -> None:
        """Forward a piece of at most one line, and look at the line when it is complete."""
        if not self.line and self.sock is None:
            self.lost = self.reconnect()
        if not self.lost:
            self.to_server += piece
        if len(self.line) <= LINE_MAX:
            self.line += piece
        if piece.endswith(b"\n"):
            self.end_line()

    def end_line(self) -> None:
        line, self.line = self.line, bytearray()
        lost, self.lost = self.lost, ""
        if not line or line.isspace():
            return
        message = decode(line) if len(line) <= LINE_MAX else None
        if message is not None and message.get("method") == "notifications/initialized":
            self.initialized = bytes(line)
        if lost:
            self.refuse(message, lost)
        elif message is not None:
            self.note(message, line)

    def refuse(self, message: dict[str, object] | None, error: str) -> None:
        """Answer what would have been answered; a line without a usable id gets null, as JSON-RPC has it."""
        if message is None or ("method" in message and "id" in message):
            self.fail(None if message is None else id_of(message), error)

    def fail(self, request_id: RequestId | None, error: str) -> None:
        self.say(f'{{"jsonrpc":"2.0","id":{encode(request_id)},"error":{error}}}\n'.encode())

    def note(self, message: dict[str, object], line: bytearray) -> None:
        """Remember what an answer is owed to, and what a new server has to be told first."""
        method, request_id = message.get("method"), id_of(message)
        if method is not None and request_id is not None:
            self.pending[request_id] = method
            if method == "initialize":
                self.initialize, self.initialize_id, self.initialized = bytes(line), request_id, b""
        elif method == "notifications/cancelled":
            params = message.get("params")
            if isinstance(params, dict):
                # A cancelled request is not answered any more.
                cancelled = id_of({"id": params.get("requestId")})  # pyright: ignore[reportUnknownMemberType]
                if cancelled is not None:
                    # To the server a number and its digits are one id.
                    for known in [known for known in self.pending if str(known) == str(cancelled)]:
                        del self.pending[known]

    def write_server(self) -> None:
        if self.sock is None:
            return
        try:
            del self.to_server[: self.sock.send(self.to_server)]
        except BlockingIOError:
            return
        except OSError:
            # Answers may still wait to be read; the end of them tells that the server is gone.
            self.unwritable = True
        self.half_close()

    def half_close(self) -> None:
        if self.ended and not self.to_server and self.sock is not None:
            try:
                self.sock.shutdown(SHUT_WR)
            except OSError:
                self.unwritable = True

    def read_server(self) -> None:
        if self.sock is None:
            return
        try:
            chunk = self.sock.recv(CHUNK)
        except BlockingIOError:
            return
        except OSError:
            chunk = b""
        if chunk:
            self.receive(chunk)
        else:
            self.server_gone(self.sock)

    def receive(self, chunk: bytes | bytearray) -> None:
        start = len(self.to_client)
        self.to_client += chunk
        whole = self.to_client.rfind(b"\n", start) + 1
        at = self.whole
        while self.pending and at < whole:
            end = self.to_client.find(b"\n", at) + 1
            request_id = answered_id(self.to_client, at, end)
            if request_id is not None:
                self.pending.pop(request_id, None)
            at = end
        self.whole = whole or self.whole

    def server_gone(self, sock: socket) -> None:
        """Answer every call that waits, and drop the line that the server did not finish."""
        sock.close()
        self.sock, self.unwritable = None, False
        self.to_server.clear()
        del self.to_client[self.whole :]
        if self.initialize_id in self.pending:
            # The client is told that it failed, and will begin again.
            self.initialize = self.initialized = b""
        for request_id, method in self.pending.items():
            # A subscription lasts as long as its client, so nothing is owed to one that has ended.
            if not (self.ended and method == "subscriptions/listen"):
                self.fail(request_id, STOPPED)
        self.pending.clear()
        if self.line and not self.lost:
            self.lost = STOPPED

    def reconnect(self) -> str:
        """Empty if the server is back and knows this client again, else the error for the call that asked."""
        if time.monotonic() < self.retry_at:
            return NOT_RUNNING
        try:
            sock, received = dial(self.path, self.hello)
            try:
                self.replay(sock, received)
            except OSError:
                sock.close()
                raise
        except RefusedError as refused:
            message = f"The Rookery server refused this session: {refused}"
            return unavailable(message, "The call did not run. Start a new session.", retryable=False)
        except TimeoutError:
            # A server that hangs must not hold up every call of a burst in turn.
            self.retry_at = time.monotonic() + ANSWER_S
            return NOT_RUNNING
        except OSError:
            return NOT_RUNNING
        self.sock = sock
        return ""

    def replay(self, sock: socket, received: bytearray) -> None:
        """Introduce the client to a new server. Calls are never repeated: they may have taken effect."""
        deadline = time.monotonic() + ANSWER_S
        send_all(sock, self.initialize, deadline)
        while self.initialize:
            line = bytearray(read_line(sock, received, deadline))
            if answered_id(line, 0, len(line)) == self.initialize_id:
                break
            self.say(bytes(line))
        send_all(sock, self.initialized, deadline)
        self.receive(received)

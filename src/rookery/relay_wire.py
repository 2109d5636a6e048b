"""What relay and server say to each other before a session, and the little JSON that the relay needs."""

import os
import select
import sys
import time
from _json import encode_basestring_ascii, make_scanner
from _socket import AF_UNIX, SOCK_STREAM, SOL_SOCKET, socket

from rookery import __version__

RequestId = int | str

ANSWER_S = 5.0
CHUNK = 65536
BLANK = " \t\r\n"  # what JSON takes for a space; Python's own idea of one is wider


class RefusedError(Exception):
    """The server does not take this session; `fallback` allows to serve it in this process."""

    def __init__(self, reason: str, fallback: bool) -> None:
        super().__init__(reason)
        self.fallback = fallback


class _Plain:
    """What the C scanner asks of a decoder, with the plain Python types."""

    strict = False
    object_hook = object_pairs_hook = array_hook = None
    parse_float = parse_constant = float
    parse_int = int


_scan = make_scanner(_Plain)  # pyright: ignore[reportArgumentType]  # any object with these attributes will do


def decode(line: bytes | bytearray) -> dict[str, object] | None:
    """The JSON object in the line, or None if it is anything else."""
    try:
        text = line.decode(errors="replace").lstrip(BLANK)
        value, end = _scan(text, 0)
    except (StopIteration, ValueError, RecursionError, SystemError):
        # Python 3.11 has no other exception for JSON that is cut off, as long as json.decoder is not imported.
        return None
    return value if text.startswith("{") and not text[end:].strip(BLANK) else None


def id_of(message: dict[str, object]) -> RequestId | None:
    """The id of the message, or None if it has none that an answer could carry."""
    value = message.get("id")
    return value if isinstance(value, int | str) and not isinstance(value, bool) else None


def encode(value: RequestId | None) -> str:
    """The JSON text of an id; also of any string, lone surrogates included."""
    if isinstance(value, str):
        return encode_basestring_ascii(value)
    return "null" if value is None else str(value)


def unavailable(message: str, hint: str, retryable: bool = True) -> str:
    """The JSON-RPC error object for a call that the server cannot answer."""
    data = f'{{"code":"SERVICE_UNAVAILABLE","hint":{encode(hint)},"retryable":{str(retryable).lower()}}}'
    return f'{{"code":-32000,"message":{encode(message)},"data":{data}}}'


def greeting(flags: dict[str, str | bool]) -> bytes:
    """The first line to the server: who speaks, from where, bound to what."""
    try:
        cwd = os.getcwd()
    except OSError:
        cwd = ""
    pairs = (f"{encode(name)}:{encode(v) if isinstance(v, str) else 'true'}" for name, v in flags.items())
    binding = "{" + ",".join(pairs) + "}"
    return f'{{"rookery":1,"version":{encode(__version__)},"cwd":{encode(cwd)},"flags":{binding}}}\n'.encode()


def send_all(sock: socket, data: bytes, deadline: float) -> None:
    """Send everything before the deadline, or raise OSError."""
    view = memoryview(data)
    while view:
        if not select.select([], [sock], [], max(0.0, deadline - time.monotonic()))[1]:
            raise TimeoutError("the server does not read")
        view = view[sock.send(view[:CHUNK]) :]


def read_line(sock: socket, buffer: bytearray, deadline: float) -> bytes:
    """Take one line off the buffer, reading what is missing before the deadline, or raise OSError."""
    while (end := buffer.find(b"\n") + 1) == 0:
        if not select.select([sock], [], [], max(0.0, deadline - time.monotonic()))[0]:
            raise TimeoutError("the server does not answer")
        chunk = sock.recv(CHUNK)
        if not chunk:
            raise ConnectionResetError("the server closed the connection")
        buffer += chunk
    line = bytes(buffer[:end])
    del buffer[:end]
    return line


def connect(sock: socket, path: str, deadline: float) -> None:
    """Connect to a server of the same user, or raise OSError; another user's could answer for Rookery."""
    if os.lstat(path).st_uid != os.geteuid():
        raise PermissionError("the socket belongs to another user")
    sock.setblocking(False)
    while True:
        try:
            sock.connect(path)
            break
        except BlockingIOError:
            # The queue of the listener is full: many sessions start at once.
            if time.monotonic() > deadline:
                raise TimeoutError("the server accepts no connection") from None
            time.sleep(0.01)
    if sys.platform == "linux":
        from _socket import SO_PEERCRED

        # The file can be replaced after lstat; the peer of the connection cannot.
        if int.from_bytes(sock.getsockopt(SOL_SOCKET, SO_PEERCRED, 12)[4:8], sys.byteorder) != os.geteuid():
            raise PermissionError("the server belongs to another user")


def dial(path: str, hello: bytes) -> tuple[socket, bytearray]:
    """A session that the server took, and what it sent since. OSError: no server of ours is there."""
    deadline = time.monotonic() + ANSWER_S
    sock, buffer = socket(AF_UNIX, SOCK_STREAM), bytearray()
    try:
        connect(sock, path, deadline)
        send_all(sock, hello, deadline)
        answer = decode(read_line(sock, buffer, deadline))
        if answer is None or "ok" not in answer:
            raise ConnectionError("the socket answers something else")
        if answer["ok"] is not True:
            raise RefusedError(str(answer.get("reason")), answer.get("fallback") is True)
    except BaseException:
        sock.close()
        raise
    return sock, buffer

"""A stdio MCP client that costs so little that what is measured is the server.

Requests are ready-made bytes around a counter, answers are recognised by their id without parsing the rest.
"""

import json
import os
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType
from typing import Any, Self

# Ids have a fixed width and a prefix that no row id in an answer reaches, so they can be cut out of bytes.
ID_PREFIX = 70_000_000
ID_DIGITS = 7
FIRST_ID = ID_PREFIX * 10**ID_DIGITS
CHUNK = 1 << 18
PROTOCOL_VERSION = "2025-11-25"
FAILURES = (b'"isError":true', b'"isError": true', b'"error":{', b'"error": {')
INITIALIZED = b'{"jsonrpc":"2.0","method":"notifications/initialized"}\n'


class MeasureError(Exception):
    """Something could not be measured; the message says what and why."""


@dataclass(frozen=True)
class Slice:
    """One stretch of calls: how many per second, and how long one took."""

    calls_per_s: float
    p50_ms: float
    p99_ms: float
    calls: int
    seconds: float

    @classmethod
    def of(cls, took: list[float], seconds: float) -> Self:
        """Calls that took so many seconds each, all within `seconds`."""
        took = sorted(took)
        return cls(
            calls_per_s=len(took) / seconds,
            p50_ms=took[len(took) // 2] * 1000,
            p99_ms=took[min(len(took) - 1, len(took) * 99 // 100)] * 1000,
            calls=len(took),
            seconds=seconds,
        )


def last_words(text: str) -> str:
    """The last line: of a traceback the one that says what is wrong."""
    return (text.strip().splitlines() or ["it said nothing"])[-1][:300]


@contextmanager
def deadline(seconds: float, what: str) -> Iterator[None]:
    """Raise `MeasureError` in the body when it takes longer. Main thread only, not to be nested."""

    def expired(signum: int, frame: FrameType | None) -> None:
        raise MeasureError(f"{what} took longer than {seconds:g} s")

    previous = signal.signal(signal.SIGALRM, expired)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, previous)


def request_parts(method: str, params: dict[str, Any]) -> tuple[bytes, bytes]:
    """The bytes before and after the id of a request."""
    body = json.dumps({"method": method, "params": params}, separators=(",", ":"))
    return b'{"jsonrpc":"2.0","id":', b"," + body[1:].encode() + b"\n"


def initialize_params() -> dict[str, Any]:
    """What a client of the handshake era says first."""
    client = {"name": "rookery-bench", "version": "1"}
    return {"protocolVersion": PROTOCOL_VERSION, "capabilities": {}, "clientInfo": client}


class Wire:
    """JSON-RPC lines over two file descriptors. Reading blocks: put a `deadline` around it."""

    def __init__(self, read_fd: int, write_fd: int) -> None:
        self._read_fd = read_fd
        self._write_fd = write_fd
        self._rest = b""
        self._next_id = FIRST_ID
        self._id_marker = b'"id":%d' % ID_PREFIX

    def request(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        """The result of one request, skipping other lines. An error answer is a `MeasureError`."""
        before, after = request_parts(method, params)
        wanted, self._next_id = self._next_id, self._next_id + 1
        self.send(b"%b%d%b" % (before, wanted, after))
        while True:
            line = self.read_line()
            answer = json.loads(line)
            if answer.get("id") != wanted or "method" in answer:
                continue
            if "error" in answer:
                raise MeasureError(f"{method} answered {answer['error']}")
            if self._id_marker not in line:
                self._id_marker = b'"id": %d' % ID_PREFIX
            return answer["result"]

    def initialize(self) -> dict[str, Any]:
        """The handshake, with the notification that ends it."""
        result = self.request("initialize", initialize_params())
        self.send(INITIALIZED)
        return result

    def list_tools(self) -> list[dict[str, Any]]:
        """The tools of the first page, which is all of them for every server measured here."""
        return self.request("tools/list", {})["tools"]

    def call(self, tool: str, arguments: dict[str, Any]) -> dict[str, Any]:
        """One call; a tool error is a `MeasureError`."""
        result = self.request("tools/call", {"name": tool, "arguments": arguments})
        if result.get("isError"):
            raise MeasureError(f"{tool} answered {json.dumps(result)[:400]}")
        return result

    def measure(self, tool: str, arguments: dict[str, Any], in_flight: int, seconds: float) -> Slice:
        """Keep `in_flight` calls under way for `seconds`, then wait for the last. A failed call fails it."""
        before, after = request_parts("tools/call", {"name": tool, "arguments": arguments})
        first = self._next_id
        clock = time.perf_counter
        sent: list[float] = []
        took: list[float] = []
        start = now = clock()
        end = start + seconds
        due = in_flight
        while due or len(took) < len(sent):
            if due:
                number = first + len(sent)
                sent.extend([clock()] * due)
                self.send(b"".join([b"%b%d%b" % (before, n, after) for n in range(number, number + due)]))
            answered = self._read_ids()
            now = clock()
            took.extend([now - sent[n - first] for n in answered])
            due = len(answered) if now < end else 0
        self._next_id = first + len(sent)
        return Slice.of(took, now - start)

    def send(self, message: bytes) -> None:
        """Write all of it."""
        view = memoryview(message)
        while view:
            view = view[os.write(self._write_fd, view) :]

    def read_line(self) -> bytes:
        """The next line, without its newline."""
        while (cut := self._rest.find(b"\n")) < 0:
            self._rest += self._read()
        line, self._rest = self._rest[:cut], self._rest[cut + 1 :]
        return line

    def _read_ids(self) -> list[int]:
        """The ids of the answers that are complete now; waits for at least one byte."""
        received = self._rest + self._read()
        cut = received.rfind(b"\n") + 1
        lines, self._rest = received[:cut], received[cut:]
        for failure in FAILURES:
            if failure in lines:
                raise MeasureError(f"a measured call failed: {lines[:400]!r}")
        return [FIRST_ID + int(part[:ID_DIGITS]) for part in lines.split(self._id_marker)[1:]]

    def _read(self) -> bytes:
        chunk = os.read(self._read_fd, CHUNK)
        if not chunk:
            raise MeasureError("the server closed the connection")
        return chunk


class StdioServer(Wire):
    """A server process and the wire to it. Leaving the context ends the process."""

    def __init__(self, argv: Sequence[str], env: Mapping[str, str]) -> None:
        self._stderr = tempfile.TemporaryFile()  # noqa: SIM115 - lives as long as the process
        pipe = subprocess.PIPE
        self.process = subprocess.Popen(argv, stdin=pipe, stdout=pipe, stderr=self._stderr, env=env, bufsize=0)
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        super().__init__(self.process.stdout.fileno(), self.process.stdin.fileno())

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End of input, then a kill for a process that does not leave by itself."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.close()
        try:
            self.process.wait(5)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait(5)
        self.process.stdout.close()
        self._stderr.close()

    def complaint(self) -> str:
        """The last line that the process wrote to stderr."""
        self._stderr.seek(0)
        return last_words(self._stderr.read().decode(errors="replace"))

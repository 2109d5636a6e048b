"""Lines of a byte stream: none longer than allowed, and the id that a line carries even if it cannot be read whole."""

import json
import re
from typing import Any, Protocol, cast

CHUNK = 1 << 18
EDGE = 1 << 13

# A request has four members, so its id stands before its params or after them.
_NUMBER_OR_TEXT = rb'(?P<id>-?\d{1,40}|"(?:[^"\\]|\\.){0,1000}")'
_MEMBER = rb'"(?:jsonrpc|method)"\s*:\s*"[^"\\]{0,1000}"'
_AT_START = re.compile(rb"\s*\{\s*(?:" + _MEMBER + rb'\s*,\s*)*"id"\s*:\s*' + _NUMBER_OR_TEXT + rb"\s*[,}]")
_AT_END = re.compile(rb'(?<!\\)"id"\s*:\s*' + _NUMBER_OR_TEXT + rb"\s*(?:,\s*" + _MEMBER + rb"\s*)*\}\s*$")


class Reader(Protocol):
    async def read(self, n: int) -> bytes: ...


class Overlong:
    """A line that was skipped because it is too long: its first and its last bytes."""

    def __init__(self, start: bytes, end: bytes) -> None:
        self.start = start
        self.end = end

    @property
    def id(self) -> int | str | None:
        """The id of the request that the line would have been, if its edges show it."""
        return edge_id(self.start, self.end)


class Lines:
    """Lines of a byte stream. One longer than `limit` is skipped to its end, without ever being held."""

    def __init__(self, reader: Reader, limit: int) -> None:
        self._reader = reader
        self._limit = limit
        self._buffer = bytearray()
        self._searched = 0
        self._skipped: Overlong | None = None
        self._ended = False

    async def next(self) -> bytes | Overlong:
        """The next line without its newline. Raises EOFError at the end."""
        while True:
            end = self._buffer.find(b"\n", self._searched)
            if end >= 0:
                return self._cut(end)
            self._searched = len(self._buffer)
            if self._searched > self._limit or self._skipped is not None:
                self._skip()
            if self._ended:
                if not self._buffer and self._skipped is None:
                    raise EOFError
                # What stands after the last newline: a client may end without one.
                return self._cut(len(self._buffer))
            chunk = await self._reader.read(CHUNK)
            self._ended = not chunk
            self._buffer += chunk

    def _cut(self, end: int) -> bytes | Overlong:
        line = bytes(memoryview(self._buffer)[:end])
        del self._buffer[: end + 1]
        self._searched = 0
        skipped, self._skipped = self._skipped, None
        if skipped is not None:
            skipped.end = (skipped.end + line)[-EDGE:]
            return skipped
        return line if len(line) <= self._limit else Overlong(line[:EDGE], line[-EDGE:])

    def _skip(self) -> None:
        if self._skipped is None:
            self._skipped = Overlong(bytes(self._buffer[:EDGE]), b"")
        self._skipped.end = (self._skipped.end + self._buffer[-EDGE:])[-EDGE:]
        self._buffer.clear()
        self._searched = 0


def edge_id(start: bytes, end: bytes) -> int | str | None:
    """The id that the first or last bytes of a request show, or None."""
    found = _AT_START.match(start) or _AT_END.search(end)
    if found is None:
        return None
    try:
        return cast("int | str", json.loads(found["id"].decode(errors="replace"), strict=False))
    except ValueError:
        return None


def usable_id(value: Any) -> int | str | None:
    """The value if an answer can carry it as its id, else None."""
    return value if isinstance(value, int | str) and not isinstance(value, bool) else None

"""Lines of a stream whose writer is not trusted to end them."""

from collections.abc import Iterator
from dataclasses import dataclass

LONGEST = 16 * 1024 * 1024
KEPT_OF_CUT = 2000


@dataclass(frozen=True, slots=True)
class Line:
    """One line without its end. Of a `cut` one only the beginning is kept; `size` is how long it was."""

    text: str
    size: int
    cut: bool = False


class Lines:
    """Holds at most one line of `longest` bytes, however much comes."""

    def __init__(self, longest: int = LONGEST) -> None:
        self._longest = longest
        self._held = bytearray()
        self._size = 0

    def feed(self, chunk: bytes) -> Iterator[Line]:
        """The lines that are complete with this chunk."""
        start = 0
        while (end := chunk.find(b"\n", start)) >= 0:
            self._hold(chunk[start:end])
            yield self._line()
            start = end + 1
        self._hold(chunk[start:])

    def rest(self) -> Iterator[Line]:
        """What came after the last end of a line."""
        if self._size:
            yield self._line()

    def _hold(self, piece: bytes) -> None:
        self._size += len(piece)
        if self._size <= self._longest:
            self._held += piece
        elif len(self._held) > KEPT_OF_CUT:
            del self._held[KEPT_OF_CUT:]

    def _line(self) -> Line:
        cut = self._size > self._longest
        line = Line(self._held.decode(errors="replace"), self._size, cut)
        self._held, self._size = bytearray(), 0
        return line

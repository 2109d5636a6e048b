"""The process that takes source files apart: `python -m rookery.domains.code.worker`, with frames on stdin and stdout.

Parsers are C, and files come from anybody: one that brings its parser down ends this process and not the server. It
imports little, starts in some hundredths of a second, and goes when its stdin ends. It has limits of its own, which
hold when the server is gone: time for an answer, memory, and what it may write to files.
"""

import contextlib
import gc
import marshal
import resource
import signal
import struct
import sys
from typing import IO

from rookery.domains.code.reading import Reader

LENGTH = struct.Struct("<Q")
ALARM_S = 70
"""Later than the server loses its patience."""
MAX_MEMORY = 2 * 1024**3
MAX_WRITTEN = 1024 * 1024
MAX_FRAME = 1024**3
"""Whoever announces more has printed something that is no frame."""


def receive(stream: IO[bytes]) -> bytes | None:
    """The next frame; None at the end, and if what comes is none."""
    head = stream.read(LENGTH.size)
    if len(head) < LENGTH.size:
        return None
    (length,) = LENGTH.unpack(head)
    if length > MAX_FRAME:
        return None
    body = stream.read(length)
    return body if len(body) == length else None


def send(stream: IO[bytes], body: bytes) -> None:
    stream.write(LENGTH.pack(len(body)))
    stream.write(body)
    stream.flush()


def limit() -> None:
    """Bound what this process may use, as far as the system can."""
    for what, most in ((resource.RLIMIT_AS, MAX_MEMORY), (resource.RLIMIT_FSIZE, MAX_WRITTEN)):
        with contextlib.suppress(OSError, ValueError):
            resource.setrlimit(what, (most, most))


def main() -> None:
    limit()
    # Nothing here is in a cycle, and looking for some would take a twentieth of the time.
    gc.disable()
    reader: Reader | None = None
    while (asked := receive(sys.stdin.buffer)) is not None:
        # It ends the process even in the middle of a parser.
        signal.alarm(ALARM_S)
        root, wanted = marshal.loads(asked)
        if reader is None or reader.root != root:
            reader = Reader(root)
        send(sys.stdout.buffer, marshal.dumps(reader.read(wanted)))
        signal.alarm(0)


if __name__ == "__main__":
    main()

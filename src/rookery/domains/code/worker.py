"""The process that takes source files apart: `python -m rookery.domains.code.worker`, with frames on stdin and stdout.

Parsers are C, and files come from anybody: one that brings its parser down ends this process and not the server. It
imports little, starts in some hundredths of a second, and goes when its stdin ends.
"""

import gc
import marshal
import struct
import sys
from typing import IO

from rookery.domains.code.reading import Reader

LENGTH = struct.Struct("<Q")


def receive(stream: IO[bytes]) -> bytes | None:
    """The next frame, None at the end."""
    head = stream.read(LENGTH.size)
    if len(head) < LENGTH.size:
        return None
    (length,) = LENGTH.unpack(head)
    body = stream.read(length)
    return body if len(body) == length else None


def send(stream: IO[bytes], body: bytes) -> None:
    stream.write(LENGTH.pack(len(body)))
    stream.write(body)
    stream.flush()


def main() -> None:
    # Nothing here is in a cycle, and looking for some would take a twentieth of the time.
    gc.disable()
    reader: Reader | None = None
    while (asked := receive(sys.stdin.buffer)) is not None:
        root, wanted = marshal.loads(asked)
        if reader is None or reader.root != root:
            reader = Reader(root)
        send(sys.stdout.buffer, marshal.dumps(reader.read(wanted)))


if __name__ == "__main__":
    main()

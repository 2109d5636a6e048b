"""The ends of pipes on the event loop. Every one of them is closed once, by one owner."""

import asyncio
import contextlib
from collections.abc import AsyncGenerator
from io import FileIO
from typing import Literal

PIECE = 1 << 16


def owned_end(fd: int, mode: Literal["rb", "wb"]) -> FileIO:
    """The file to hand to `connect_read_pipe` or `connect_write_pipe`; the loop closes `fd` with its transport.

    uvloop closes the descriptor, and then the file that it was handed too (uvloop #763). By then the number can belong
    to a file that another thread has just opened, such as the database, so under uvloop the file does not close it.
    """
    own_loop = isinstance(asyncio.get_running_loop(), asyncio.BaseEventLoop)
    return FileIO(fd, mode, closefd=own_loop)


@contextlib.asynccontextmanager
async def read_pipe(fd: int, limit: int = PIECE) -> AsyncGenerator[asyncio.StreamReader]:
    """What comes through a pipe; its end is closed afterwards."""
    stream = asyncio.StreamReader(limit=limit)
    with owned_end(fd, "rb") as pipe:
        protocol = asyncio.StreamReaderProtocol(stream)
        way, _ = await asyncio.get_running_loop().connect_read_pipe(lambda: protocol, pipe)
        try:
            yield stream
        finally:
            way.close()

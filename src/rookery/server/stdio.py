"""Direct mode: the session is served in this process, when no server is running or none may be used."""

import asyncio
import os
import stat
from sqlite3 import Error as DriverError
from typing import Any

from sqlalchemy import make_url
from sqlalchemy.exc import SQLAlchemyError

from rookery.around.logs import configure_logs
from rookery.around.timing import configure_tracing
from rookery.core.errors import ConfigurationError, RookeryError
from rookery.files.pipes import owned_end
from rookery.relay import complain, home_path
from rookery.server.attach import open_launched
from rookery.server.hub import Hub
from rookery.server.launch import Flags, database_url, only_owner, warn_of_lost_tools, working_folder
from rookery.server.loop import run, settle_memory
from rookery.server.mcp import make_server
from rookery.server.serve import serve_session
from rookery.settings import load_settings


def serve_direct(flags: Flags) -> int:
    """Serve one session on stdin and stdout; returns the exit code. What is wrong with the flags is said on stderr."""
    fd_in, fd_out = _take_over_stdio()
    try:
        return run(_serve(flags, fd_in, fd_out))
    except RookeryError as error:
        complain(f"{error.message} ({error.hint})" if error.hint else error.message)
        return 2
    except KeyboardInterrupt:
        return 130


def _take_over_stdio() -> tuple[int, int]:
    """Keep the protocol's descriptors to ourselves: a stray print must not end up between two messages."""
    fd_in, fd_out = os.dup(0), os.dup(1)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    return fd_in, fd_out


async def _serve(flags: Flags, fd_in: int, fd_out: int) -> int:
    from rookery.app import make_platform

    db, cwd = flags.get("db"), working_folder()
    override: dict[str, Any] = {"database": database_url(db, cwd)} if isinstance(db, str) else {}
    settings = load_settings(home_path(flags), **override)
    if flags.get("as_owner"):
        only_owner(settings.home)
    configure_logs(settings.log_level)
    configure_tracing("rookery")
    try:
        platform = make_platform(settings)
    except (SQLAlchemyError, DriverError, OSError) as error:
        reason = str(getattr(error, "orig", None) or error).strip().partition("\n")[0]
        where = make_url(settings.database_url).render_as_string()
        raise ConfigurationError(f"{where} cannot be used: {reason}", hint="rookery doctor looks at it") from error
    try:
        hub = Hub(platform)
        session = await open_launched(platform, flags, cwd)
        warn_of_lost_tools(await session.actor(), platform.registry)
        settle_memory()
        reader, writer = await _open_reader(fd_in), await _open_writer(fd_out)
        await serve_session(platform, make_server(platform), hub, session, reader, writer)
        await _finish(writer)
        await hub.close()
    finally:
        platform.close()
    return 0


def _is_stream(fd: int) -> bool:
    mode = os.fstat(fd).st_mode
    return stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode)


async def _open_reader(fd: int) -> "asyncio.StreamReader | _FileReader":
    if not _is_stream(fd):
        return _FileReader(fd)
    reader = asyncio.StreamReader(limit=1 << 20)
    protocol = asyncio.StreamReaderProtocol(reader)
    await asyncio.get_running_loop().connect_read_pipe(lambda: protocol, owned_end(fd, "rb"))
    return reader


async def _open_writer(fd: int) -> "asyncio.StreamWriter | _FileWriter":
    if not _is_stream(fd):
        return _FileWriter(fd)
    loop = asyncio.get_running_loop()
    transport, protocol = await loop.connect_write_pipe(_Pipe, owned_end(fd, "wb"))
    return asyncio.StreamWriter(transport, protocol, None, loop)


class _Pipe(asyncio.streams.FlowControlMixin):
    """The write end of a pipe that says when everything has left it."""

    def __init__(self) -> None:
        super().__init__()
        self.gone = asyncio.get_running_loop().create_future()

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        if not self.gone.done():
            self.gone.set_result(None)


async def _finish(writer: "asyncio.StreamWriter | _FileWriter") -> None:
    """Wait until the client has read every answer, or has gone."""
    if isinstance(writer, asyncio.StreamWriter):
        writer.close()
        protocol = writer.transport.get_protocol()
        # A pipe that has lost its reader has given its protocol up already.
        if isinstance(protocol, _Pipe):
            await protocol.gone


class _FileReader:
    """Standard input that is a file or a terminal, which the event loop cannot wait for."""

    def __init__(self, fd: int) -> None:
        self._fd = fd

    async def read(self, n: int) -> bytes:
        return await asyncio.to_thread(os.read, self._fd, n)


class _FileWriter:
    """Standard output that is a file or a terminal."""

    def __init__(self, fd: int) -> None:
        self._fd = fd

    def write(self, data: bytes) -> None:
        view = memoryview(data)
        while view:
            view = view[os.write(self._fd, view) :]

    async def drain(self) -> None:
        return None

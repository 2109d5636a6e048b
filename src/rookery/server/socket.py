"""The unix socket that relays connect to: same user, same database, one session a connection."""

import asyncio
import contextlib
import json
import logging
import os
import socket
import struct
from typing import TYPE_CHECKING, Any, cast

from mcp.server.lowlevel import Server

from rookery import __version__
from rookery.core.errors import ConfigurationError, RookeryError
from rookery.lifecycle.session_mark import in_session, visible
from rookery.relay import socket_path
from rookery.server.attach import open_launched
from rookery.server.hub import Hub
from rookery.server.launch import NO_PERSON, Flags, database_url, same_database, warn_of_lost_tools
from rookery.server.serve import serve_session
from rookery.server.session import Session

if TYPE_CHECKING:
    from rookery.app import Platform

HELLO_BYTES = 1 << 20
HELLO_S = 10.0
log = logging.getLogger("rookery.socket")


class Refused(Exception):
    """Why a connection is not served; `fallback` says whether the relay should serve by itself instead."""

    def __init__(self, reason: str, *, fallback: bool) -> None:
        super().__init__(reason)
        self.fallback = fallback


def peer_of(connection: socket.socket) -> tuple[int, int] | None:
    """The process and the user at the other end, where the system tells."""
    if not hasattr(socket, "SO_PEERCRED"):
        return None
    raw = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
    return struct.unpack("3i", raw)[:2]


def only_person(pid: int) -> None:
    """Refuse to take a process for the owner's that an agent's session has started, or that cannot be looked at."""
    if pid <= 0 or not visible(pid):
        # Such as one in a container that was handed the socket.
        raise Refused("the server cannot see who asks to act as the owner", fallback=False)
    if in_session(pid):
        raise Refused(NO_PERSON, fallback=False)


def _flags(value: Any) -> Flags:
    """The flags as the relay sends them; anything else could bind a session to less than was meant."""
    flags = cast("dict[str, Any]", value if isinstance(value, dict) else {"": value})
    if not all(isinstance(each, str) or each is True for each in flags.values()):
        raise ValueError("no flags")
    return flags


def _folder(value: Any) -> str | None:
    """Where the relay was started, or None if that is gone."""
    if value is None or value == "":
        return None
    if not isinstance(value, str) or not os.path.isabs(value):
        raise ValueError("no folder")
    return value


class SocketDoor:
    """Listens on the home's socket. The file is ours alone (0600), and each peer's user is checked again."""

    def __init__(self, platform: "Platform", server: Server[Any], hub: Hub) -> None:
        self._platform = platform
        self._server = server
        self._hub = hub
        self.path = socket_path(platform.settings.home)
        self._listener: asyncio.Server | None = None
        self._tasks: set[asyncio.Task[Any]] = set()

    async def open(self) -> None:
        """Start to listen. The caller holds the home's lock, so a socket that is there is a dead one."""
        folder = os.path.dirname(self.path)
        os.makedirs(folder, mode=0o700, exist_ok=True)
        about = os.stat(folder)
        if about.st_uid != os.geteuid() or about.st_mode & 0o022:
            raise ConfigurationError(
                f"others could put a socket of their own into {folder}", hint=f"chmod 700 {folder}"
            )
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self.path)
        listener = socket.socket(socket.AF_UNIX)
        before = os.umask(0o177)
        try:
            listener.bind(self.path)
        finally:
            os.umask(before)
        self._listener = await asyncio.start_unix_server(self._accept, sock=listener, limit=HELLO_BYTES, backlog=512)

    async def close(self, grace_s: float = 1.0) -> None:
        """Stop listening, let calls finish for a moment, then cut the rest."""
        if self._listener is not None:
            self._listener.close()
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self.path)
        if self._tasks:
            _, late = await asyncio.wait(self._tasks, timeout=grace_s)
            for task in late:
                task.cancel()
            await asyncio.gather(*late, return_exceptions=True)

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        try:
            session = await self._greet(reader, writer)
            if session is not None:
                await serve_session(self._platform, self._server, self._hub, session, reader, writer)
        except (ConnectionError, asyncio.CancelledError):
            pass
        except Exception:
            log.exception("a session ended by a fault of ours")
        finally:
            self._tasks.discard(task)
            writer.close()

    async def _greet(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> Session | None:
        """The session that the first line asks for; what is wrong with it is answered, and None returned."""
        try:
            async with asyncio.timeout(HELLO_S):
                line = await reader.readline()
            session = await self._open(line, cast(socket.socket, writer.get_extra_info("socket")))
            answer: dict[str, Any] = {"ok": True}
        except Refused as refused:
            session, answer = None, {"ok": False, "reason": str(refused), "fallback": refused.fallback}
        except RookeryError as error:
            reason = f"{error.message} ({error.hint})" if error.hint else error.message
            session, answer = None, {"ok": False, "reason": reason, "fallback": False}
        except (ValueError, TimeoutError):
            session, answer = (
                None,
                {"ok": False, "reason": "the first line is no greeting", "fallback": False},
            )
        writer.write(json.dumps(answer, separators=(",", ":")).encode() + b"\n")
        await writer.drain()
        return session

    async def _open(self, line: bytes, connection: socket.socket) -> Session:
        peer = peer_of(connection)
        if peer is not None and peer[1] != os.geteuid():
            raise Refused("this server belongs to another user", fallback=False)
        hello: Any = json.loads(line)
        if not isinstance(hello, dict) or cast("dict[str, Any]", hello).get("rookery") != 1:
            raise ValueError("no greeting")
        fields = cast("dict[str, Any]", hello)
        if fields.get("version") != __version__:
            raise Refused(f"the server runs version {__version__}, this is {fields.get('version')}", fallback=True)
        flags = _flags(fields.get("flags"))
        if flags.get("as_owner") and peer is not None:
            only_person(peer[0])
        cwd = _folder(fields.get("cwd"))
        db = flags.get("db")
        if isinstance(db, str) and not same_database(database_url(db, cwd), self._platform.settings.database_url):
            raise Refused("the server of this home uses another database", fallback=True)
        session = await open_launched(self._platform, flags, cwd)
        warn_of_lost_tools(await session.actor(), self._platform.registry)
        return session

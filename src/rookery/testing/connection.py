"""Joins a client of the official SDK to a session of the platform, inside one process."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any, Literal

import anyio
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp import Client
from mcp.server.lowlevel import Server
from mcp.server.runner import serve_dual_era_loop
from mcp.shared.message import SessionMessage

from rookery.server.hub import Hub
from rookery.server.mcp import init_options
from rookery.server.session import Session

Era = Literal["2025-11-25", "2026-07-28"]
ERAS: tuple[Era, Era] = ("2025-11-25", "2026-07-28")
"""The protocol revisions that a bench can speak: the newest of each of the two eras."""

Read = MemoryObjectReceiveStream[SessionMessage | Exception]
Write = MemoryObjectSendStream[SessionMessage]
ROOM = 64
GRACE_S = 5.0


@asynccontextmanager
async def joined(server: Server[Any], hub: Hub, session: Session) -> AsyncGenerator[tuple[Read, Write]]:
    """The client's ends of a connection on which `session` is served, until the block is left."""
    to_server, from_client = anyio.create_memory_object_stream[SessionMessage | Exception](ROOM)
    to_client, from_server = anyio.create_memory_object_stream[SessionMessage | Exception](ROOM)
    over = anyio.Event()

    async def serve() -> None:
        hub.sessions.add(session)
        try:
            options = await init_options(server, session)
            await serve_dual_era_loop(
                server, from_client, to_client, lifespan_state=session, session_id=session.id, init_options=options
            )
        finally:
            hub.sessions.discard(session)
            over.set()

    async with to_server, from_client, to_client, from_server, anyio.create_task_group() as tasks:
        tasks.start_soon(serve)
        try:
            yield from_server, to_server
        finally:
            await to_server.aclose()
            with anyio.move_on_after(GRACE_S, shield=True):
                await over.wait()
            tasks.cancel_scope.cancel()


class Connection:
    """A connected client in a task of its own, so that it can be opened in one task and closed in another.

    Fixtures and tests often run in different tasks, and what the SDK opens in one it can close only there.
    """

    def __init__(self, client: Client) -> None:
        self.client = client
        self._ready: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._leave = asyncio.Event()
        self._task = asyncio.create_task(self._run())

    async def _run(self) -> None:
        try:
            async with self.client:
                self._ready.set_result(None)
                await self._leave.wait()
        except Exception as error:
            if self._ready.done():
                raise
            self._ready.set_exception(error)

    async def open(self) -> None:
        """Wait for the handshake; raises what went wrong with it."""
        await self._ready

    async def close(self) -> None:
        """End the session. Raises what ended it before, if anything did."""
        self._leave.set()
        await self._task

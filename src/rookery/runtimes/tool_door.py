"""The way of an agent of this process to our tools: a client of the in-process server, as any program would use."""

from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import Any

import anyio
import mcp_types as types
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp import Client, MCPError
from mcp.shared.message import SessionMessage

from rookery.server.answers import ERROR
from rookery.server.inprocess import ToolServer

Read = MemoryObjectReceiveStream[SessionMessage | Exception]
Write = MemoryObjectSendStream[SessionMessage]
ROOM = 64
GRACE_S = 5.0


@dataclass(frozen=True, slots=True)
class Answer:
    """What a tool said. `error` is the code and the sentence of a failure."""

    text: str
    structured: dict[str, Any] | None = None
    error: str | None = None


@asynccontextmanager
async def _joined(server: ToolServer) -> AsyncGenerator[tuple[Read, Write]]:
    """The client's ends of a connection to the server, until the block is left."""
    to_server, from_client = anyio.create_memory_object_stream[SessionMessage | Exception](ROOM)
    to_client, from_server = anyio.create_memory_object_stream[SessionMessage | Exception](ROOM)
    over = anyio.Event()

    async def serve() -> None:
        try:
            await server.run(from_client, to_client)
        finally:
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


class ToolDoor:
    """Connects with the first call. It is used and left in one task, as an `async with` block."""

    def __init__(self, server: ToolServer) -> None:
        self._server = server
        self._stack = AsyncExitStack()
        self._client: Client | None = None
        self._shown: set[str] = set()

    async def __aenter__(self) -> "ToolDoor":
        return self

    async def __aexit__(self, *error: object) -> None:
        await self._stack.aclose()

    async def lists(self, name: str) -> bool:
        """Whether the agent was shown a tool of that name. It looks again for one that was not there before only."""
        if name in self._shown:
            return True
        client = await self._connected()
        page = await client.list_tools()
        self._shown = {tool.name for tool in page.tools}
        while page.next_cursor is not None:
            page = await client.list_tools(cursor=page.next_cursor)
            self._shown |= {tool.name for tool in page.tools}
        return name in self._shown

    async def call(self, name: str, arguments: dict[str, Any]) -> Answer:
        """What the tool says, also if that is an error."""
        client = await self._connected()
        try:
            result = await client.call_tool(name, arguments)
        except MCPError as error:
            data: Any = error.error.data or {"code": "NOT_FOUND", "message": error.error.message}
            return Answer(error.error.message, error=f"{data['code']}: {data['message']}")
        text = "\n".join(block.text for block in result.content if isinstance(block, types.TextContent))
        if not result.is_error:
            return Answer(text, result.structured_content)
        told: Any = (result.meta or {}).get(ERROR) or {"code": "ERROR", "message": text}
        return Answer(text, error=f"{told['code']}: {told['message']}")

    async def _connected(self) -> Client:
        if self._client is None:
            self._client = await self._stack.enter_async_context(Client(_joined(self._server), cache=None))
        return self._client

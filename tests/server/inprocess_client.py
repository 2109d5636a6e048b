"""A client of the in-process server that sends exactly what a test wants, as the SDK's bridge does."""

import asyncio
import itertools
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import anyio
import mcp_types as types
from mcp.shared.memory import create_client_server_memory_streams
from mcp.shared.message import SessionMessage

PATIENCE_S = 20.0


class InProcessClient:
    """One connection, which has yet to shake hands."""

    def __init__(self, from_server: Any, to_server: Any) -> None:
        self._from, self._to = from_server, to_server
        self._ids = itertools.count(1)
        self._waiting: dict[int, asyncio.Future[dict[str, Any]]] = {}
        self.notified: list[dict[str, Any]] = []

    async def read(self) -> None:
        async for item in self._from:
            message = item.message.model_dump(by_alias=True, mode="json", exclude_none=True)
            if "method" in message:
                self.notified.append(message)
            else:
                self._waiting.pop(message["id"]).set_result(message)

    async def send(self, method: str, **params: Any) -> None:
        message = {"jsonrpc": "2.0", "method": method, "params": params}
        await self._to.send(SessionMessage(types.jsonrpc_message_adapter.validate_python(message, by_name=False)))

    async def request(self, method: str, **params: Any) -> dict[str, Any]:
        number = next(self._ids)
        answer = self._waiting[number] = asyncio.get_running_loop().create_future()
        message = {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
        await self._to.send(SessionMessage(types.jsonrpc_message_adapter.validate_python(message, by_name=False)))
        return await asyncio.wait_for(answer, PATIENCE_S)

    async def initialize(self) -> dict[str, Any]:
        who = {"name": "test", "version": "1"}
        answer = await self.request("initialize", protocolVersion="2025-11-25", capabilities={}, clientInfo=who)
        await self.send("notifications/initialized")
        return answer["result"]

    async def names(self) -> set[str]:
        return {tool["name"] for tool in (await self.request("tools/list"))["result"]["tools"]}

    async def call(self, name: str, meta: dict[str, Any] | None = None, /, **arguments: Any) -> dict[str, Any]:
        more = {} if meta is None else {"_meta": meta}
        return await self.request("tools/call", name=name, arguments=arguments, **more)


@asynccontextmanager
async def connected(config: dict[str, Any]) -> AsyncIterator[InProcessClient]:
    """A client that has shaken hands with what `create_tool_server` gave."""
    instance = config["instance"]
    async with create_client_server_memory_streams() as (ours, theirs):
        client = InProcessClient(*ours)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(instance.run, *theirs, instance.create_initialization_options())
            tasks.start_soon(client.read)
            await client.initialize()
            yield client
            tasks.cancel_scope.cancel()

"""A whole server on a real port in this process, and a client that sends exactly what a test wants."""

import asyncio
import contextlib
import json
import socket
from collections.abc import AsyncIterator, Callable
from typing import Any

import httpx2
import uvicorn

from rookery.app import Platform
from rookery.server.auth import make_authenticator
from rookery.server.http import WebApp
from rookery.server.hub import Hub
from rookery.server.mcp import make_server
from rookery.server.run import web_config
from rookery.server.streamable.endpoint import Endpoint
from tests.platform_fixtures import Fleet

LEGACY = "2025-11-25"
MODERN = "2026-07-28"
ACCEPT = "application/json, text/event-stream"
PATIENCE_S = 20.0


class Web:
    """A running server. `token` makes credentials, `post` sends one message."""

    def __init__(self, fleet: Fleet, port: int, endpoint: Endpoint, hub: Hub) -> None:
        self.fleet = fleet
        self.port = port
        self.endpoint = endpoint
        self.hub = hub
        self.url = f"http://127.0.0.1:{port}"
        self.http = httpx2.AsyncClient(base_url=self.url, timeout=PATIENCE_S, trust_env=False, verify=False)

    @property
    def platform(self) -> Platform:
        return self.fleet.platform

    async def token(self, agent: str | None = "default", **arguments: Any) -> str:
        """The secret of a new token; None: one of the owner."""
        chosen = arguments if agent is None else {"agent": agent, **arguments}
        name = f"t{len((await self.fleet.call(self.fleet.owner, 'list_tokens')).tokens)}"
        made = await self.fleet.call(self.fleet.owner, "create_token", name=name, **chosen)
        return made.secret

    async def post(self, message: Any, token: str | None = None, /, **headers: str | None) -> httpx2.Response:
        """Send a message. Headers are given with underscores; None leaves out one that would be sent."""
        content = message if isinstance(message, bytes) else json.dumps(message).encode()
        return await self.http.post("/mcp", content=content, headers=head(token, **headers))

    async def initialize(self, token: str | None = None, /, revision: str = LEGACY, **capabilities: Any) -> str:
        """Shake hands; the id of the session."""
        answer = await self.post(initialize(revision, **capabilities), token)
        assert answer.status_code == 200, answer.text
        session = answer.headers["mcp-session-id"]
        done = {"jsonrpc": "2.0", "method": "notifications/initialized"}
        assert (await self.post(done, token, mcp_session_id=session)).status_code == 202
        return session

    async def call(self, session: str, tool: str, token: str | None = None, /, **arguments: Any) -> httpx2.Response:
        """A tool call of the handshake era."""
        return await self.post(call(tool, **arguments), token, mcp_session_id=session, mcp_protocol_version=LEGACY)

    async def modern(self, method: str, token: str | None = None, /, **params: Any) -> httpx2.Response:
        """A request of 2026-07-28 with the headers that belong to it."""
        message, headers = modern(method, **params)
        return await self.post(message, token, **headers)


def head(token: str | None = None, **headers: str | None) -> dict[str, str]:
    """The headers of a POST: the usual ones, those given instead, without those that are None."""
    usual: dict[str, str | None] = {"content-type": "application/json", "accept": ACCEPT}
    if token is not None:
        usual["authorization"] = f"Bearer {token}"
    usual |= {name.replace("_", "-"): value for name, value in headers.items()}
    return {name: value for name, value in usual.items() if value is not None}


def initialize(revision: str = LEGACY, **capabilities: Any) -> dict[str, Any]:
    about = {"name": "test", "version": "1"}
    params = {"protocolVersion": revision, "capabilities": capabilities, "clientInfo": about}
    return {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params}


def call(tool: str, /, **arguments: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": {"name": tool, "arguments": arguments}}


def modern(method: str, capabilities: dict[str, Any] | None = None, **params: Any) -> tuple[dict[str, Any], Any]:
    meta = {
        "io.modelcontextprotocol/protocolVersion": MODERN,
        "io.modelcontextprotocol/clientCapabilities": capabilities or {},
        "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
    }
    params["_meta"] = {**meta, **params.get("_meta", {})}
    headers = {"mcp_protocol_version": MODERN, "mcp_method": method}
    if "name" in params or "uri" in params:
        headers["mcp_name"] = params.get("name") or params["uri"]
    return {"jsonrpc": "2.0", "id": 7, "method": method, "params": params}, headers


def events(text: str) -> list[dict[str, Any]]:
    """The messages of an event stream; frames without content are left out."""
    found = [line.removeprefix("data: ") for line in text.splitlines() if line.startswith("data: ")]
    return [json.loads(data) for data in found if data.strip()]


async def until(holds: Callable[[], Any], what: str) -> Any:
    """Wait, with a bound, until something is true."""
    for _ in range(2000):
        if found := holds():
            return found
        await asyncio.sleep(0.01)
    raise AssertionError(f"waited in vain: {what}")


@contextlib.asynccontextmanager
async def serving(fleet: Fleet) -> AsyncIterator[Web]:
    """Serve a fleet's platform over HTTP, as `rookery up` does, for as long as the block runs."""
    platform = fleet.platform
    server, hub, authenticator = make_server(platform), Hub(platform), make_authenticator(platform.settings)
    endpoint = Endpoint(platform, server, hub, authenticator)
    with socket.create_server((platform.settings.host, 0)) as listener:
        # As `rookery up` does: asyncio does not set it for such a socket, and answers would take 40 ms.
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        runner = uvicorn.Server(web_config(WebApp(platform, authenticator, endpoint)))
        runner.capture_signals = contextlib.nullcontext  # type: ignore[method-assign]
        task = asyncio.create_task(runner.serve(sockets=[listener]))
        await until(lambda: runner.started, "the server starts")
        web = Web(fleet, listener.getsockname()[1], endpoint, hub)
        try:
            yield web
        finally:
            await web.http.aclose()
            await endpoint.close()
            runner.should_exit = True
            await task
            await hub.close()
            await authenticator.close()

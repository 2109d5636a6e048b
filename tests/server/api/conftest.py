"""A server that is really listened to, and people with tokens who use it."""

import asyncio
import contextlib
import json
from collections.abc import AsyncGenerator, Callable
from typing import Any

import httpx2
import pytest
import uvicorn

from rookery.db.clock import now_ms
from rookery.identity.access import AccessStore
from rookery.server.auth import make_authenticator
from rookery.server.http import WebApp
from rookery.server.run import web_config
from tests.platform_fixtures import Fleet

LIMIT_S = 30.0


class Site:
    """One running server."""

    def __init__(self, fleet: Fleet, web: WebApp, port: int) -> None:
        self.fleet = fleet
        self.web = web
        self.url = f"http://127.0.0.1:{port}"

    def token(self, **holder: str) -> str:
        """A token of the owner, or of an `agent`; with `scopes`, or for `lasts_ms`."""
        owner = self.fleet.owner.subject

        def make(tx: Any) -> str:
            store, scopes = AccessStore(tx, "default"), holder.get("scopes", "*").split()
            expires_ms = now_ms(tx) + int(holder["lasts_ms"]) if "lasts_ms" in holder else None
            if "agent" in holder:
                agent = self.fleet.actor(agent=holder["agent"]).agent or ""
                return store.create_token("t", agent, "agent", scopes, owner, expires_ms)[1]
            return store.create_token("t", owner, "person", scopes, owner, expires_ms)[1]

        return self.fleet.platform.database.direct(make, write=True)

    def client(self, token: str | None = None) -> httpx2.AsyncClient:
        headers = {} if token is None else {"Authorization": f"Bearer {token}"}
        return httpx2.AsyncClient(base_url=self.url, headers=headers, timeout=LIMIT_S, verify=False)


class Sent:
    """One event as a client gets it."""

    def __init__(self, block: str) -> None:
        fields = dict(line.split(": ", 1) for line in block.splitlines() if not line.startswith(":"))
        self.id: str | None = fields.get("id")
        self.name = fields.get("event", "")
        self.data: dict[str, Any] = json.loads(fields["data"]) if "data" in fields else {}


async def events_of(client: httpx2.AsyncClient, session_id: str, last: str | None = None) -> AsyncGenerator[Sent]:
    """The stream of a session, event by event."""
    headers = {} if last is None else {"Last-Event-ID": last}
    async with client.stream("GET", f"/api/sessions/{session_id}/events", headers=headers) as answer:
        assert answer.status_code == 200, await answer.aread()
        rest = ""
        async for text in answer.aiter_text():
            rest += text
            *blocks, rest = rest.split("\n\n")
            for block in blocks:
                sent = Sent(block)
                if sent.name:
                    yield sent


async def until(client: httpx2.AsyncClient, session_id: str, name: str, last: str | None = None) -> list[Sent]:
    """What comes up to the first event of that name."""
    seen: list[Sent] = []
    async with asyncio.timeout(LIMIT_S), contextlib.aclosing(events_of(client, session_id, last)) as coming:
        async for event in coming:
            seen.append(event)
            if event.name == name:
                return seen
    raise AssertionError(f"no {name} in {[event.name for event in seen]}")


@pytest.fixture
def settings() -> dict[str, Any]:
    """Settings of the server, for tests to change."""
    return {"runtime": "scripted"}


@pytest.fixture
async def site(
    prepared_database_url: str, make_fleet: Callable[..., Fleet], settings: dict[str, Any]
) -> AsyncGenerator[Site]:
    fleet = make_fleet(prepared_database_url, extra={}, **settings)
    web = WebApp(fleet.platform, make_authenticator(fleet.platform.settings), None)
    config = web_config(web)
    config.host, config.port = "127.0.0.1", 0
    server = uvicorn.Server(config)
    with contextlib.ExitStack() as stack:
        stack.enter_context(contextlib.suppress(asyncio.CancelledError))
        serving = asyncio.create_task(server._serve())
        while not server.started:
            await asyncio.sleep(0.005)
        yield Site(fleet, web, server.servers[0].sockets[0].getsockname()[1])
        await web.close()
        server.should_exit = True
        await serving
    await fleet.platform.calls.facts["sessions"].close()

"""Every variable that other MCP servers know has its effect on a running server."""

import asyncio
import contextlib
import re
import socket
import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import httpx2
import pytest

from rookery.app import make_platform
from rookery.settings import load_settings
from tests.platform_fixtures import Fleet
from tests.server.auth.issuer import AUDIENCE, ISSUER, SECRET, KeyServer, rsa_entry, shared_token, signed_token
from tests.server.conftest import Place
from tests.server.processes import PATIENCE_S, Process
from tests.server.streamable import probes
from tests.server.streamable.web import Web, head, initialize, serving, until

RESOURCE = "https://rookery.example/the-resource"


@contextlib.asynccontextmanager
async def served(home: Path, **environ: str) -> AsyncIterator[Web]:
    """A server whose settings come from these variables alone."""
    settings = load_settings(str(home), {"ROOKERY_PLUGINS": "false", **environ})
    platform = make_platform(settings, extra={"probes": probes})
    try:
        async with serving(Fleet(platform)) as web:
            yield web
    finally:
        platform.close()


async def status(web: Web, token: str | None = None) -> int:
    return (await web.modern("tools/list", token)).status_code


@pytest.mark.parametrize("name", ["MCP_HTTP_PATH", "MCP_HTTP_ENDPOINT_PATH"])
async def test_the_path_of_the_endpoint(tmp_path: Path, name: str) -> None:
    async with served(tmp_path, MCP_AUTH_MODE="none", **{name: "/doors/mcp"}) as web:
        for path, expected in {"/doors/mcp": 200, "/doors/mcp/": 200, "/mcp": 404, "/doors": 404}.items():
            answer = await web.http.post(path, json=initialize(), headers=head())
            assert answer.status_code == expected, path


async def test_the_origins_of_pages_that_may_call(tmp_path: Path) -> None:
    allowed = "https://app.example, https://other.example:8443"
    async with served(tmp_path, MCP_AUTH_MODE="none", MCP_ALLOWED_ORIGINS=allowed) as web:
        for origin, expected in {
            "https://app.example": 200,
            "https://other.example:8443": 200,
            "http://localhost:1": 200,
            "https://other.example": 403,
            "http://app.example": 403,
        }.items():
            assert (await web.post(initialize(), origin=origin)).status_code == expected, origin


async def test_any_origin_only_if_it_is_said(tmp_path: Path) -> None:
    async with served(tmp_path, MCP_AUTH_MODE="none", MCP_ALLOWED_ORIGINS="*") as web:
        assert (await web.post(initialize(), origin="https://anything.example")).status_code == 200
    async with served(tmp_path, MCP_AUTH_MODE="none", MCP_ALLOWED_ORIGINS="") as web:
        assert (await web.post(initialize(), origin="https://anything.example")).status_code == 403


@pytest.mark.parametrize(("mode", "stateful"), [("stateful", True), ("auto", True), ("stateless", False)])
async def test_whether_there_are_sessions(tmp_path: Path, mode: str, stateful: bool) -> None:
    async with served(tmp_path, MCP_AUTH_MODE="none", MCP_SESSION_MODE=mode) as web:
        opened = await web.post(initialize())
        assert ("mcp-session-id" in opened.headers) == stateful
        ended = await web.http.delete("/mcp", headers={"mcp-session-id": "x"})
        assert ended.status_code == (404 if stateful else 405)


async def test_how_long_a_session_may_be_idle(tmp_path: Path) -> None:
    async with served(tmp_path, MCP_AUTH_MODE="none", MCP_STATEFUL_SESSION_STALE_TIMEOUT_MS="150") as web:
        session = await web.initialize()
        await until(lambda: not len(web.endpoint.table), "the session ends by itself")
        assert (await web.call(session, "ping")).status_code == 404
    async with served(tmp_path, MCP_AUTH_MODE="none", MCP_STATEFUL_SESSION_STALE_TIMEOUT_MS="3600000") as web:
        assert web.platform.settings.http_session_idle_s == 3600
        assert (await web.call(await web.initialize(), "ping")).status_code == 200


async def test_how_clients_prove_who_they_are(tmp_path: Path) -> None:
    async with served(tmp_path, MCP_AUTH_MODE="none") as web:
        assert await status(web) == 200
    async with served(tmp_path) as web:
        assert (await status(web), await status(web, await web.token())) == (401, 200)
    async with served(tmp_path, MCP_AUTH_MODE="jwt", MCP_AUTH_SECRET_KEY=SECRET) as web:
        assert (await status(web), await status(web, shared_token())) == (401, 200)
        assert await status(web, await web.token()) == 401, "tokens of ours are no tokens of this mode"


async def test_the_secret_of_signed_tokens(tmp_path: Path) -> None:
    other = "another-secret-that-is-long-enough-too"
    async with served(tmp_path, MCP_AUTH_MODE="jwt", MCP_AUTH_SECRET_KEY=other) as web:
        assert (await status(web, shared_token()), await status(web, shared_token(other))) == (401, 200)


@pytest.fixture
async def issuer() -> AsyncIterator[KeyServer]:
    async with KeyServer() as keys:
        keys.publish(rsa_entry("first"))
        yield keys


def oauth(issuer: KeyServer, **changes: str) -> dict[str, str]:
    usual = {"OAUTH_ISSUER_URL": ISSUER, "OAUTH_AUDIENCE": AUDIENCE, "OAUTH_JWKS_URI": issuer.address}
    return {"MCP_AUTH_MODE": "oauth", **usual, **changes}


async def test_the_issuer_and_the_audience_of_oauth_tokens(tmp_path: Path, issuer: KeyServer) -> None:
    other = "https://another-issuer.example"
    async with served(tmp_path, **oauth(issuer)) as web:
        assert (await status(web, signed_token()), await status(web, signed_token(iss=other))) == (200, 401)
        assert await status(web, signed_token(aud="api://other")) == 401
    async with served(tmp_path, **oauth(issuer, OAUTH_ISSUER_URL=other)) as web:
        assert (await status(web, signed_token()), await status(web, signed_token(iss=other))) == (401, 200)
    async with served(tmp_path, **oauth(issuer, OAUTH_AUDIENCE="api://other")) as web:
        assert (await status(web, signed_token()), await status(web, signed_token(aud="api://other"))) == (401, 200)


async def test_where_the_issuer_shows_its_keys(tmp_path: Path, issuer: KeyServer) -> None:
    async with KeyServer() as other:
        other.publish(rsa_entry("second"))
        async with served(tmp_path, **oauth(issuer, OAUTH_JWKS_URI=other.address)) as web:
            assert (await status(web, signed_token("first")), await status(web, signed_token("second"))) == (401, 200)
    assert issuer.requests == 0


async def test_how_soon_new_keys_are_asked_for(tmp_path: Path, issuer: KeyServer) -> None:
    async with served(tmp_path, **oauth(issuer, OAUTH_JWKS_COOLDOWN_MS="100", OAUTH_JWKS_TIMEOUT_MS="2000")) as web:
        assert await status(web, signed_token("first")) == 200
        issuer.publish(rsa_entry("second"))
        token = signed_token("second")
        for _ in range(500):
            if await status(web, token) == 200:
                break
            await asyncio.sleep(0.01)
        assert await status(web, token) == 200


async def test_the_resource_that_tokens_must_be_for(tmp_path: Path, issuer: KeyServer) -> None:
    async with served(tmp_path, **oauth(issuer, MCP_SERVER_RESOURCE_IDENTIFIER=RESOURCE)) as web:
        assert await status(web, signed_token()) == 401
        assert await status(web, signed_token(resource=RESOURCE)) == 200
        assert await status(web, signed_token(aud=[AUDIENCE, RESOURCE])) == 200
        told = await web.http.get("/.well-known/oauth-protected-resource")
        assert told.json()["resource"] == RESOURCE


async def test_the_address_that_others_use(tmp_path: Path, issuer: KeyServer) -> None:
    async with served(tmp_path, **oauth(issuer, MCP_PUBLIC_URL="https://rookery.example")) as web:
        assert "https://rookery.example/.well-known/" in (await web.post({})).headers["www-authenticate"]


# Where the server listens, and whether it serves MCP at all: `rookery up` in a process of its own.


class Up(Process):
    """`rookery up` with some variables; `address` is where it says that it listens."""

    def __init__(self, place: Place, **environ: str) -> None:
        place.env |= environ
        command = [sys.executable, "-m", "rookery.entry", "up"]
        super().__init__(command, place.home / "up.log", place.environment(), place.home, warm=True)
        announced = (self.lines.raw() or b"").decode()
        found = re.fullmatch(r"Rookery listens on (http://\S+)", announced.strip())
        assert found, (announced, self.errors)
        self.address = found[1]

    def get(self, path: str) -> httpx2.Response:
        return httpx2.get(f"{self.address}{path}", timeout=PATIENCE_S, trust_env=False)


@pytest.fixture
def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as held:
        return held.getsockname()[1]


@pytest.fixture
def ups(place: Place) -> Iterator[list[Up]]:
    place.plugin = None
    started: list[Up] = []
    yield started
    for up in started:
        up.close()


def test_the_address_and_the_port(place: Place, ups: list[Up], free_port: int) -> None:
    ups.append(Up(place, MCP_HTTP_HOST="127.0.0.2", MCP_HTTP_PORT=str(free_port)))
    assert ups[0].address == f"http://127.0.0.2:{free_port}"
    assert ups[0].get("/mcp").json()["status"] == "ok"


def test_the_port_by_its_other_name_and_no_endpoint_where_only_stdio_is_wanted(
    place: Place, ups: list[Up], free_port: int
) -> None:
    ups.append(Up(place, DORKOS_PORT=str(free_port), MCP_TRANSPORT_TYPE="stdio"))
    assert ups[0].address == f"http://127.0.0.1:{free_port}"
    assert ups[0].get("/mcp").status_code == 404
    assert ups[0].get("/healthz").status_code == 200


def test_the_endpoint_is_there_where_http_is_wanted(place: Place, ups: list[Up]) -> None:
    ups.append(Up(place, MCP_TRANSPORT_TYPE="http"))
    assert ups[0].get("/mcp").status_code == 200

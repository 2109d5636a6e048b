"""What people and machines find around the endpoint: the page for browsers, health, readiness, metrics, the issuer."""

import html.parser
from typing import Any

import httpx2

from rookery import __version__
from tests.server.auth.issuer import AUDIENCE, ISSUER
from tests.server.streamable.conftest import MakeWeb
from tests.server.streamable.gates import gate
from tests.server.streamable.raw import Raw, request
from tests.server.streamable.web import Web, head

WELL_KNOWN = "/.well-known/oauth-protected-resource"
OPEN_PAGES = ["/mcp", "/sign-in", "/healthz", "/readyz"]


def names_no_tool(web: Web, answer: httpx2.Response) -> bool:
    names = [tool.name for tool in web.platform.registry if tool.name != "ping"]
    return bool(names) and not any(name in answer.text for name in names)


async def test_a_person_who_opens_the_endpoint_sees_what_it_is(make_web: MakeWeb) -> None:
    async with make_web() as web:
        browser = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"
        answer = await web.http.get("/mcp", headers={"accept": browser})
        assert (answer.status_code, answer.headers["content-type"]) == (200, "text/html; charset=utf-8")
        assert "This is an MCP endpoint" in answer.text
        assert __version__ in answer.text
        assert "default-src 'none'" in answer.headers["content-security-policy"]
        assert answer.headers["cache-control"] == "no-store"
        assert names_no_tool(web, answer)
        parser = html.parser.HTMLParser()
        parser.feed(answer.text)
        assert not parser.rawdata.strip()


async def test_a_program_that_looks_gets_a_line_of_json(make_web: MakeWeb) -> None:
    async with make_web() as web:
        for accept in ("*/*", "application/json", "", "image/png"):
            answer = await web.http.get("/mcp", headers={"accept": accept})
            assert answer.json() == {"status": "ok", "server": "rookery", "version": __version__}
            assert "mcp-session-id" not in answer.headers


async def test_nothing_that_is_open_tells_of_tools_or_people(make_web: MakeWeb) -> None:
    async with make_web() as web:
        for path in OPEN_PAGES:
            for token in (None, "rk_" + "a" * 43):
                answer = await web.http.get(path, headers=head(token, accept="*/*"))
                assert answer.status_code == 200, path
                assert names_no_tool(web, answer), path
                assert "default" not in answer.text, path


async def test_the_rest_of_the_endpoint_is_not_open(make_web: MakeWeb) -> None:
    async with make_web() as web:
        assert (await web.http.get("/mcp", headers={"accept": "text/event-stream"})).status_code == 401
        assert (await web.http.delete("/mcp", headers={"mcp-session-id": "x"})).status_code == 401
        assert (await web.http.post("/mcp", content=b"{}", headers=head())).status_code == 401


async def test_a_server_that_stops_is_not_ready_but_alive(trusting: Web) -> None:
    assert (await trusting.http.get("/readyz")).json() == {"status": "ready"}
    trusting.endpoint.closing = True
    answer = await trusting.http.get("/readyz")
    assert (answer.status_code, answer.json()) == (503, {"status": "not ready", "reason": "stopping"})
    assert (await trusting.http.get("/healthz")).json() == {"status": "ok"}


# Metrics.


async def metrics(web: Web, host: str = "127.0.0.1", token: str | None = None) -> Any:
    more = [] if token is None else [("authorization", f"Bearer {token}")]
    async with Raw(web.port) as raw:
        return await raw.ask(request("GET", "/metrics", [("host", host), *more]))


async def test_metrics_are_open_on_this_machine(make_web: MakeWeb) -> None:
    async with make_web() as web:
        token = await web.token()
        await web.modern("tools/call", token, name="ping", arguments={})
        answer = await metrics(web)
        assert (answer.status, answer.headers["content-type"]) == (200, "text/plain; version=0.0.4; charset=utf-8")
        assert b'mcp_tool_calls_total{tool="ping",success="true"} 1' in answer.body.splitlines()


async def test_metrics_need_a_token_where_others_can_ask(make_web: MakeWeb) -> None:
    async with make_web(host="0.0.0.0") as web:
        for token in (None, "rk_" + "a" * 43, "x"):
            answer = await metrics(web, "192.0.2.7", token)
            assert answer.status == 401
            assert answer.headers["www-authenticate"].startswith("Bearer ")
            assert b"mcp_" not in answer.body
        assert (await metrics(web, "192.0.2.7", await web.token())).status == 200


async def test_metrics_need_a_token_under_the_name_that_others_use(make_web: MakeWeb) -> None:
    async with make_web(public_url="https://rookery.example") as web:
        assert (await metrics(web, "rookery.example")).status == 401
        assert (await metrics(web, "rookery.example", await web.token())).status == 200
        assert (await metrics(web, "localhost:4242")).status == 200


# Who issues tokens.


async def test_only_a_server_that_has_an_issuer_names_one(make_web: MakeWeb) -> None:
    async with make_web() as web:
        for path in (WELL_KNOWN, f"{WELL_KNOWN}/mcp"):
            assert (await web.http.get(path)).status_code == 404


async def test_the_issuer_is_named_with_and_without_the_path(make_web: MakeWeb) -> None:
    async with gate(make_web, "oauth") as door:
        answers = [await door.web.http.get(path) for path in (WELL_KNOWN, f"{WELL_KNOWN}/mcp")]
        assert answers[0].json() == answers[1].json()
        for answer in answers:
            assert (answer.status_code, answer.headers["cache-control"]) == (200, "max-age=3600")
            told = answer.json()
            assert (told["resource"], told["authorization_servers"]) == (AUDIENCE, [ISSUER])
            assert told["bearer_methods_supported"] == ["header"]
            assert told["resource_signing_alg_values_supported"] == ["RS256", "ES256", "PS256"]
            assert names_no_tool(door.web, answer)
        assert (await door.web.http.get(f"{WELL_KNOWN}/other")).status_code == 404
        assert (await door.web.http.post(WELL_KNOWN)).status_code == 405


async def test_a_page_may_ask_for_the_issuer_with_the_headers_of_a_client(make_web: MakeWeb) -> None:
    async with gate(make_web, "oauth") as door:
        page = {"origin": "http://localhost:6274"}
        asks = {"access-control-request-method": "GET", "access-control-request-headers": "mcp-protocol-version"}
        for path in (WELL_KNOWN, f"{WELL_KNOWN}/mcp"):
            preflight = await door.web.http.options(path, headers=page | asks)
            assert preflight.status_code == 204
            assert preflight.headers["access-control-allow-origin"] == page["origin"]
            assert preflight.headers["access-control-allow-headers"] == "mcp-protocol-version"
            answer = await door.web.http.get(path, headers=page)
            assert answer.headers["access-control-allow-origin"] == "*"


# How a client is told to authenticate.


async def test_whoever_has_no_token_is_told_how_to_get_one_in_each_mode(make_web: MakeWeb) -> None:
    for mode, hint in {"local": "rookery token create", "jwt": "issuer", "oauth": "issuer"}.items():
        async with gate(make_web, mode, public_url="https://rookery.example") as door:
            answer = await door.web.post({"jsonrpc": "2.0", "id": 1, "method": "ping"})
            assert answer.status_code == 401
            assert hint in answer.json()["error"]["message"]
            challenge = answer.headers["www-authenticate"]
            assert challenge.startswith('Bearer realm="rookery"')
            assert "error=" not in challenge, "nothing was sent, so nothing is wrong with it"
            address = 'resource_metadata="https://rookery.example/.well-known/oauth-protected-resource/mcp"'
            assert (address in challenge) == (mode == "oauth")
            wrong = (await door.web.post({}, "x")).headers["www-authenticate"]
            assert 'error="invalid_token"' in wrong


async def test_without_a_public_address_the_issuer_is_found_where_the_client_came(make_web: MakeWeb) -> None:
    async with gate(make_web, "oauth") as door:
        web = door.web
        challenge = (await web.post({})).headers["www-authenticate"]
        address = f"{web.url}{WELL_KNOWN}/mcp"
        assert f'resource_metadata="{address}"' in challenge
        assert (await web.http.get(address)).json()["authorization_servers"] == [ISSUER]


async def test_a_token_that_lacks_a_scope_is_told_which(make_web: MakeWeb) -> None:
    async with gate(make_web, "oauth") as door:
        token = await door.token(scope="system:read")
        answer = await door.web.modern("tools/call", token, name="say_again", arguments={"name": "x"})
        assert answer.status_code == 403
        challenge = answer.headers["www-authenticate"]
        assert 'error="insufficient_scope"' in challenge
        assert "probe:read" in challenge.partition('scope="')[2].partition('"')[0].split()

"""Pages of other sites, and names that are not the server's: refused with 403 and 421, whatever else is right."""

from tests.server.streamable.conftest import MakeWeb
from tests.server.streamable.raw import Raw, request
from tests.server.streamable.web import Web, call, head, initialize

FOREIGN_ORIGINS = [
    "https://evil.example",
    "http://evil.example",
    "null",
    "http://localhost.evil.example",
    "http://127.0.0.1.evil.example",
    "http://evil.example#localhost",
    "http://localhost@evil.example",
    "http://user@localhost",
    "http://localhost/",
    "http://localhost?x",
    "http://localhost#x",
    "http://local\thost",
    "http://localhost:99999",
    "http://localhost:x",
    "http://[::1",
    "http://[::2]",
    "http://127.0.0.2",
    "http://0.0.0.0",
    "file://",
    "chrome-extension://localhost",
    "localhost",
    "",
    "*",
    "http://localhost http://evil.example",
    "http://localh\xf6st",
]
OWN_ORIGINS = [
    "http://localhost",
    "http://localhost:3000",
    "https://127.0.0.1:8443",
    "http://[::1]:6274",
    "HTTP://LOCALHOST",
]
FOREIGN_HOSTS = [
    "evil.example",
    "localhost.evil.example",
    "localhost:x",
    "localhost/",
    "user@localhost",
    "localhost,evil.example",
    "local\thost",
    "127.0.0.1.evil.example",
    "[::1",
    "::1",
    "0.0.0.0",
    "127.0.0.2",
    "2130706433",
    "",
    "localhost.",
    "l\xf6calhost",
]
OWN_HOSTS = ["localhost", "127.0.0.1:1", "LocalHost:4242", "[::1]", "[::1]:4242", "127.0.0.1:"]
PATHS = ["/mcp", "/", "/healthz", "/metrics", "/.well-known/oauth-protected-resource", "/nope"]


async def status(web: Web, path: str = "/mcp", **headers: str) -> int:
    chosen = {"host": "127.0.0.1"} | headers
    async with Raw(web.port) as raw:
        return (await raw.ask(request("GET", path, list(chosen.items())))).status


async def test_a_page_of_another_site_is_refused_everywhere(trusting: Web) -> None:
    for origin in FOREIGN_ORIGINS:
        assert {await status(trusting, path, origin=origin) for path in PATHS} == {403}, origin


async def test_a_page_of_another_site_is_refused_with_a_good_token_and_session(web: Web) -> None:
    token = await web.token()
    session = await web.initialize(token)
    headers = {"mcp_session_id": session, "origin": "https://evil.example"}
    for message in (call("ping"), initialize()):
        answer = await web.post(message, token, **headers)
        assert answer.status_code == 403
        assert "access-control-allow-origin" not in answer.headers
    for method in ("GET", "DELETE", "OPTIONS"):
        answer = await web.http.request(method, "/mcp", headers=head(token, accept="text/event-stream", **headers))
        assert answer.status_code == 403
        assert "access-control-allow-origin" not in answer.headers
    assert (await web.call(session, "ping", token)).status_code == 200


async def test_pages_of_this_machine_may_call(trusting: Web) -> None:
    for origin in OWN_ORIGINS:
        assert await status(trusting, origin=origin) == 200, origin


async def test_a_foreign_name_is_refused_everywhere(trusting: Web) -> None:
    for host in FOREIGN_HOSTS:
        assert {await status(trusting, path, host=host) for path in PATHS} == {421}, host


async def test_a_request_without_a_name_is_refused(trusting: Web) -> None:
    async with Raw(trusting.port) as raw:
        assert (await raw.ask(request("GET", "/mcp"))).status == 421


async def test_the_names_of_this_machine_are_known(trusting: Web) -> None:
    for host in OWN_HOSTS:
        assert await status(trusting, host=host) == 200, host


async def test_a_name_in_the_target_does_not_stand_for_the_header(trusting: Web) -> None:
    async with Raw(trusting.port) as raw:
        assert (await raw.ask(request("GET", "http://localhost/mcp", [("host", "evil.example")]))).status == 421
        assert (await raw.ask(request("GET", "http://evil.example/mcp", [("host", "localhost")]))).status == 200


async def test_settings_add_names_and_origins(make_web: MakeWeb) -> None:
    hosts, origins = ("rookery.example", "other.example:8443", "[fd00::1]"), ("https://app.example",)
    async with make_web(auth_mode="none", http_hosts=hosts, http_origins=origins) as web:
        for host in ("rookery.example", "ROOKERY.example:1", "other.example:8443", "other.example", "[fd00::1]:80"):
            assert await status(web, host=host) == 200, host
        assert await status(web, host="another.example") == 421
        assert await status(web, origin="https://app.example") == 200
        assert await status(web, origin="https://APP.example") == 200
        for origin in ("http://app.example", "https://app.example:444", "https://x.app.example"):
            assert await status(web, origin=origin) == 403, origin


async def test_every_origin_may_call_where_the_settings_say_so(make_web: MakeWeb) -> None:
    async with make_web(auth_mode="none", http_origins=("*",)) as web:
        assert await status(web, origin="https://anything.example") == 200
        assert await status(web, host="anything.example") == 421, "names are another matter"


async def test_the_public_address_is_known_by_name_and_as_an_origin(make_web: MakeWeb) -> None:
    async with make_web(public_url="https://rookery.example/base") as web:
        assert await status(web, host="rookery.example") == 200
        assert await status(web, origin="https://rookery.example") == 200
        assert await status(web, origin="http://rookery.example") == 403


async def test_a_server_for_others_is_reached_by_any_number_but_not_by_any_name(make_web: MakeWeb) -> None:
    async with make_web(host="0.0.0.0") as web:
        assert await status(web, host="192.0.2.7:4242") == 200
        assert await status(web, host="[2001:db8::1]") == 200
        assert await status(web, host="evil.example") == 421

"""What browsers are told: which pages may call, with which headers, and which answers they may read."""

from tests.server.streamable.conftest import MakeWeb
from tests.server.streamable.web import Web, call, head, initialize

PAGE = "http://localhost:6274"
EXPOSED = ["mcp-session-id", "mcp-protocol-version", "www-authenticate"]


def preflight(method: str = "POST", headers: str | None = None, origin: str = PAGE) -> dict[str, str]:
    asked = {} if headers is None else {"access-control-request-headers": headers}
    return {"origin": origin, "access-control-request-method": method, **asked}


async def test_a_page_is_told_what_it_may_send(make_web: MakeWeb) -> None:
    async with make_web() as web:
        wanted = "authorization, content-type, mcp-protocol-version, mcp-session-id, mcp-param-region"
        answer = await web.http.options("/mcp", headers=preflight("POST", wanted))
        assert (answer.status_code, answer.content) == (204, b"")
        assert answer.headers["access-control-allow-origin"] == PAGE
        assert answer.headers["access-control-allow-headers"] == wanted
        assert "DELETE" in answer.headers["access-control-allow-methods"].split(", ")
        assert int(answer.headers["access-control-max-age"]) > 0
        assert answer.headers["vary"] == "origin"
        assert "access-control-allow-credentials" not in answer.headers, (
            "tokens are sent by the page, never by a browser"
        )


async def test_headers_that_are_none_are_not_repeated(trusting: Web) -> None:
    for odd in (None, "", "x y", "a,,b", "a\tb", "x" * 2000, "*/*"):
        answer = await trusting.http.options("/mcp", headers=preflight("POST", odd))
        allowed = answer.headers["access-control-allow-headers"]
        assert "authorization" in allowed.split(", "), odd
        assert len(allowed) < 1000


async def test_without_sessions_pages_are_not_told_of_ending_one(make_web: MakeWeb) -> None:
    async with make_web(auth_mode="none", http_sessions="stateless") as web:
        answer = await web.http.options("/mcp", headers=preflight("DELETE"))
        assert "DELETE" not in answer.headers["access-control-allow-methods"]


async def test_every_answer_may_be_read_by_the_page_that_asked(make_web: MakeWeb) -> None:
    async with make_web() as web:
        token = await web.token()
        session = await web.initialize(token)
        page = {"origin": PAGE}
        answers = [
            await web.post(initialize(), token, **page),
            await web.post(call("ping"), token, mcp_session_id=session, **page),
            await web.post(initialize(), None, **page),
            await web.post(b"nonsense", token, **page),
            await web.post(call("ping"), token, mcp_session_id="unknown", **page),
            await web.http.get("/mcp", headers=page),
            await web.http.put("/mcp", headers=page),
            await web.http.delete("/mcp", headers=head(token, mcp_session_id=session, **page)),
        ]
        assert [answer.status_code for answer in answers] == [200, 200, 401, 400, 404, 200, 405, 200]
        for answer in answers:
            assert answer.headers["access-control-allow-origin"] == PAGE
            assert answer.headers["access-control-expose-headers"].split(", ") == EXPOSED
            assert answer.headers["vary"] == "origin"


async def test_streams_may_be_read_too(trusting: Web) -> None:
    answer = await trusting.post(initialize(), accept="text/event-stream", origin=PAGE)
    assert answer.headers["content-type"] == "text/event-stream"
    assert answer.headers["access-control-allow-origin"] == PAGE
    assert answer.headers["mcp-session-id"]


async def test_programs_that_are_no_pages_are_told_nothing_of_this(trusting: Web) -> None:
    answer = await trusting.post(initialize())
    assert not [name for name in answer.headers if name.startswith("access-control")]


async def test_a_page_of_another_site_gets_no_leave(trusting: Web) -> None:
    answer = await trusting.http.options("/mcp", headers=preflight(origin="https://evil.example"))
    assert answer.status_code == 403
    assert not [name for name in answer.headers if name.startswith("access-control")]

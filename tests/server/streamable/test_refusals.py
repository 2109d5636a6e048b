"""What the endpoint refuses before it looks at a message: revisions, methods, sessions that are not named."""

from rookery.server.streamable.requests import SUPPORTED
from tests.server.streamable.conftest import MakeWeb
from tests.server.streamable.web import LEGACY, MODERN, Web, call, head, initialize, modern

DONE = {"jsonrpc": "2.0", "method": "notifications/initialized"}


def stream(**headers: str | None) -> dict[str, str]:
    return head(None, accept="text/event-stream", **headers)


async def test_an_unsupported_revision_is_refused_and_the_supported_ones_are_named(trusting: Web) -> None:
    session = await trusting.initialize()
    for version in ("1999-01-01", "2025-06-17", "2099-01-01", "latest", "2025-11-25, 2026-07-28", ""):
        headers = {"mcp_session_id": session, "mcp_protocol_version": version}
        answers = [await trusting.post(message, None, **headers) for message in (call("ping"), initialize(), DONE)]
        answers += [await trusting.http.request(way, "/mcp", headers=stream(**headers)) for way in ("GET", "DELETE")]
        for answer in answers:
            assert answer.status_code == 400, version
            error = answer.json()["error"]
            assert error["data"] == {"supported": [MODERN], "requested": version}
            assert all(supported in error["message"] for supported in SUPPORTED)
    assert (await trusting.call(session, "ping")).status_code == 200


async def test_the_refusal_of_a_revision_does_not_repeat_all_that_was_sent(trusting: Web) -> None:
    answer = await trusting.post(call("ping"), mcp_protocol_version="x" * 5000)
    assert answer.status_code == 400
    assert len(answer.content) < 1000


async def test_every_supported_revision_is_one_that_a_client_can_ask_for(trusting: Web) -> None:
    for version in SUPPORTED:
        if version == MODERN:
            assert (await trusting.modern("tools/list")).status_code == 200
            continue
        session = await trusting.initialize(revision=version)
        answer = await trusting.post(call("ping"), None, mcp_session_id=session, mcp_protocol_version=version)
        assert answer.status_code == 200


async def test_a_body_of_another_revision_than_its_header_is_refused(trusting: Web) -> None:
    message, headers = modern("tools/call", name="ping", arguments={})
    for version in (LEGACY, None):
        answer = await trusting.post(message, None, **{**headers, "mcp_protocol_version": version})
        assert answer.status_code == 400
        assert answer.json()["id"] == 7
    bare = call("ping")
    assert (await trusting.post(bare, None, **headers)).status_code == 400


async def test_a_session_that_is_not_named_is_asked_for(trusting: Web) -> None:
    await trusting.initialize()
    answers = [
        await trusting.post(call("ping")),
        await trusting.post(DONE),
        await trusting.post({"jsonrpc": "2.0", "id": 1, "result": {}}),
        await trusting.http.get("/mcp", headers=stream()),
        await trusting.http.delete("/mcp"),
    ]
    for answer in answers:
        assert answer.status_code == 400
        assert "Mcp-Session-Id is missing" in answer.json()["error"]["message"]


async def test_a_session_is_ended_once(trusting: Web) -> None:
    session = await trusting.initialize()
    first = await trusting.http.delete("/mcp", headers=head(None, mcp_session_id=session))
    assert (first.status_code, first.json()) == (200, {"status": "terminated"})
    assert (await trusting.http.delete("/mcp", headers=head(None, mcp_session_id=session))).status_code == 404
    assert (await trusting.call(session, "ping")).status_code == 404
    assert (await trusting.http.get("/mcp", headers=stream(mcp_session_id=session))).status_code == 404
    assert (await trusting.post(initialize(), mcp_session_id=session)).status_code == 404


async def test_without_sessions_there_is_none_to_end_or_to_listen_to(make_web: MakeWeb) -> None:
    async with make_web(auth_mode="none", http_sessions="stateless") as web:
        for session in (None, "0" * 64):
            for method in ("GET", "DELETE"):
                answer = await web.http.request(method, "/mcp", headers=stream(mcp_session_id=session))
                assert answer.status_code == 405
                allowed = answer.headers["allow"].split(", ")
                assert "POST" in allowed
                assert method not in allowed or method == "GET"
        assert (await web.call("0" * 64, "ping")).status_code == 200, "an id from elsewhere means nothing here"


async def test_the_newest_revision_has_no_session_to_end_or_to_listen_to(trusting: Web) -> None:
    session = await trusting.initialize()
    for method in ("GET", "DELETE"):
        headers = stream(mcp_session_id=session, mcp_protocol_version=MODERN)
        answer = await trusting.http.request(method, "/mcp", headers=headers)
        assert answer.status_code == 405
        assert "POST" in answer.headers["allow"]
    assert (await trusting.call(session, "ping")).status_code == 200


async def test_other_methods_are_told_which_ones_there_are(trusting: Web) -> None:
    for method in ("PUT", "PATCH", "TRACE", "PROPFIND"):
        answer = await trusting.http.request(method, "/mcp", headers=head())
        assert answer.status_code == 405, method
        assert answer.headers["allow"] == "GET, HEAD, POST, DELETE, OPTIONS"


async def test_a_refusal_is_a_json_rpc_error_without_an_id(trusting: Web) -> None:
    for answer in (
        await trusting.http.put("/mcp"),
        await trusting.http.delete("/mcp"),
        await trusting.http.get("/mcp", headers={"origin": "https://evil.example"}),
    ):
        assert answer.headers["content-type"] == "application/json"
        told = answer.json()
        assert set(told) == {"jsonrpc", "id", "error"}
        assert told["id"] is None
        assert set(told["error"]) == {"code", "message"}


async def test_a_server_that_stops_says_so_and_when_to_come_back(trusting: Web) -> None:
    trusting.endpoint.closing = True
    answer = await trusting.post(initialize())
    assert (answer.status_code, answer.headers["retry-after"]) == (503, "5")
    assert (await trusting.http.get("/readyz")).status_code == 503
    trusting.endpoint.closing = False


async def test_no_more_sessions_are_opened_than_allowed(make_web: MakeWeb) -> None:
    async with make_web(auth_mode="none", http_max_sessions=2) as web:
        first = await web.initialize()
        await web.initialize()
        answer = await web.post(initialize())
        assert (answer.status_code, answer.headers["retry-after"]) == (503, "30")
        assert "mcp-session-id" not in answer.headers
        await web.http.delete("/mcp", headers=head(None, mcp_session_id=first))
        assert (await web.post(initialize())).status_code == 200

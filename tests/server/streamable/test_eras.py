"""The same tools over HTTP in every era, way of answering and kind of session."""

import pytest

from tests.server.streamable.conftest import MakeWeb
from tests.server.streamable.web import LEGACY, Web, call, events, initialize


async def test_without_a_token_nothing_is_served_and_the_answer_says_what_to_do(web: Web) -> None:
    answer = await web.post(initialize())
    assert answer.status_code == 401
    assert answer.headers["www-authenticate"].startswith('Bearer realm="rookery"')
    assert "rookery token create" in answer.json()["error"]["message"]
    assert "mcp-session-id" not in answer.headers


async def test_a_session_of_the_handshake_era_lists_and_calls(web: Web) -> None:
    token = await web.token()
    session = await web.initialize(token)
    answer = await web.call(session, "ping", token)
    assert answer.status_code == 200
    assert answer.headers["content-type"] == "application/json"
    assert answer.headers["mcp-session-id"] == session
    assert answer.json()["result"]["structuredContent"]["status"] == "pong"


async def test_a_request_of_2026_07_28_stands_for_itself(web: Web) -> None:
    token = await web.token()
    answer = await web.modern("tools/call", token, name="ping", arguments={})
    assert answer.status_code == 200, answer.text
    assert "mcp-session-id" not in answer.headers
    assert answer.json()["result"]["structuredContent"]["status"] == "pong"


@pytest.mark.parametrize("revision", ["2025-03-26", "2025-06-18", "2025-11-25"])
async def test_every_handshake_revision_is_spoken(trusting: Web, revision: str) -> None:
    answer = await trusting.post(initialize(revision))
    assert answer.json()["result"]["protocolVersion"] == revision


async def test_without_sessions_every_request_is_served_alone(make_web: MakeWeb) -> None:
    async with make_web(auth_mode="none", http_sessions="stateless") as web:
        first = await web.post(initialize())
        assert first.status_code == 200
        assert "mcp-session-id" not in first.headers
        answer = await web.post(call("ping"), mcp_protocol_version=LEGACY)
        assert answer.json()["result"]["structuredContent"]["status"] == "pong"


async def test_answers_are_event_streams_where_the_settings_say_so(make_web: MakeWeb) -> None:
    async with make_web(auth_mode="none", http_answers="sse") as web:
        session = await web.initialize()
        answer = await web.call(session, "ping")
        assert answer.headers["content-type"] == "text/event-stream"
        [message] = events(answer.text)
        assert message["result"]["structuredContent"]["status"] == "pong"
        modern = await web.modern("tools/call", name="ping", arguments={})
        assert events(modern.text)[0]["result"]["structuredContent"]["status"] == "pong"


async def test_a_second_handshake_on_a_session_tells_the_agent_who_it_is_as_the_first_did(trusting: Web) -> None:
    first = await trusting.post(initialize())
    again = await trusting.post(initialize(), mcp_session_id=first.headers["mcp-session-id"])
    assert again.json()["result"] == first.json()["result"]
    assert "You are" in again.json()["result"]["instructions"]

"""What happens between two steps of a request: a session ends, an id comes twice, many knock at once."""

import asyncio
from typing import Any

import pytest

from rookery.core.errors import DatabaseError
from rookery.server.session import Session, open_session
from rookery.server.streamable import endpoint as endpoint_module
from tests.server.streamable import probes
from tests.server.streamable.conftest import MakeWeb, on_one_database
from tests.server.streamable.gates import gate
from tests.server.streamable.tap import Tap, request
from tests.server.streamable.web import LEGACY, Web, call, head, initialize, until


async def test_a_session_that_ends_while_a_newer_token_is_looked_up_serves_nothing(
    make_web: MakeWeb, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with gate(make_web, "jwt") as door:
        web, older, newer = door.web, await door.token(), await door.token(scope="system:read")
        session = await web.initialize(older)
        table = web.endpoint.table

        async def ends_meanwhile(*args: Any) -> Session:
            opened = await open_session(*args)
            await table.end(list(table._open.values()), "client")
            return opened

        monkeypatch.setattr(endpoint_module, "open_session", ends_meanwhile)
        answer = await web.call(session, "ping", newer)
        assert answer.status_code == 404
        assert not web.hub.sessions


async def test_calls_with_the_same_id_all_end_with_their_session(trusting: Web) -> None:
    session = await trusting.initialize()
    named = {"mcp_session_id": session, "mcp_protocol_version": LEGACY}
    async with Tap(trusting.port) as one, Tap(trusting.port) as two:
        for tap, name in ((one, "twin one"), (two, "twin two")):
            await tap.send(request(call("wait_for", name=name), **named))
            await until(lambda name=name: probes.waiting.get(name), "the call runs")
        assert (await trusting.http.delete("/mcp", headers=head(None, mcp_session_id=session))).status_code == 200
        for name in ("twin one", "twin two"):
            async with asyncio.timeout(3):
                await until(lambda name=name: probes.ended[name] == "cancelled", f"{name} ends")


async def test_many_who_shake_hands_at_once_do_not_get_past_the_limit(make_web: MakeWeb) -> None:
    async with make_web(auth_mode="none", http_max_sessions=3) as web:
        answers = await asyncio.gather(*(web.post(initialize()) for _ in range(12)))
        assert sorted(answer.status_code for answer in answers) == [200] * 3 + [503] * 9
        assert len(web.endpoint.table) == 3


async def test_without_sessions_one_client_does_not_choose_the_log_level_of_another(make_web: MakeWeb) -> None:
    async with make_web(auth_mode="none", http_sessions="stateless") as web:
        message = {"jsonrpc": "2.0", "id": 1, "method": "logging/setLevel", "params": {"level": "emergency"}}
        answer = await web.post(message, mcp_protocol_version=LEGACY)
        print(answer.status_code, answer.text)
        [shared] = web.endpoint._identities._known.values()
        assert shared.log_level == 1


async def test_a_database_that_fails_for_a_moment_ends_no_session(
    trusting: Web, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = await trusting.initialize()
    asked = asyncio.Event()

    async def fails(self: Session) -> Any:
        asked.set()
        raise DatabaseError("the database cannot be read", hint="")

    with monkeypatch.context() as patched:
        patched.setattr(Session, "actor", fails)
        await asyncio.wait_for(asked.wait(), 5)
        await asyncio.sleep(0.1)
    assert (await trusting.call(session, "ping")).status_code == 200


async def test_nul(web: Web, caplog: Any) -> None:
    token = await web.token()
    m = initialize()
    m["params"]["clientInfo"]["name"] = "a\x00b\nc"
    a = await web.post(m, token)
    print("INIT", a.status_code, a.text[:300])
    s = await web.initialize(token)
    for msg in (call("a\x00b"), call("ping\nx"), {"jsonrpc": "2.0", "id": 2, "method": "resources/read", "params": {"uri": "a://\x00"}}, {"jsonrpc": "2.0", "id": 2, "method": "prompts/get", "params": {"name": "a\x00"}}, call("say_again", name="a\x00b"), {"jsonrpc": "2.0", "id": "a\x00\r\nb", "method": "ping"}, initialize()):
        a = await web.post(msg, token, mcp_session_id=s, mcp_protocol_version=LEGACY)
        print(msg.get("params"), a.status_code, a.text[:300])
    a = await web.post({"jsonrpc": "2.0", "id": 2, "method": "logging/setLevel", "params": {"level": "error"}, "x": 1}, token, mcp_protocol_version="2026-07-28", mcp_method="logging/setLevel")
    print(a.status_code, a.text)
    print([r.getMessage() for r in caplog.records if r.levelname in ("ERROR","WARNING")])
    assert 0

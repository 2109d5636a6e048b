"""What happens between two steps of a request: a session ends, an id comes twice, many knock at once."""

import asyncio
from typing import Any

import pytest
import sqlalchemy as sa

from rookery.core.errors import DatabaseError
from rookery.identity.client_sessions import client_sessions
from rookery.server.session import QUIETEST_BY_DEFAULT, Listing, Session, open_session
from rookery.server.streamable import endpoint as endpoint_module
from tests.server.streamable import probes
from tests.server.streamable.conftest import MakeWeb
from tests.server.streamable.gates import gate
from tests.server.streamable.tap import Tap, asking, hearing, request
from tests.server.streamable.web import LEGACY, Web, call, head, initialize, modern, until


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
        assert answer.status_code == 200
        [shared] = web.endpoint._identities._known.values()
        assert shared.log_level == QUIETEST_BY_DEFAULT


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
        asked.clear()
        await asyncio.wait_for(asked.wait(), 5)
    assert (await trusting.call(session, "ping")).status_code == 200


async def test_a_session_that_ends_while_it_is_recorded_is_not_kept(
    trusting: Web, monkeypatch: pytest.MonkeyPatch
) -> None:
    table, database = trusting.endpoint.table, trusting.platform.database
    change = database.change

    async def ends_meanwhile(work: Any) -> Any:
        done = await change(work)
        # That its agent was seen is written as well, perhaps before.
        if table._open:
            monkeypatch.setattr(database, "change", change)
            await table.end(list(table._open.values()), "idle")
        return done

    monkeypatch.setattr(database, "change", ends_meanwhile)
    assert (await trusting.post(initialize())).status_code == 200
    assert not table._open
    assert not trusting.hub.sessions


async def test_a_client_may_call_itself_what_the_database_cannot_keep(web: Web) -> None:
    token, message = await web.token(), initialize()
    message["params"]["clientInfo"]["name"] = "odd\0\nclient"
    answer = await web.post(message, token)
    assert "result" in answer.json()
    session = answer.headers["mcp-session-id"]
    assert (await web.call(session, "ping", token)).status_code == 200
    programs = web.platform.database.direct(lambda tx: tx.all(sa.select(client_sessions.c.program)))
    assert [row.program for row in programs] == ["oddclient 1"]


async def test_a_name_that_cannot_be_recorded_is_one_that_nothing_has(web: Web) -> None:
    token = await web.token()
    session = await web.initialize(token)
    for method in ("tools/call", "prompts/get"):
        message = {"jsonrpc": "2.0", "id": 3, "method": method, "params": {"name": "odd\0name"}}
        answer = await web.post(message, token, mcp_session_id=session, mcp_protocol_version=LEGACY)
        assert answer.json()["error"]["code"] == -32602
        assert answer.json()["error"]["message"].startswith("Unknown")


async def test_a_token_revoked_while_the_body_comes_is_refused_with_a_challenge(make_web: MakeWeb) -> None:
    async with gate(make_web, "local") as door:
        web, token = door.web, await door.token()
        session = await web.initialize(token)
        whole = request(call("ping"), token, mcp_session_id=session, mcp_protocol_version=LEGACY)
        async with Tap(web.port) as tap:
            await tap.send(whole[:-5])
            await until(lambda: web.endpoint.reading, "the server waits for the body")
            door.revoke(token)
            await tap.send(whole[-5:])
            await tap.head()
            assert tap.status == 401
            assert 'error="invalid_token"' in tap.headers["www-authenticate"]


async def test_a_database_that_fails_for_a_moment_keeps_no_news_from_anybody(
    make_web: MakeWeb, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with make_web() as web:
        await web.fleet.call(web.fleet.owner, "create_agent", name="ada", permissions=["ping"])
        token = await web.token("ada")
        session, failed = await web.initialize(token), asyncio.Event()
        listing = {"jsonrpc": "2.0", "id": 3, "method": "tools/list"}
        assert (await web.post(listing, token, mcp_session_id=session)).status_code == 200
        message, headers = modern("subscriptions/listen", notifications={"toolsListChanged": True})
        names = Session.names

        async def fails_once(self: Session, listing: Listing) -> list[str]:
            monkeypatch.setattr(Session, "names", names if failed.is_set() else fails_once)
            failed.set()
            raise DatabaseError("the database cannot be read", hint="")

        async with hearing(web, session, token) as old, asking(web, message, token, **headers) as new:
            acknowledged = await new.next()
            assert acknowledged is not None
            monkeypatch.setattr(Session, "names", fails_once)
            await web.fleet.call(web.fleet.owner, "grant_tool", agent="ada", tool="say_again")
            await asyncio.wait_for(failed.wait(), 5)
            for stream in (old, new):
                told = await asyncio.wait_for(stream.next(), 5)
                assert told is not None
                assert told["method"] == "notifications/tools/list_changed"

"""A session belongs to a tenant, a client and a subject. To everybody else its id is one that does not exist."""

from collections.abc import AsyncIterator

import httpx2
import pytest

from rookery.server.streamable.sessions import new_session_id
from tests.server.streamable.conftest import MakeWeb
from tests.server.streamable.gates import OTHER_TENANT, Gate, gate
from tests.server.streamable.web import LEGACY, Web, call, head

METHODS = ["POST", "GET", "DELETE"]
FOREIGNERS = {
    "another tenant": {"tenant": OTHER_TENANT},
    "another client": {"client": "other-cli"},
    "another subject": {"who": "eve"},
}


@pytest.fixture(params=["local", "jwt", "oauth"])
async def door(request: pytest.FixtureRequest, make_web: MakeWeb) -> AsyncIterator[Gate]:
    async with gate(make_web, request.param) as running:
        yield running


async def knock(web: Web, method: str, session: str, token: str | None) -> httpx2.Response:
    """Use a session in one of the three ways."""
    headers = head(token, mcp_session_id=session, mcp_protocol_version=LEGACY)
    if method == "POST":
        return await web.post(call("ping"), token, mcp_session_id=session, mcp_protocol_version=LEGACY)
    accept = {"accept": "text/event-stream"} if method == "GET" else {}
    return await web.http.request(method, "/mcp", headers=headers | accept)


async def still_serves(web: Web, session: str, token: str) -> bool:
    answer = await web.call(session, "ping", token)
    return answer.status_code == 200 and answer.json()["result"]["structuredContent"]["status"] == "pong"


def seen(answer: httpx2.Response) -> tuple[int, object, set[str]]:
    return answer.status_code, answer.json(), set(answer.headers)


@pytest.mark.parametrize("foreigner", FOREIGNERS)
async def test_a_foreign_session_is_answered_like_one_that_never_was(door: Gate, foreigner: str) -> None:
    web = door.web
    ada, eve = await door.token(), await door.token(**FOREIGNERS[foreigner])
    session = await web.initialize(ada)
    for method in METHODS:
        foreign = await knock(web, method, session, eve)
        assert foreign.status_code == 404
        assert "mcp-session-id" not in foreign.headers
        assert seen(foreign) == seen(await knock(web, method, new_session_id(), eve))
        assert await still_serves(web, session, ada)


async def test_a_token_without_a_subject_does_not_reach_the_sessions_of_those_with_one(make_web: MakeWeb) -> None:
    async with gate(make_web, "jwt") as door:
        ada, nobody = await door.token(), await door.token("")
        session, plain = await door.web.initialize(ada), await door.web.initialize(nobody)
        assert (await knock(door.web, "POST", session, nobody)).status_code == 404
        assert (await knock(door.web, "POST", plain, ada)).status_code == 404
        assert await still_serves(door.web, plain, await door.token(""))


async def test_without_a_token_a_session_cannot_even_be_asked_for(door: Gate) -> None:
    web, ada = door.web, await door.token()
    session = await web.initialize(ada)
    for method in METHODS:
        answer = await knock(web, method, session, None)
        assert answer.status_code == 401
        assert seen(answer) == seen(await knock(web, method, new_session_id(), None))
    assert await still_serves(web, session, ada)


async def test_an_altered_id_is_unknown(make_web: MakeWeb) -> None:
    async with gate(make_web, "jwt") as door:
        ada = await door.token()
        session = await door.web.initialize(ada)
        for altered in (session[:-1], session + "0", session[::-1], session.upper(), f"{session}, {session}", "", "*"):
            assert (await knock(door.web, "POST", altered, ada)).status_code == 404, altered
        assert await still_serves(door.web, session, ada)


async def test_the_name_of_a_session_in_the_records_opens_nothing(make_web: MakeWeb) -> None:
    async with gate(make_web, "jwt") as door:
        ada = await door.token()
        session = await door.web.initialize(ada)
        [recorded] = [one.session.id for one in door.web.endpoint.table._open.values()]
        assert session not in recorded
        assert (await knock(door.web, "POST", recorded, ada)).status_code == 404


async def test_an_agent_and_an_outsider_with_the_same_name_do_not_share_a_session(make_web: MakeWeb) -> None:
    async with gate(make_web, "jwt") as door:
        agent = door.web.fleet.actor().agent or ""
        mine = await door.web.initialize(await door.token(agent))
        other = await door.token(agent, tenant=OTHER_TENANT)
        assert (await knock(door.web, "POST", mine, other)).status_code == 404


# Newer tokens of the same client and subject.


async def listed(web: Web, session: str, token: str) -> set[str]:
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
    answer = await web.post(message, token, mcp_session_id=session, mcp_protocol_version=LEGACY)
    return {tool["name"] for tool in answer.json()["result"]["tools"]}


@pytest.mark.parametrize("mode", ["jwt", "oauth"])
async def test_a_new_token_goes_on_with_the_session_and_its_scopes_count_at_once(make_web: MakeWeb, mode: str) -> None:
    async with gate(make_web, mode) as door:
        web, wide, narrow = door.web, await door.token(), await door.token(scope="system:read")
        session = await web.initialize(narrow)
        assert "say_again" not in await listed(web, session, narrow)
        refused = (await web.call(session, "say_again", narrow, name="x")).json()["result"]
        assert refused["_meta"]["rookery/error"]["code"] == "PERMISSION_DENIED"
        assert "say_again" in await listed(web, session, wide)
        served = (await web.call(session, "say_again", wide, name="x")).json()["result"]
        assert served["structuredContent"] == {"text": "x"}
        assert len(web.endpoint.table) == 1


async def test_a_narrower_token_narrows_though_a_wider_one_is_still_good(make_web: MakeWeb) -> None:
    async with gate(make_web, "jwt") as door:
        web, wide, narrow = door.web, await door.token(), await door.token(scope="system:read")
        session = await web.initialize(wide)
        for _ in range(3):
            assert "say_again" in await listed(web, session, wide)
            assert "say_again" not in await listed(web, session, narrow)
            refused = (await web.call(session, "say_again", narrow, name="x")).json()["result"]
            assert refused["isError"]


async def test_one_of_our_own_tokens_does_not_go_on_with_the_session_of_another(make_web: MakeWeb) -> None:
    async with gate(make_web, "local") as door:
        first, second = await door.token(), await door.token()
        session = await door.web.initialize(first)
        assert (await knock(door.web, "POST", session, second)).status_code == 404
        assert await still_serves(door.web, session, first)

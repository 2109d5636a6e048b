"""A token that was revoked or has run out opens nothing any more, and what it held open is closed."""

import time
from collections.abc import AsyncIterator

import pytest

from rookery.identity.access import token_row
from tests.server.auth.issuer import shared_token
from tests.server.streamable import probes
from tests.server.streamable.conftest import MakeWeb
from tests.server.streamable.gates import SCOPES, Gate, gate
from tests.server.streamable.tap import Tap, request
from tests.server.streamable.web import LEGACY, call, head, modern, until

SOON_S = 5.0
LEEWAY_S = 30


@pytest.fixture(params=["revoked", "over"])
async def loser(request: pytest.FixtureRequest, make_web: MakeWeb) -> AsyncIterator["Loser"]:
    async with gate(make_web, "local") as door:
        yield Loser(door, request.param)


class Loser:
    """Somebody whose token is about to end, one way or the other."""

    def __init__(self, door: Gate, how: str) -> None:
        self.door, self.web, self.how = door, door.web, how
        self.token = door.local_token(left_s=2.5 if how == "over" else None)[1]

    async def lose(self) -> float:
        """End the token; when that was."""
        if self.how == "revoked":
            self.door.revoke(self.token)
            return time.monotonic()
        await until(self._over, "the token runs out")
        return time.monotonic()

    def _over(self) -> bool:
        return self.web.platform.database.direct(lambda tx: token_row(tx, self.token)) is None


async def test_the_next_request_is_refused_in_every_way(loser: Loser) -> None:
    web, token = loser.web, loser.token
    session = await web.initialize(token)
    assert (await web.call(session, "ping", token)).status_code == 200
    assert (await web.modern("tools/list", token)).status_code == 200
    await loser.lose()
    answers = [
        await web.call(session, "ping", token),
        await web.modern("tools/list", token),
        await web.modern("tools/call", token, name="ping", arguments={}),
        await web.http.get("/mcp", headers=head(token, accept="text/event-stream", mcp_session_id=session)),
        await web.http.delete("/mcp", headers=head(token, mcp_session_id=session)),
    ]
    for answer in answers:
        assert answer.status_code == 401
        assert 'error="invalid_token"' in answer.headers["www-authenticate"]
        assert "unknown, revoked or over" in answer.json()["error"]["message"]
        assert token not in answer.text


async def test_an_open_stream_of_a_session_ends(loser: Loser) -> None:
    web, token = loser.web, loser.token
    session = await web.initialize(token)
    async with Tap(web.port) as tap:
        await tap.ask(None, token, method="GET", accept="text/event-stream", mcp_session_id=session)
        assert tap.status == 200
        ended = await loser.lose()
        await tap.rest()
        assert time.monotonic() - ended < SOON_S
    await until(lambda: len(web.endpoint.table) == 0, "the session is forgotten")


async def test_an_open_stream_of_the_newest_revision_ends(loser: Loser) -> None:
    web, token = loser.web, loser.token
    message, headers = modern("subscriptions/listen", notifications={"toolsListChanged": True})
    async with Tap(web.port) as tap:
        await tap.ask(message, token, **headers)
        assert tap.status == 200
        await tap.next()
        ended = await loser.lose()
        await tap.rest()
        assert time.monotonic() - ended < SOON_S


async def test_a_call_that_is_running_in_a_session_ends(loser: Loser) -> None:
    web, token, name = loser.web, loser.token, f"lost right {loser.how}"
    session = await web.initialize(token)
    async with Tap(web.port) as tap:
        message = call("wait_for", name=name)
        await tap.send(request(message, token, mcp_session_id=session, mcp_protocol_version=LEGACY))
        await until(lambda: probes.waiting.get(name), "the call runs")
        ended = await loser.lose()
        await until(lambda: probes.ended[name] == "cancelled", "the call ends")
        assert time.monotonic() - ended < SOON_S


async def test_a_signed_token_that_runs_out_takes_its_stream_along(make_web: MakeWeb) -> None:
    async with gate(make_web, "jwt") as door:
        token = shared_token(sub="ada", scope=SCOPES, exp=int(time.time()) - LEEWAY_S + 3)
        session = await door.web.initialize(token)
        async with Tap(door.web.port) as tap:
            await tap.ask(None, token, method="GET", accept="text/event-stream", mcp_session_id=session)
            assert tap.status == 200
            await tap.rest()
        answer = await door.web.call(session, "ping", token)
        assert answer.status_code == 401
        assert "expired" in answer.json()["error"]["message"]


async def test_a_newer_token_keeps_the_stream_of_an_older_one_open(make_web: MakeWeb) -> None:
    async with gate(make_web, "jwt") as door:
        web, now = door.web, int(time.time())
        older = shared_token(sub="ada", scope=SCOPES, exp=now - LEEWAY_S + 3)
        newer = shared_token(sub="ada", scope=SCOPES)
        session = await web.initialize(older)
        async with Tap(web.port) as tap:
            await tap.ask(None, older, method="GET", accept="text/event-stream", mcp_session_id=session)
            assert (await web.call(session, "ping", newer)).status_code == 200
            await until(lambda: time.time() > now + 4, "the older token runs out")
            assert (await web.call(session, "ping", older)).status_code == 401
            assert (await web.call(session, "ping", newer)).status_code == 200
            assert len(web.endpoint.table) == 1

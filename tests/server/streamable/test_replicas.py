"""Two servers on one PostgreSQL behind a proxy that sends every request to the next."""

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Any

import pytest

from rookery.core.context import Context
from tests.platform_fixtures import Fleet
from tests.server.streamable import probes, scripts
from tests.server.streamable.conversation import ABLE, SAID, accept, converse, play_rounds, text_of
from tests.server.streamable.round_robin import RoundRobin, round_robin
from tests.server.streamable.sdk import connect
from tests.server.streamable.tap import asking, hearing
from tests.server.streamable.web import LEGACY, Web, call, initialize, modern, serving

CHANGED = "notifications/tools/list_changed"


@dataclass
class Pair:
    """Both servers, and the way to whichever is next."""

    one: Web
    other: Web
    any: Web
    proxy: RoundRobin

    def both_served(self) -> bool:
        return self.proxy.served.keys() == {0, 1}


MakePair = Callable[..., AbstractAsyncContextManager[Pair]]


@pytest.fixture
def make_pair(postgres_url: str, make_fleet: Callable[..., Fleet]) -> MakePair:
    @contextlib.asynccontextmanager
    async def make(**settings: Any) -> AsyncIterator[Pair]:
        domains = {"probes": probes, "scripts": scripts}
        first, second = (make_fleet(postgres_url, extra=domains, **settings) for _ in range(2))
        async with serving(first) as one, serving(second) as other, round_robin(one.port, other.port) as proxy:
            whichever = Web(first, proxy.port, one.endpoint, one.hub)
            try:
                yield Pair(one, other, whichever, proxy)
            finally:
                await whichever.http.aclose()

    return make


@pytest.fixture
async def pair(make_pair: MakePair) -> AsyncIterator[Pair]:
    async with make_pair() as running:
        yield running


def on(session: str) -> dict[str, str]:
    return {"mcp_session_id": session, "mcp_protocol_version": LEGACY}


async def test_requests_of_2026_07_28_are_served_by_whichever_is_next(pair: Pair) -> None:
    token = await pair.any.token()
    for number in range(10):
        name = f"call {number}"
        answer = await pair.any.modern("tools/call", token, name="say_again", arguments={"name": name})
        assert text_of(answer.json()["result"]) == name
    assert pair.proxy.served == {0: 5, 1: 5}


async def test_every_round_of_questions_may_reach_another_server(pair: Pair) -> None:
    said, rounds = await play_rounds(pair.any, await pair.any.token())
    assert said == SAID
    assert len(rounds) == 3
    assert pair.proxy.served == {0: 2, 1: 2}


async def test_state_sealed_by_one_server_is_no_use_to_another_identity_at_the_other(pair: Pair) -> None:
    scripts.scripts["converse"] = converse
    ada, bob = await pair.one.token(), await pair.one.token(None)
    params: dict[str, Any] = {"name": "play_script", "arguments": {"name": "converse"}}
    first = (await pair.one.modern("tools/call", ada, capabilities=ABLE, **params)).json()["result"]
    params |= {"inputResponses": {"input_1": accept("Eve")}, "requestState": first["requestState"]}
    assert "error" in (await pair.other.modern("tools/call", bob, capabilities=ABLE, **params)).json()
    assert "result" in (await pair.other.modern("tools/call", ada, capabilities=ABLE, **params)).json()


@pytest.mark.parametrize("revision", ["2025-03-26", "2025-11-25"])
async def test_older_clients_without_sessions_are_served_by_whichever_is_next(
    make_pair: MakePair, revision: str
) -> None:
    async with make_pair(http_sessions="stateless") as pair:
        token = await pair.any.token()
        first = await pair.any.post(initialize(revision), token)
        assert first.json()["result"]["protocolVersion"] == revision
        done = {"jsonrpc": "2.0", "method": "notifications/initialized"}
        assert (await pair.any.post(done, token, mcp_protocol_version=revision)).status_code == 202
        for number in range(4):
            answer = await pair.any.post(call("say_again", name=f"{number}"), token, mcp_protocol_version=revision)
            assert text_of(answer.json()["result"]) == f"{number}"
        assert pair.both_served()


@pytest.mark.parametrize("mode", ["2026-07-28", "auto"])
async def test_the_official_client_works_through_the_proxy(pair: Pair, mode: Any) -> None:
    scripts.scripts["converse"] = converse
    token = await pair.any.token()
    async with connect(pair.any, token, mode) as client:
        assert client.protocol_version == "2026-07-28"
        assert "play_script" in {tool.name for tool in (await client.list_tools()).tools}
        answer = await client.call_tool("play_script", {"name": "converse"})
        assert answer.structured_content == {"text": SAID}
    assert pair.both_served()


async def test_a_session_that_reaches_the_wrong_server_is_not_found_and_starts_anew(pair: Pair) -> None:
    token = await pair.one.token()
    session = await pair.one.initialize(token)
    assert (await pair.other.call(session, "ping", token)).status_code == 404
    async with hearing(pair.other, session, token) as lost:
        assert lost.status == 404
    anew = await pair.other.initialize(token)
    assert (await pair.other.call(anew, "ping", token)).status_code == 200
    assert (await pair.one.call(session, "ping", token)).status_code == 200, "with sticky routing it goes on"


async def test_a_token_that_is_revoked_at_one_server_is_refused_by_the_other_within_a_second(pair: Pair) -> None:
    token = await pair.one.token()
    session = await pair.other.initialize(token)
    assert (await pair.other.modern("tools/call", token, name="ping", arguments={})).status_code == 200
    [known] = (await pair.one.fleet.call(pair.one.fleet.owner, "list_tokens")).tokens
    message, headers = modern("subscriptions/listen", notifications={"toolsListChanged": True})
    async with asking(pair.other, message, token, **headers) as new, hearing(pair.other, session, token) as old:
        await pair.one.fleet.call(pair.one.fleet.owner, "revoke_token", id=known.id)
        revoked = time.monotonic()
        while (await pair.other.modern("tools/call", token, name="ping", arguments={})).status_code == 200:
            assert time.monotonic() - revoked < 1.0
        assert (await pair.other.call(session, "ping", token)).status_code == 401
        for stream in (new, old):
            await stream.rest()


async def test_a_cut_stream_resumes_at_its_own_server_and_nowhere_else(pair: Pair) -> None:
    go_on = asyncio.Event()

    async def talk(ctx: Context) -> str:
        ctx.progress(1)
        await go_on.wait()
        ctx.progress(2)
        return "done"

    scripts.scripts["talk to one"] = talk
    token = await pair.one.token()
    session = await pair.one.initialize(token)
    message = call("play_script", name="talk to one")
    message["params"]["_meta"] = {"progressToken": 1}
    async with asking(pair.one, message, token, **on(session)) as stream:
        seen = [await stream.frame(), await stream.frame()]
    assert seen[-1] is not None
    async with hearing(pair.other, session, token, after=seen[-1].event) as stream:
        assert stream.status == 404
    async with hearing(pair.one, session, token, after=seen[-1].event) as stream:
        go_on.set()
        rest = [frame.message for frame in await stream.rest() if frame.message]
    assert rest[0]["params"]["progress"] == 2
    assert text_of(rest[1]["result"]) == "done"


async def test_a_right_changed_at_one_server_is_told_to_whom_it_concerns_at_the_other(pair: Pair) -> None:
    owner = pair.one.fleet.owner
    await pair.one.fleet.call(owner, "create_agent", name="ada", permissions=["ping"])
    token = await pair.one.token("ada")
    message, headers = modern("subscriptions/listen", notifications={"toolsListChanged": True})
    async with asking(pair.other, message, token, **headers) as stream:
        assert (await stream.next() or {})["method"] == "notifications/subscriptions/acknowledged"
        await pair.one.fleet.call(owner, "grant_tool", agent="ada", tool="say_again")
        assert (await stream.next() or {})["method"] == CHANGED

"""Who hears of changed rights over HTTP, in both eras: exactly those whom they concern."""

import contextlib
from collections.abc import AsyncIterator
from typing import Any

import pytest

from tests.server.streamable.conftest import on_one_database
from tests.server.streamable.tap import Tap, asking, hearing
from tests.server.streamable.web import LEGACY, Web, modern, until

CHANGED = "notifications/tools/list_changed"
# A change is told within a second; after this nothing more is to come.
QUIET_S = 1.2


@pytest.fixture
async def tokens(web: Web) -> dict[str, str]:
    """Tokens of two agents that may do next to nothing."""
    made: dict[str, str] = {}
    for name in ("ada", "bob"):
        await web.fleet.call(web.fleet.owner, "create_agent", name=name, permissions=["ping"])
        made[name] = await web.token(name)
    return made


@contextlib.asynccontextmanager
async def listening(web: Web, token: str) -> AsyncIterator[Tap]:
    """A stream of changes as the newest revision has it, acknowledged."""
    message, headers = modern("subscriptions/listen", notifications={"toolsListChanged": True})
    async with asking(web, message, token, **headers) as stream:
        assert stream.streams
        first = await stream.next()
        assert first is not None
        assert first["method"] == "notifications/subscriptions/acknowledged"
        yield stream


async def session_that_listed(web: Web, token: str) -> str:
    session = await web.initialize(token)
    assert await listed(web, session, token) == ["ping"]
    return session


async def listed(web: Web, session: str, token: str) -> list[str]:
    message = {"jsonrpc": "2.0", "id": 3, "method": "tools/list"}
    answer = await web.post(message, token, mcp_session_id=session, mcp_protocol_version=LEGACY)
    return [tool["name"] for tool in answer.json()["result"]["tools"]]


async def method_of(stream: Tap) -> Any:
    message = await stream.next()
    assert message is not None
    return message["method"]


async def test_a_change_is_told_on_every_stream_of_its_agent_and_on_nobody_elses(
    web: Web, tokens: dict[str, str]
) -> None:
    ada, bob = tokens["ada"], tokens["bob"]
    session, other = await session_that_listed(web, ada), await session_that_listed(web, bob)
    async with (
        hearing(web, session, ada) as old,
        hearing(web, other, bob) as old_of_bob,
        listening(web, ada) as new,
        listening(web, ada) as second,
        listening(web, bob) as new_of_bob,
    ):
        for stream in (old, old_of_bob):
            assert (await stream.frame()) is not None, "the frame to resume from"
        grant = await web.fleet.call(web.fleet.owner, "grant_tool", agent="ada", tool="say_again")
        for stream in (old, new, second):
            assert await method_of(stream) == CHANGED
        assert await listed(web, session, ada) == ["ping", "say_again"]
        await web.fleet.call(web.fleet.owner, "revoke_grant", id=grant.id)
        for stream in (old, new, second):
            assert await method_of(stream) == CHANGED
        assert await new_of_bob.silent(QUIET_S)
        assert await old_of_bob.silent(0.01)


@on_one_database
async def test_news_names_the_subscription_that_it_belongs_to(web: Web, tokens: dict[str, str]) -> None:
    async with listening(web, tokens["ada"]) as stream:
        await web.fleet.call(web.fleet.owner, "grant_tool", agent="ada", tool="say_again")
        message = await stream.next()
    assert message is not None
    assert message["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"] == 7


async def test_a_stream_of_a_revoked_token_hears_nothing_more(web: Web, tokens: dict[str, str]) -> None:
    session = await session_that_listed(web, tokens["ada"])
    known = (await web.fleet.call(web.fleet.owner, "list_tokens")).tokens
    [token] = [each for each in known if each.name == "t0"]
    async with hearing(web, session, tokens["ada"]) as old, listening(web, tokens["ada"]) as new:
        assert await old.frame() is not None
        await web.fleet.call(web.fleet.owner, "revoke_token", id=token.id)
        assert [frame.message for frame in await old.rest()] == [], "the session ends"
        ended = await new.rest()
    assert all(frame.message is None or "result" in frame.message or "error" in frame.message for frame in ended)
    await until(lambda: not web.hub.sessions, "nobody is looked after")
    assert (await web.call(session, "ping", tokens["ada"])).status_code == 401

"""Asking over HTTP: a client loses its connection and its session, but not what was answered meanwhile."""

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest
import sqlalchemy as sa

from rookery.asks.tables import asks
from tests.domains.owner.reception import QUESTION
from tests.platform_fixtures import Fleet
from tests.server.streamable.tap import Tap, request
from tests.server.streamable.web import LEGACY, MODERN, Web, call, events, modern, serving, until


@pytest.fixture
async def web(database_url: str, make_fleet: Callable[..., Fleet]) -> AsyncIterator[Web]:
    async with serving(make_fleet(database_url, extra={})) as running:
        yield running


def rows(web: Web) -> list[Any]:
    return list(web.platform.database.direct(lambda tx: tx.all(sa.select(asks))))


async def asked(web: Web, token: str, revision: str, **capabilities: Any) -> list[dict[str, Any]]:
    """All that a client is sent that asks, in a session of its own and without having noted anything before."""
    asks = {"question": QUESTION}
    if revision == LEGACY:
        answer = await web.call(await web.initialize(token, **capabilities), "ask_owner", token, **asks)
    else:
        answer = await web.modern("tools/call", token, capabilities=capabilities, name="ask_owner", arguments=asks)
    return events(answer.text) if "event-stream" in answer.headers["content-type"] else [answer.json()]


def told(messages: list[dict[str, Any]]) -> dict[str, Any]:
    return messages[-1]["result"]["structuredContent"]


@pytest.mark.parametrize("revision", [LEGACY, MODERN])
async def test_a_client_whose_person_fills_in_no_forms_is_not_asked(web: Web, revision: str) -> None:
    token = await web.token()
    asking = asyncio.create_task(asked(web, token, revision, elicitation={"url": {}}))
    (row,) = await until(lambda: rows(web), "it is asked")
    await web.fleet.call(web.fleet.owner, "answer_ask", ask_id=row.id, answer="green")
    messages = await asking
    assert told(messages)["answer"] == "green"
    assert [message for message in messages if "method" in message and "id" in message] == []


async def test_a_client_of_2025_that_comes_back_in_another_session_gets_its_answer(web: Web) -> None:
    token = await web.token()
    session = await web.initialize(token)
    on = {"mcp_session_id": session, "mcp_protocol_version": LEGACY}
    async with Tap(web.port) as tap:
        await tap.send(request(call("ask_owner", question=QUESTION), token, **on))
        (row,) = await until(lambda: rows(web), "it is asked")
    # The connection is gone, but not the call.
    await web.fleet.call(web.fleet.owner, "answer_ask", ask_id=row.id, answer="green")
    await until(lambda: rows(web)[0].told_ms is not None, "the answer was handed to nobody")
    async with asyncio.timeout(20):
        got = told(await asked(web, token, LEGACY))
    assert (got["ask_id"], got["answer"], len(rows(web))) == (row.id, "green", 1)


async def test_a_client_of_2026_that_comes_back_gets_its_answer(web: Web) -> None:
    token = await web.token()
    message, headers = modern("tools/call", name="ask_owner", arguments={"question": QUESTION})
    async with Tap(web.port) as tap:
        await tap.send(request(message, token, **headers))
        (row,) = await until(lambda: rows(web), "it is asked")
    await web.fleet.call(web.fleet.owner, "answer_ask", ask_id=row.id, answer="green")
    async with asyncio.timeout(20):
        got = told(await asked(web, token, MODERN))
    assert (got["ask_id"], got["answer"], len(rows(web))) == (row.id, "green", 1)

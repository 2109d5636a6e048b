"""Whether a call is answered with JSON or with an event stream, and what comes before its result."""

import asyncio
from typing import Any

import pytest

from rookery.core.context import Context
from rookery.server.streamable import exchange, streams
from tests.server.streamable import probes
from tests.server.streamable.conftest import MakeWeb
from tests.server.streamable.scripts import scripts
from tests.server.streamable.tap import Frame, asking
from tests.server.streamable.web import LEGACY, Web, call, modern, until

HANDSHAKE, NEWEST = "handshake", "2026-07-28"
ERAS = (HANDSHAKE, NEWEST)


async def calling(web: Web, era: str, tool: str, /, **arguments: Any) -> tuple[dict[str, Any], dict[str, str]]:
    """A call with a progress token and a log level in either era: the message and its headers."""
    meta = {"progressToken": "p1"}
    if era == NEWEST:
        meta["io.modelcontextprotocol/logLevel"] = "debug"
        return modern("tools/call", name=tool, arguments=arguments, _meta=meta)
    message = call(tool, **arguments)
    message["params"]["_meta"] = meta
    return message, {"mcp_session_id": await web.initialize(), "mcp_protocol_version": LEGACY}


def text_of(message: dict[str, Any] | None) -> str:
    assert message is not None
    assert "result" in message, message
    return message["result"]["structuredContent"]["text"]


@pytest.mark.parametrize("era", ERAS)
async def test_progress_and_log_lines_come_before_the_result(trusting: Web, era: str) -> None:
    async def talk(ctx: Context) -> str:
        ctx.progress(1, 2, "half")
        ctx.log("warning", "look out", "watch")
        ctx.progress(2, 2, "all")
        return "said"

    scripts["talk"] = talk
    message, headers = await calling(trusting, era, "play_script", name="talk")
    async with asking(trusting, message, **headers) as answer:
        assert answer.status == 200
        assert answer.streams
        told = [frame.message for frame in await answer.rest() if frame.message]
    assert [each.get("method") for each in told] == [
        "notifications/progress",
        "notifications/message",
        "notifications/progress",
        None,
    ]
    assert told[0]["params"] == {"progressToken": "p1", "progress": 1, "total": 2, "message": "half"}
    assert told[1]["params"] == {"level": "warning", "data": "look out", "logger": "watch"}
    assert told[3]["id"] == 7
    assert text_of(told[3]) == "said"


@pytest.mark.parametrize("era", ERAS)
async def test_many_reports_arrive_complete_and_in_order(trusting: Web, era: str) -> None:
    message, headers = await calling(trusting, era, "count_aloud", times=3000)
    async with asking(trusting, message, **headers) as answer:
        told = [frame.message for frame in await answer.rest() if frame.message]
    assert [each["params"]["progress"] for each in told[:-1]] == list(range(1, 3001))
    assert text_of(told[-1]) == "counted to 3000"


@pytest.mark.parametrize("era", ERAS)
async def test_a_short_call_with_nothing_to_say_is_answered_with_json(trusting: Web, era: str) -> None:
    message, headers = await calling(trusting, era, "say_again", name="echo")
    async with asking(trusting, message, **headers) as answer:
        assert answer.headers["content-type"] == "application/json"
        assert text_of(await answer.json()) == "echo"


@pytest.mark.parametrize("era", ERAS)
async def test_a_long_silent_call_becomes_a_stream_that_shows_signs_of_life(
    trusting: Web, era: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(exchange, "SILENCE_S", 0.1)
    monkeypatch.setattr(streams, "PING_S", 0.05)
    message, headers = await calling(trusting, era, "wait_for", name=f"long {era}")
    async with asking(trusting, message, **headers) as answer:
        assert answer.streams
        comments, last = 0, Frame()
        async for frame in answer:
            comments += frame.comment is not None
            if comments == 3 and frame.comment is not None:
                probes.waiting[f"long {era}"].set()
            last = frame
        assert comments >= 3
        assert text_of(last.message) == f"long {era} waited"


@pytest.mark.parametrize("era", ERAS)
async def test_a_client_that_takes_only_json_gets_json_and_no_reports(
    trusting: Web, era: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(exchange, "SILENCE_S", 0.1)

    async def talk_slowly(ctx: Context) -> str:
        ctx.progress(1)
        ctx.log("error", "nobody hears")
        await asyncio.sleep(0.2)
        return "said"

    scripts["talk_slowly"] = talk_slowly
    message, headers = await calling(trusting, era, "play_script", name="talk_slowly")
    async with asking(trusting, message, **headers, accept="application/json") as answer:
        assert answer.headers["content-type"] == "application/json"
        assert text_of(await answer.json()) == "said"


@pytest.mark.parametrize("era", ERAS)
async def test_a_client_that_takes_only_streams_gets_one_for_every_call(trusting: Web, era: str) -> None:
    message, headers = await calling(trusting, era, "say_again", name="echo")
    async with asking(trusting, message, **headers, accept="text/event-stream") as answer:
        assert answer.streams
        assert text_of((await answer.rest())[-1].message) == "echo"


@pytest.mark.parametrize("era", ERAS)
async def test_the_settings_can_say_json_for_everything(
    make_web: MakeWeb, era: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(exchange, "SILENCE_S", 0.1)
    async with make_web(auth_mode="none", http_answers="json") as web:
        message, headers = await calling(web, era, "count_aloud", times=3)
        async with asking(web, message, **headers) as answer:
            assert answer.headers["content-type"] == "application/json"
            assert text_of(await answer.json()) == "counted to 3"
        message, headers = await calling(web, era, "say_again", name="echo")
        async with asking(web, message, **headers, accept="text/event-stream") as answer:
            assert answer.streams, "a client that takes nothing else is not turned away"


async def test_the_settings_can_say_streams_but_refusals_stay_json(make_web: MakeWeb) -> None:
    async with make_web(auth_mode="none", http_answers="sse") as web:
        message, headers = await calling(web, NEWEST, "say_again", name="echo")
        async with asking(web, message, **headers) as answer:
            assert answer.streams
        unknown, headers = modern("no/such/method")
        async with asking(web, unknown, **headers) as answer:
            assert answer.status == 404
            assert (await answer.json())["error"]["code"] == -32601
        message, headers = await calling(web, NEWEST, "say_again", name="echo")
        async with asking(web, message, **headers, accept="application/json") as answer:
            assert answer.headers["content-type"] == "application/json"


async def test_a_protocol_error_after_reports_ends_the_stream_as_its_last_message(trusting: Web) -> None:
    async def ask_too_much(ctx: Context) -> str:
        ctx.progress(1)
        await asyncio.sleep(0)
        return str(await ctx.elicit("Who?", {"type": "object", "properties": {}}))

    scripts["ask_too_much"] = ask_too_much
    message, headers = await calling(trusting, NEWEST, "play_script", name="ask_too_much")
    async with asking(trusting, message, **headers) as answer:
        *_, last = await answer.rest()
    assert last.message is not None
    assert last.message["error"]["code"] == -32021


async def test_calls_of_one_session_run_side_by_side(trusting: Web) -> None:
    session = await trusting.initialize()
    headers = {"mcp_session_id": session, "mcp_protocol_version": LEGACY}
    waiting = [asyncio.create_task(trusting.call(session, "wait_for", name=f"side {number}")) for number in range(5)]
    await until(lambda: sum(name.startswith("side ") for name in probes.waiting) == 5, "five calls run")
    async with asking(trusting, call("say_again", name="quick"), **headers) as answer:
        assert text_of(await answer.json()) == "quick"
    for number in range(5):
        probes.waiting[f"side {number}"].set()
    texts = {text_of((await each).json()) for each in waiting}
    assert texts == {f"side {number} waited" for number in range(5)}

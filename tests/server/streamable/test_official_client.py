"""The SDK's own client over HTTP, in each of its modes: what it lists, calls, is told, is asked, and cancels."""

from typing import Any

import anyio
import mcp_types as types
import pytest
from mcp import MCPError

from rookery.core.context import Context
from tests.server.streamable import probes
from tests.server.streamable.conftest import on_one_database
from tests.server.streamable.conversation import SAID, converse
from tests.server.streamable.scripts import scripts
from tests.server.streamable.sdk import connect
from tests.server.streamable.web import Web, until

NEWEST = "2026-07-28"
MODES = {"2026-07-28": NEWEST, "legacy": "2025-11-25", "auto": NEWEST}
every_mode = pytest.mark.parametrize("mode", MODES)


@on_one_database
@every_mode
async def test_it_lists_and_calls_with_a_token(web: Web, mode: Any) -> None:
    token = await web.token()
    async with connect(web, token, mode) as client:
        assert client.protocol_version == MODES[mode]
        # Pinned to a revision without a handshake, it never asks.
        assert "You are default" in (client.instructions or "") or mode == NEWEST
        listed = {tool.name: tool for tool in (await client.list_tools()).tools}
        assert listed["ping"].annotations is not None
        assert listed["ping"].annotations.read_only_hint is True
        answer = await client.call_tool("ping", {})
        assert answer.structured_content is not None
        assert answer.structured_content["status"] == "pong"
        refused = await client.call_tool("create_agent", {"name": "eve"})
        assert refused.is_error
        with pytest.raises(MCPError, match="Unknown tool"):
            await client.call_tool("no_such_tool", {})
        invalid = await client.call_tool("say_again", {"name": 7})
        assert invalid.is_error
    await until(lambda: not len(web.endpoint.table), "it ends its session when it goes")


@on_one_database
async def test_without_a_token_it_is_told_so(web: Web) -> None:
    with pytest.raises((MCPError, ExceptionGroup)) as refusal:
        async with connect(web, None, NEWEST) as client:
            await client.list_tools()
    assert "token" in repr(refusal.value)


@every_mode
async def test_it_is_told_of_progress_and_answers_questions(trusting: Web, mode: Any) -> None:
    steps: list[tuple[float, float | None, str | None]] = []
    lines: list[Any] = []

    async def on_progress(progress: float, total: float | None, message: str | None) -> None:
        steps.append((progress, total, message))

    async def on_log(params: types.LoggingMessageNotificationParams) -> None:
        lines.append((params.level, params.data))

    async def talk_and_ask(ctx: Context) -> str:
        ctx.progress(1, 2, "asking")
        ctx.log("warning", "asking")
        return await converse(ctx)

    scripts["talk_and_ask"] = talk_and_ask
    async with connect(trusting, None, mode, logging_callback=on_log, log_level="info") as client:
        answer = await client.call_tool("play_script", {"name": "talk_and_ask"}, progress_callback=on_progress)
        assert answer.structured_content == {"text": SAID}
        await until(lambda: steps and lines, "it is told")
    assert set(steps) == {(1.0, 2.0, "asking")}
    assert set(lines) == {("warning", "asking")}


@pytest.mark.parametrize("mode", ["2026-07-28", "legacy"])
async def test_it_can_cancel_a_call(trusting: Web, mode: Any) -> None:
    name = f"official {mode}"
    async with connect(trusting, None, mode) as client:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(client.call_tool, "wait_for", {"name": name})
            await until(lambda: name in probes.waiting, "the call runs")
            tasks.cancel_scope.cancel()
        await until(lambda: probes.ended[name] == "cancelled", "the handler is told")
        assert not (await client.call_tool("ping", {})).is_error, "and goes on"


async def test_it_comes_back_for_the_rest_when_a_call_lets_its_connection_go(trusting: Web) -> None:
    steps: list[float] = []

    async def on_progress(progress: float, total: float | None, message: str | None) -> None:
        steps.append(progress)

    async def let_go_twice(ctx: Context) -> str:
        for step in (1, 2):
            ctx.progress(step)
            await ctx.release()
        ctx.progress(3)
        return "all of it"

    scripts["let_go_twice"] = let_go_twice
    async with connect(trusting, None, "legacy") as client:
        answer = await client.call_tool("play_script", {"name": "let_go_twice"}, progress_callback=on_progress)
        assert answer.structured_content == {"text": "all of it"}
        await until(lambda: len(steps) == 3, "it is told of every step")
    assert steps == [1, 2, 3]


@on_one_database
async def test_it_hears_of_changed_rights_by_listening(web: Web) -> None:
    owner = web.fleet.owner
    await web.fleet.call(owner, "create_agent", name="ada", permissions=["ping"])
    async with (
        connect(web, await web.token("ada"), NEWEST) as client,
        client.listen(tools_list_changed=True) as news,
    ):
        assert [tool.name for tool in (await client.list_tools()).tools] == ["ping"]
        await web.fleet.call(owner, "grant_tool", agent="ada", tool="say_again")
        await anext(aiter(news))
        assert [tool.name for tool in (await client.list_tools()).tools] == ["ping", "say_again"]
    await until(lambda: not web.endpoint.exchanges, "the stream ends with it")


@on_one_database
async def test_it_hears_of_changed_rights_on_its_open_stream(web: Web) -> None:
    owner = web.fleet.owner
    await web.fleet.call(owner, "create_agent", name="ada", permissions=["ping"])
    heard: list[str] = []

    async def on_message(message: Any) -> None:
        heard.append(type(message).__name__)

    async with connect(web, await web.token("ada"), "legacy", message_handler=on_message) as client:
        assert [tool.name for tool in (await client.list_tools()).tools] == ["ping"]
        await web.fleet.call(owner, "grant_tool", agent="ada", tool="say_again")
        await until(lambda: "ToolListChangedNotification" in heard, "it is told")
        assert [tool.name for tool in (await client.list_tools()).tools] == ["ping", "say_again"]

"""The official client against both modes: what it lists, calls, is told on the way, and cancels."""

import sys
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

import anyio
import mcp_types as types
import pytest
from mcp import ClientSession, MCPError, StdioServerParameters
from mcp.client.client import Client as AnyEraClient
from mcp.client.stdio import stdio_client

from tests.server.conftest import Place

PATIENCE_S = 30
Connect = Callable[..., AbstractAsyncContextManager[ClientSession]]


def parameters(place: Place, direct: bool, *flags: str) -> StdioServerParameters:
    mode = ["--direct"] if direct else []
    return StdioServerParameters(
        command=sys.executable,
        args=["-m", "rookery.entry", "stdio", *flags, *mode],
        env=place.environment(),
        cwd=place.home,
    )


@pytest.fixture
def connect(shared: Place, direct: bool) -> Connect:
    """A session of the SDK's own client, introduced."""

    @asynccontextmanager
    async def session(*flags: str, **callbacks: Any) -> AsyncIterator[ClientSession]:
        with (shared.home / "sdk.log").open("a") as log, anyio.fail_after(PATIENCE_S):
            async with (
                stdio_client(parameters(shared, direct, *flags), errlog=log) as (read, write),
                ClientSession(read, write, **callbacks) as client,
            ):
                await client.initialize()
                yield client

    return session


async def test_it_lists_and_calls(connect: Connect) -> None:
    async with connect() as client:
        listed = {tool.name: tool for tool in (await client.list_tools()).tools}
        assert listed["ping"].annotations is not None
        assert listed["ping"].annotations.read_only_hint is True
        # The client checks the answer against the listed output schema.
        answer = await client.call_tool("ping", {})
        assert answer.structured_content is not None
        assert answer.structured_content["status"] == "pong"
        refused = await client.call_tool("create_agent", {"name": "eve"})
        assert refused.is_error
        with pytest.raises(MCPError, match="Unknown tool"):
            await client.call_tool("no_such_tool", {})


@pytest.mark.parametrize("name", ["count_slowly", "count_in_thread"])
async def test_it_is_told_of_progress_and_status(connect: Connect, name: str) -> None:
    steps: list[tuple[float, float | None]] = []
    status: list[Any] = []

    async def on_progress(progress: float, total: float | None, message: str | None) -> None:
        steps.append((progress, total))

    async def on_log(params: types.LoggingMessageNotificationParams) -> None:
        status.append(params.data)

    async with connect(logging_callback=on_log) as client:
        answer = await client.call_tool(name, {"steps": 5}, progress_callback=on_progress)
        assert answer.structured_content == {"done": "5"}
        with anyio.fail_after(5):
            while len(steps) < 5 or not status:
                await anyio.sleep(0.01)
    assert sorted(steps) == [(float(step), 5.0) for step in range(1, 6)]
    assert status == ([f"step {step}" for step in range(1, 6)] if name == "count_slowly" else ["counted"])


async def test_it_can_cancel_a_call(connect: Connect) -> None:
    started = anyio.Event()

    async def on_log(params: types.LoggingMessageNotificationParams) -> None:
        started.set()

    async with connect(logging_callback=on_log) as client:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(client.call_tool, "spin_until_cancelled", {"text": "sdk"})
            await started.wait()
            tasks.cancel_scope.cancel()
        saved = await client.call_tool("save_note", {"text": "after"})
        assert saved.structured_content == {"done": "after"}
        notes = await client.call_tool("list_notes", {})
        assert notes.structured_content is not None
        assert "sdk" not in notes.structured_content["texts"]


async def test_it_answers_for_its_person_and_its_model(connect: Connect) -> None:
    async def person(context: Any, params: Any) -> types.ElicitResult:
        return types.ElicitResult(action="accept", content={"colour": "mauve"})

    async def model(context: Any, params: types.CreateMessageRequestParams) -> types.CreateMessageResult:
        said = types.TextContent(type="text", text="well")
        return types.CreateMessageResult(role="assistant", content=said, model="m", stop_reason="endTurn")

    async with connect(elicitation_callback=person, sampling_callback=model) as client:
        assert (await client.call_tool("ask_person", {})).structured_content == {"done": "mauve"}
        assert (await client.call_tool("ask_model", {})).structured_content == {"done": "well"}


async def test_it_finds_the_newest_revision_by_itself(shared: Place, direct: bool) -> None:
    async def person(context: Any, params: Any) -> types.ElicitResult:
        return types.ElicitResult(action="accept", content={"colour": "teal"})

    with (shared.home / "sdk.log").open("a") as log, anyio.fail_after(PATIENCE_S):
        transport = stdio_client(parameters(shared, direct), errlog=log)
        async with AnyEraClient(transport, elicitation_callback=person) as client:
            assert client.protocol_version == "2026-07-28"
            assert client.instructions is not None
            assert "You are default" in client.instructions
            assert "ping" in {tool.name for tool in (await client.list_tools()).tools}
            assert (await client.call_tool("ask_person", {})).structured_content == {"done": "teal"}

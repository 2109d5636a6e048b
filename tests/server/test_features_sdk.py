"""The official SDK's own clients against our resources and prompts, over stdio in both eras."""

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import mcp_types as types
import pytest
from mcp import ClientSession, MCPError
from mcp.client.client import Client as AnyEraClient
from mcp.client.stdio import stdio_client

from tests.server.conftest import Place
from tests.server.feature_place import feature_plugin as feature_plugin
from tests.server.test_sdk_client import PATIENCE_S, parameters


@pytest.fixture(scope="module")
def place(feature_plugin: Path) -> Iterator[Place]:
    place = Place(feature_plugin)
    try:
        place.server()
        yield place
    finally:
        place.close()


@asynccontextmanager
async def old_client(place: Place, direct: bool, **callbacks: Any) -> AsyncIterator[ClientSession]:
    with (place.home / "sdk.log").open("a") as log, anyio.fail_after(PATIENCE_S):
        async with (
            stdio_client(parameters(place, direct), errlog=log) as (read, write),
            ClientSession(read, write, **callbacks) as client,
        ):
            await client.initialize()
            yield client


@asynccontextmanager
async def new_client(place: Place, direct: bool, **callbacks: Any) -> AsyncIterator[AnyEraClient]:
    with (place.home / "sdk.log").open("a") as log, anyio.fail_after(PATIENCE_S):
        async with AnyEraClient(stdio_client(parameters(place, direct), errlog=log), **callbacks) as client:
            assert client.protocol_version == "2026-07-28"
            yield client


async def use_everything(client: ClientSession | AnyEraClient) -> None:
    resources = {each.uri for each in (await client.list_resources()).resources}
    assert {"rookery://server", "model://said"} <= resources
    assert "judge://report" not in resources
    templates = {each.uri_template for each in (await client.list_resource_templates()).resource_templates}
    assert "echo://{message}" in templates
    (part,) = (await client.read_resource("echo://hello")).contents
    assert isinstance(part, types.TextResourceContents)
    assert part.text == "hello"
    with pytest.raises(MCPError, match="Resource not found"):
        await client.read_resource("judge://report")
    assert "code_review" in {each.name for each in (await client.list_prompts()).prompts}
    got = await client.get_prompt("code_review", {"language": "rust"})
    assert len(got.messages) == 2
    with pytest.raises(MCPError, match="language"):
        await client.get_prompt("code_review", {"language": "cobol"})
    done = await client.complete(
        types.PromptReference(type="ref/prompt", name="code_review"), {"name": "language", "value": "r"}
    )
    assert done.completion.values == ["rust"]
    shown = await client.call_tool("show_everything", {"message": "x"})
    assert [each.type for each in shown.content][:3] == ["text", "image", "audio"]


@pytest.mark.parametrize("direct", [False, True], ids=["relay", "direct"])
async def test_a_client_of_the_handshake_era_uses_everything(place: Place, direct: bool) -> None:
    async with old_client(place, direct) as client:
        await use_everything(client)


@pytest.mark.parametrize("direct", [False, True], ids=["relay", "direct"])
async def test_a_client_of_the_newest_era_uses_everything(place: Place, direct: bool) -> None:
    async with new_client(place, direct) as client:
        await use_everything(client)


async def person(context: Any, params: Any) -> types.ElicitResult:
    return types.ElicitResult(action="accept", content={"name": "Ada"})


async def model(context: Any, params: types.CreateMessageRequestParams) -> types.CreateMessageResult:
    said = types.TextContent(type="text", text="well")
    return types.CreateMessageResult(role="assistant", content=said, model="m", stop_reason="endTurn")


async def folders(context: Any) -> types.ListRootsResult:
    return types.ListRootsResult(roots=[types.Root(uri="file:///home/ada/app")])  # pyright: ignore[reportArgumentType]


ABLE = {"elicitation_callback": person, "sampling_callback": model, "list_roots_callback": folders}


@pytest.mark.parametrize("connect", [old_client, new_client], ids=["2025-11-25", "2026-07-28"])
async def test_a_client_answers_round_after_round_by_itself(place: Place, connect: Any) -> None:
    async with connect(place, False, **ABLE) as client:
        answer = await client.call_tool("ask_in_rounds", {"message": "hi"})
        assert answer.structured_content == {"said": "hi ['Ada', 'Ada'] 1 well"}
        answer = await client.call_tool("ask_everything", {})
        assert answer.structured_content == {"said": "accept {'name': 'Ada'} well ['file:///home/ada/app']"}
        (part,) = (await client.read_resource("asked://hi")).contents
        assert part.text == "hi {'name': 'Ada'}"
        got = await client.get_prompt("asked_prompt", {"message": "hi"})
        assert got.messages[0].content.text == "hi {'name': 'Ada'}"

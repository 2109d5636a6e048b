"""A program of others gives its agent our tools by the SDK's plain `query`, whichever way it says its prompt."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from tests.clients.scripted_model import Say, Use

pytest.importorskip("claude_agent_sdk", reason="the extra is not installed: pip install 'rookery[claude]'")

from claude_agent_sdk import (
    ClaudeAgentOptions,
    Message,
    ResultMessage,
    SystemMessage,
    ToolResultBlock,
    UserMessage,
    query,
)

from rookery.server.inprocess import allowed_tool_names, create_tool_server
from tests.platform_fixtures import Fleet
from tests.runtimes.claude.conftest import Speaks
from tests.runtimes.claude.stage import PING

QUIET = {
    "DISABLE_TELEMETRY": "1",
    "DISABLE_AUTOUPDATER": "1",
    "DISABLE_ERROR_REPORTING": "1",
    "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
}


def options(fleet: Fleet, folder: Path, allowed: list[str], **server: Any) -> ClaudeAgentOptions:
    ours = create_tool_server(fleet.platform, fleet.actor(session="ses_query"), **server)
    return ClaudeAgentOptions(
        mcp_servers={ours["name"]: ours},  # pyright: ignore[reportArgumentType]
        allowed_tools=allowed,
        strict_mcp_config=True,
        setting_sources=[],
        tools=[],
        cwd=folder,
        env=QUIET,
    )


async def once(text: str) -> AsyncIterator[dict[str, Any]]:
    yield {"type": "user", "message": {"role": "user", "content": text}, "parent_tool_use_id": None}


def result(messages: list[Message]) -> ResultMessage:
    (found,) = [message for message in messages if isinstance(message, ResultMessage)]
    return found


def tool_results(messages: list[Message]) -> list[ToolResultBlock]:
    blocks = [block for message in messages if isinstance(message, UserMessage) for block in message.content]
    return [block for block in blocks if isinstance(block, ToolResultBlock)]


async def test_a_tool_that_is_not_allowed_in_advance_is_not_called(
    claude_fleet: Fleet, user: Path, speaks: Speaks
) -> None:
    speaks(Use(PING, {}), Say("no luck"))
    asked = options(claude_fleet, user, [])
    messages = [message async for message in query(prompt="ping", options=asked)]
    (refused,) = tool_results(messages)
    assert refused.is_error
    assert result(messages).permission_denials


@pytest.mark.parametrize("way", ["text", "stream"])
async def test_a_prompt_of_either_kind_gets_the_tools(
    claude_fleet: Fleet, user: Path, speaks: Speaks, way: str
) -> None:
    speaks(Use(PING, {}))
    allowed = allowed_tool_names(claude_fleet.platform, claude_fleet.actor(), existing=["Read"])
    prompt = "ping" if way == "text" else once("ping")
    messages = [message async for message in query(prompt=prompt, options=options(claude_fleet, user, allowed))]
    begun = next(message for message in messages if isinstance(message, SystemMessage) and message.subtype == "init")
    assert [(each["name"], each["status"]) for each in begun.data["mcp_servers"]] == [("rookery", "connected")]
    assert [block.is_error for block in tool_results(messages)] in ([None], [False])
    assert "pong" in (result(messages).result or "")


async def test_the_same_server_serves_one_query_after_another(claude_fleet: Fleet, user: Path, speaks: Speaks) -> None:
    speaks(Use(PING, {}))
    asked = options(claude_fleet, user, allowed_tool_names(claude_fleet.platform, claude_fleet.actor()))
    for _ in range(2):
        messages = [message async for message in query(prompt="ping", options=asked)]
        assert "pong" in (result(messages).result or "")


async def test_the_groups_and_the_name_are_the_programs_choice(claude_fleet: Fleet, user: Path, speaks: Speaks) -> None:
    model = speaks(Say("nothing to do"))
    asked = options(claude_fleet, user, [], domains=["system"], name="nest")
    assert [message async for message in query(prompt="look", options=asked)]
    system = {f"mcp__nest__{tool.name}" for tool in claude_fleet.platform.registry if tool.domain == "system"}
    offered = {name for name in model.offered[0] if name.startswith("mcp__")}
    assert offered == system

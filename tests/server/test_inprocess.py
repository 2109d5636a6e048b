"""The tools in process: what an agent is shown and may call there, whatever was handed in and changes afterwards."""

import asyncio
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from rookery.core.context import Context
from rookery.core.decide import decide
from rookery.core.errors import ConfigurationError
from rookery.core.tool import NoInput, ToolOutput, tool
from rookery.server.inprocess import CallStatus, allowed_tool_names, create_tool_server
from tests.platform_fixtures import Fleet
from tests.server import feature_trials
from tests.server.inprocess_client import connected


class Weather(ToolOutput):
    sky: str


def brought_along(**how: Any) -> Any:
    def weather(ctx: Context, args: NoInput) -> Weather:
        """Say how the sky looks. Use it in tests. Returns the sky. Does nothing else."""
        return Weather(sky="grey")

    declared: dict[str, Any] = {
        "title": "Weather", "effect": "read", "action": "weather:read", "tier": "observe", "group": "System",
        "profiles": "", "default": True, "inline": True,
    }  # fmt: skip
    return tool(**{**declared, **how})(weather)


class Waiting(ToolOutput):
    waited: bool


@tool(
    title="Wait", effect="external", action="weather:read", tier="observe", group="System", profiles="", default=True,
    open_world=False,
)  # fmt: skip
async def wait_for_rain(ctx: Context, args: NoInput) -> Waiting:
    """Wait until it rains. Use it in tests. Returns whether it did. Does nothing else."""
    ctx.emit_status("clouds gather")
    ctx.progress(1, 2, "drizzle")
    ctx.log("warning", "an umbrella is missing")
    return Waiting(waited=True)


@pytest.fixture
def fleet(prepared_database_url: str, make_fleet: Callable[..., Fleet]) -> Fleet:
    return make_fleet(prepared_database_url, extra={"features": feature_trials})


def error_of(answer: dict[str, Any]) -> dict[str, Any]:
    assert answer["result"]["isError"]
    return answer["result"]["_meta"]["rookery/error"]


async def test_what_is_out_of_scope_is_neither_listed_nor_called(fleet: Fleet) -> None:
    async with connected(create_tool_server(fleet.platform, fleet.actor())) as client:
        assert await client.names() == fleet.names(fleet.actor())
        assert "judge_things" not in await client.names()
        refused = error_of(await client.call("judge_things"))
        assert (refused["code"], refused["layer"]) == ("PERMISSION_DENIED", "role")
        assert (await client.call("no_such_tool"))["error"]["code"] == -32602


async def test_two_actors_are_shown_their_own_tools_each(fleet: Fleet) -> None:
    worker, judge = fleet.actor(profile="worker"), fleet.actor(profile="judge")
    async with (
        connected(create_tool_server(fleet.platform, worker)) as one,
        connected(create_tool_server(fleet.platform, judge)) as other,
    ):
        assert await one.names() == fleet.names(worker)
        assert await other.names() == fleet.names(judge)
        assert "judge_things" in await other.names()
        assert error_of(await one.call("judge_things"))["layer"] == "role"
        assert not (await other.call("judge_things"))["result"].get("isError")


async def test_rights_that_were_taken_away_are_gone_with_the_next_call(fleet: Fleet) -> None:
    async with connected(create_tool_server(fleet.platform, fleet.actor())) as client:
        assert not (await client.call("ping"))["result"].get("isError")
        await fleet.call(fleet.owner, "update_agent", agent="default", permissions=["get_server_info"])
        assert error_of(await client.call("ping"))["layer"] == "role"
        assert await client.names() == {"get_server_info"}


async def test_what_the_session_was_held_to_stays_whatever_its_agent_gets(fleet: Fleet) -> None:
    held = fleet.actor(within=frozenset({"ping"}))
    async with connected(create_tool_server(fleet.platform, held)) as client:
        assert await client.names() == {"ping"}
        await fleet.call(fleet.owner, "grant_tool", agent="default", tool="judge_things")
        assert await client.names() == {"ping"}
        assert error_of(await client.call("judge_things"))["layer"] == "allowed"


async def test_a_stricter_mode_counts_from_the_next_call_on(fleet: Fleet) -> None:
    config = create_tool_server(fleet.platform, fleet.actor())
    async with connected(config) as client:
        assert not (await client.call("echo_message", message="a"))["result"].get("isError")
        config["instance"].actor = replace(config["instance"].actor, mode="ask")
        assert error_of(await client.call("echo_message", message="b"))["code"] == "APPROVAL_REQUIRED"
        config["instance"].actor = replace(config["instance"].actor, mode="autonomy")
        assert not (await client.call("echo_message", message="c"))["result"].get("isError")


async def test_a_wider_mode_is_no_wider_than_the_agents_own(fleet: Fleet) -> None:
    await fleet.call(fleet.owner, "update_agent", agent="default", mode="ask")
    actor = replace(fleet.actor(), mode="autonomy")
    async with connected(create_tool_server(fleet.platform, actor)) as client:
        assert error_of(await client.call("echo_message", message="a"))["code"] == "APPROVAL_REQUIRED"


async def test_a_person_stays_who_it_is(fleet: Fleet) -> None:
    async with connected(create_tool_server(fleet.platform, fleet.owner)) as client:
        assert await client.names() == fleet.names(fleet.owner)
        assert not (await client.call("list_agents"))["result"].get("isError")


async def test_domains_limit_to_their_tools(fleet: Fleet) -> None:
    config = create_tool_server(fleet.platform, fleet.actor(), domains=["system"])
    async with connected(config) as client:
        listed = await client.names()
        assert "ping" in listed
        assert {fleet.platform.registry.require(name).domain for name in listed} == {"system"}
        assert error_of(await client.call("echo_message", message="a"))["layer"] == "allowed"
        resources = (await client.request("resources/list"))["result"]["resources"]
        assert not any(each["uri"].startswith("echo:") for each in resources)
    owners = create_tool_server(fleet.platform, fleet.owner, domains=["system"])
    async with connected(owners) as client:
        assert await client.names() == listed


def test_a_domain_that_is_not_there_is_named(fleet: Fleet) -> None:
    with pytest.raises(ConfigurationError, match="no feature group sistem") as refused:
        create_tool_server(fleet.platform, fleet.actor(), domains=["sistem"])
    assert "system" in (refused.value.hint or "")


async def test_extra_tools_pass_the_same_filters(fleet: Fleet) -> None:
    def offer(**how: Any) -> dict[str, Any]:
        return create_tool_server(fleet.platform, fleet.actor(), extra_tools=[brought_along(**how)])

    for hidden in ({"default": False}, {"tier": "privileged"}, {"principals": "people"}, {"requires": "a comet"}):
        async with connected(offer(**hidden)) as client:
            assert "weather" not in await client.names(), hidden
            answer = await client.call("weather")
            assert "error" in answer or answer["result"]["isError"], hidden
    async with connected(offer()) as client:
        assert "weather" in await client.names()
        assert (await client.call("weather"))["result"]["structuredContent"] == {"sky": "grey"}
    assert "weather" not in fleet.platform.registry, "they belong to that server alone"


async def test_extra_tools_come_along_with_any_domains(fleet: Fleet) -> None:
    config = create_tool_server(fleet.platform, fleet.actor(), extra_tools=[brought_along()], domains=["system"])
    async with connected(config) as client:
        assert {"weather", "ping"} <= await client.names()
        assert not (await client.call("weather"))["result"].get("isError")


def test_an_extra_tool_cannot_take_the_place_of_one_of_ours(fleet: Fleet) -> None:
    with pytest.raises(ConfigurationError, match="ping"):
        create_tool_server(
            fleet.platform, fleet.actor(), extra_tools=[replace(brought_along(), name="ping", right="ping")]
        )


async def test_it_can_be_connected_as_often_as_somebody_likes(fleet: Fleet) -> None:
    config = create_tool_server(fleet.platform, fleet.actor())
    for _ in range(2):
        async with connected(config) as client, connected(config) as another:
            answers = await asyncio.gather(client.call("ping"), another.call("ping"))
            assert [answer["result"]["structuredContent"]["status"] for answer in answers] == ["pong", "pong"]


async def test_an_agent_is_told_who_it_is(fleet: Fleet) -> None:
    config = create_tool_server(fleet.platform, fleet.actor(profile="worker"))
    async with connected(config) as client:
        told = await client.initialize()
    assert told["serverInfo"]["name"] == "rookery"
    assert "as worker" in told["instructions"]


async def test_results_of_every_kind_and_resources_arrive(fleet: Fleet) -> None:
    async with connected(create_tool_server(fleet.platform, fleet.actor())) as client:
        shown = (await client.call("show_everything", message="look"))["result"]
        assert [block["type"] for block in shown["content"]] == [
            "text", "image", "audio", "resource", "resource", "resource_link",
        ]  # fmt: skip
        assert shown["structuredContent"] == {"said": "look"}
        read = await client.request("resources/read", uri="echo://hello")
        assert read["result"]["contents"][0]["uri"] == "echo://hello"


async def test_what_a_running_call_says_of_itself_goes_to_the_program(fleet: Fleet) -> None:
    said: list[CallStatus] = []
    config = create_tool_server(fleet.platform, fleet.actor(), extra_tools=[wait_for_rain], on_status=said.append)
    async with connected(config) as client:
        await client.call("wait_for_rain", {"claudecode/toolUseId": "toolu_7"})
        await client.call("wait_for_rain")
    assert said[:3] == [
        CallStatus("wait_for_rain", "clouds gather", "toolu_7"),
        CallStatus("wait_for_rain", "drizzle", "toolu_7", 1, 2),
        CallStatus("wait_for_rain", "an umbrella is missing", "toolu_7"),
    ]
    assert {status.call_id for status in said[3:]} == {None}


def test_in_mode_ask_no_tool_of_ours_is_allowed_in_advance(fleet: Fleet) -> None:
    asks = replace(fleet.actor(), mode="ask")
    assert allowed_tool_names(fleet.platform, asks) == []
    assert allowed_tool_names(fleet.platform, asks, existing=["Read", "Read"]) == ["Read"]


def test_what_nobody_has_to_be_asked_for_joins_the_list_that_is_there(fleet: Fleet) -> None:
    actor = replace(fleet.actor(), mode="act")
    names = allowed_tool_names(fleet.platform, actor, existing=["Read", "mcp__rookery__ping"])
    free = {tool.name for tool in fleet.platform.registry if decide(actor, tool).outcome == "allow"}
    assert names[:2] == ["Read", "mcp__rookery__ping"]
    assert set(names[1:]) == {f"mcp__rookery__{name}" for name in free}
    assert len(names) == len(set(names))
    system = [f"mcp__nest__{tool.name}" for tool in fleet.platform.registry if tool.domain == "system"]
    for tier, more in (("act", ["mcp__nest__weather"]), ("destructive", [])):
        offered = {"extra_tools": [brought_along(tier=tier)], "domains": ["system"], "name": "nest"}
        assert allowed_tool_names(fleet.platform, actor, **offered) == [*system, *more]

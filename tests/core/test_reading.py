"""Reading resources and having prompts, as any caller does: the rights of a tool, one record, one form of answer."""

from collections.abc import Callable
from typing import Any

import pytest

from rookery.core.actor import Actor
from rookery.core.errors import (
    Conflict,
    InternalError,
    InvalidParams,
    NotFound,
    PermissionDenied,
    RookeryError,
    SerializationError,
)
from tests.platform_fixtures import Fleet
from tests.server import feature_trials


@pytest.fixture
def features(database_url: str, make_fleet: Callable[..., Fleet]) -> Fleet:
    return make_fleet(database_url, extra={"features": feature_trials})


async def text(fleet: Fleet, actor: Actor, uri: str) -> Any:
    (part,) = await fleet.platform.calls.read(actor, uri)
    return part.text


async def prompted(fleet: Fleet, actor: Actor, name: str, **arguments: str) -> str:
    messages = await fleet.platform.calls.prompt(actor, name, arguments)
    return str(messages[0].content)


def records(fleet: Fleet) -> list[tuple[str, str, str | None, str | None]]:
    statement = "SELECT tool, outcome, code, layer FROM audit_log ORDER BY id"
    rows = fleet.platform.database.direct(lambda tx: list(tx.connection.exec_driver_sql(statement)))
    return [(row.tool, row.outcome, row.code, row.layer) for row in rows]


def names(fleet: Fleet, actor: Actor) -> set[str]:
    registry = fleet.platform.registry
    return {each.tool.name for each in (*registry.resources(actor), *registry.prompts(actor))}


async def token(fleet: Fleet, *scopes: str) -> Actor:
    made = await fleet.call(fleet.owner, "create_token", name="t", agent="default", scopes=list(scopes))
    return fleet.actor(token=made.secret)


async def test_a_profile_that_lacks_the_tool_lacks_what_needs_it(features: Fleet) -> None:
    worker, judge = features.actor(profile="worker"), features.actor(profile="judge")
    for actor, uri, name in ((worker, "judge://report", "judgement"), (judge, "echo://x", "asked_prompt")):
        with pytest.raises(PermissionDenied, match="resource:") as caught:
            await text(features, actor, uri)
        assert caught.value.layer == "role"
        with pytest.raises(PermissionDenied, match="prompt:"):
            await prompted(features, actor, name, message="x")
    assert {"resource:echo", "prompt:code_review"} <= names(features, worker)
    assert not {"resource:report", "prompt:judgement"} & names(features, worker)
    assert {"resource:report", "prompt:judgement"} <= names(features, judge)
    assert not {"resource:echo", "prompt:code_review"} & names(features, judge)
    assert await text(features, judge, "judge://report") == feature_trials.SECRET


async def test_a_list_a_scope_file_and_a_disallowed_tool_count_for_what_needs_the_tool(features: Fleet) -> None:
    await features.call(features.owner, "create_agent", name="ada", permissions=["ping"])
    ada = features.actor(agent="ada")
    assert names(features, ada) == {"prompt:who_am_i"}
    narrowed = features.actor(scope_file=frozenset({"get_server_info"}))
    assert names(features, narrowed) == {"resource:server"}
    await features.call(features.owner, "set_profile_tools", profile="worker", disallowed=["echo_message"])
    worker = features.actor(profile="worker")
    with pytest.raises(PermissionDenied) as caught:
        await text(features, worker, "echo://x")
    assert caught.value.layer == "disallowed"


async def test_a_grant_of_the_tool_brings_what_needs_it(features: Fleet) -> None:
    await features.call(features.owner, "create_agent", name="ada", permissions=[])
    with pytest.raises(PermissionDenied):
        await text(features, features.actor(agent="ada"), "echo://x")
    await features.call(features.owner, "grant_tool", agent="ada", tool="echo_message")
    assert await text(features, features.actor(agent="ada"), "echo://x") == "x"


COVERED = [
    ("resource:echo", "echo://x"),
    ("resource:echo:read", "echo://x"),
    ("resource:echo:*", "echo://x"),
    ("resource:*", "echo://x"),
    ("features:use", "echo://x"),
    ("features:*", "echo://x"),
    ("*", "echo://x"),
]


@pytest.mark.parametrize(("scope", "uri"), COVERED)
async def test_a_scope_that_covers_a_resource_lets_it_be_read(features: Fleet, scope: str, uri: str) -> None:
    assert await text(features, await token(features, scope), uri) == "x"


@pytest.mark.parametrize(
    "scope",
    ["resource:echo:write", "resource:ech", "resource:echo2", "resource:file", "tool:echo", "tool:echo_message",
     "tool:*", "prompt:*", "prompt:echo", "other:use", "resource", "admin"],
)  # fmt: skip
async def test_a_scope_that_does_not_cover_a_resource_is_refused(features: Fleet, scope: str) -> None:
    actor = await token(features, scope)
    with pytest.raises(PermissionDenied) as caught:
        await text(features, actor, "echo://x")
    assert caught.value.layer == "scopes"
    assert "resource:echo" not in names(features, actor)


async def test_a_resource_may_ask_for_more_scopes_than_its_tool(features: Fleet) -> None:
    await features.call(features.owner, "grant_tool", agent="default", tool="judge_things")
    with pytest.raises(PermissionDenied, match="features:judge"):
        await text(features, await token(features, "features:use"), "judge://report")
    for scopes in (("features:use", "features:judge"), ("resource:report:read",)):
        assert await text(features, await token(features, *scopes), "judge://report") == feature_trials.SECRET


async def test_a_prompt_is_covered_by_its_own_scopes(features: Fleet) -> None:
    for scope in ("prompt:topic_overview", "prompt:topic_overview:*", "prompt:*", "features:use"):
        assert await prompted(features, await token(features, scope), "topic_overview") == "none"
    for scope in ("resource:*", "tool:*", "prompt:code_review", "prompt:topic_overview:read"):
        with pytest.raises(PermissionDenied):
            await prompted(features, await token(features, scope), "topic_overview")


async def test_a_token_never_reads_more_than_its_agent(features: Fleet) -> None:
    await features.call(features.owner, "create_agent", name="ada", permissions=["ping"])
    made = await features.call(features.owner, "create_token", name="t", agent="ada", scopes=["resource:*", "*"])
    with pytest.raises(PermissionDenied) as caught:
        await text(features, features.actor(token=made.secret), "echo://x")
    assert caught.value.layer == "role"


async def test_every_reading_is_recorded_under_its_own_name(features: Fleet) -> None:
    actor = features.actor()
    await text(features, actor, "echo://x")
    await prompted(features, actor, "topic_overview")
    for uri in ("judge://report", "nowhere://x", "broken://bug", "broken://nothing"):
        with pytest.raises(RookeryError):
            await text(features, actor, uri)
    with pytest.raises(NotFound):
        await prompted(features, actor, "no_such")
    assert records(features) == [
        ("resource:echo", "allowed", None, None),
        ("prompt:topic_overview", "allowed", None, None),
        ("resource:report", "refused", "PERMISSION_DENIED", "role"),
        ("resource:unknown", "refused", "NOT_FOUND", "available"),
        ("resource:broken", "allowed", None, None),
        ("resource:broken", "failed", "INTERNAL_ERROR", None),
        ("resource:broken", "invalid", "INVALID_PARAMS", None),
        ("prompt:no_such", "refused", "NOT_FOUND", "available"),
    ]


async def test_a_handler_gives_text_bytes_models_or_several_contents(features: Fleet) -> None:
    calls, actor = features.platform.calls, features.actor()
    (said,) = await calls.read(actor, "echo://hello")
    assert (said.text, said.uri, said.mime_type) == ("hello", "echo://hello", "text/plain")
    (raw,) = await calls.read(actor, "files:///a/b")
    assert (raw.text, raw.mime_type) == (b"a/b", "application/octet-stream")
    (model,) = await calls.read(actor, "model://said")
    assert (model.text, model.mime_type) == ('{"said":"modelled"}', "application/json")
    first, second = await calls.read(actor, "parts://x")
    assert (first.uri, second.uri, second.text) == ("parts://x", "parts://blob", b"\x00")


async def test_a_handler_that_fails_tells_nothing_of_it(features: Fleet) -> None:
    actor = features.actor()
    failures = {"bug": InternalError, "exit": InternalError, "type": SerializationError, "conflict": Conflict}
    for how, kind in failures.items():
        for attempt in (text(features, actor, f"broken://{how}"), prompted(features, actor, "broken_prompt", how=how)):
            with pytest.raises(kind) as caught:
                await attempt
            assert feature_trials.SECRET not in str(caught.value)


async def test_a_resource_cannot_write(features: Fleet) -> None:
    with pytest.raises(RookeryError):
        await text(features, features.actor(), "broken://write")
    assert await prompted(features, features.actor(), "topic_overview") == "none"


async def test_arguments_that_do_not_fit_name_their_field(features: Fleet) -> None:
    actor = features.actor()
    with pytest.raises(InvalidParams, match="message"):
        await text(features, actor, "echo://" + "x" * 41)
    for arguments in ({"language": "cobol"}, {}, {"language": "php", "depth": "9"}, {"language": "php", "x": "1"}):
        with pytest.raises(InvalidParams, match=r"language|depth|x"):
            await prompted(features, actor, "code_review", **arguments)


async def test_the_text_of_prompt_arguments_is_read(features: Fleet) -> None:
    said = await prompted(features, features.actor(), "code_review", language="rust", strict="true", depth="3")
    assert said == "Review this rust, args.strict=True, args.depth=3, everything."


async def test_a_limit_on_calls_counts_for_resources_too(database_url: str, make_fleet: Callable[..., Fleet]) -> None:
    limited = make_fleet(database_url, extra={"features": feature_trials}, rate_calls_per_minute=2)
    actor = limited.actor()
    await text(limited, actor, "echo://x")
    await prompted(limited, actor, "topic_overview")
    with pytest.raises(RookeryError, match="limited"):
        await text(limited, actor, "echo://x")


async def test_reads_and_prompts_are_counted_by_their_kind(features: Fleet) -> None:
    actor = features.actor()
    await text(features, actor, "echo://hello")
    await prompted(features, actor, "topic_overview")
    with pytest.raises(RookeryError):
        await text(features, actor, "broken://bug")
    shown = features.platform.metrics.render()
    assert 'mcp_resource_reads_total{resource="echo",success="true"} 1' in shown
    assert 'mcp_resource_reads_total{resource="broken",success="false"} 1' in shown
    assert 'mcp_resource_errors_total{resource="broken",code="INTERNAL_ERROR"} 1' in shown
    assert 'mcp_resource_output_bytes_total{resource="echo"} 5' in shown
    assert 'mcp_prompt_generations_total{prompt="topic_overview",success="true"} 1' in shown
    assert 'mcp_resource_duration_milliseconds_count{resource="echo"} 1' in shown
    assert "mcp_tool_calls_total{" not in shown
    assert "\nmcp_requests_active 0\n" in shown


async def test_the_product_says_what_it_is_and_who_asks(features: Fleet) -> None:
    assert '"product":"Rookery"' in await text(features, features.actor(), "rookery://server")
    said = await prompted(features, features.actor(profile="worker", issue=await features.issue()), "who_am_i")
    assert said.startswith("You are default, in project default.\nYou work as worker.\nYou work on issue DEF-001.")
    assert "- echo_message: " in said
    assert "judge_things" not in said
    await features.call(features.owner, "create_agent", name="eve", permissions=[])
    for attempt in (
        text(features, features.actor(agent="eve"), "rookery://server"),
        prompted(features, features.actor(agent="eve"), "who_am_i"),
    ):
        with pytest.raises(PermissionDenied):
            await attempt

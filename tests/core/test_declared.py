"""Declaring resources and prompts: what is refused at the start, and what a registry then knows."""

from collections.abc import Callable
from types import ModuleType
from typing import Any, Literal

import pytest
from pydantic import Field

from rookery.core.context import Context
from rookery.core.decide import decide
from rookery.core.errors import ConfigurationError
from rookery.core.lint import lint_declared
from rookery.core.prompt import Prompt, prompt
from rookery.core.registry import Registry
from rookery.core.resource import Entry, Resource, resource
from rookery.core.tool import NoInput, Tool, ToolInput
from rookery.plugins import load_domains
from tests.core.random_cases import Cases


class Named(ToolInput):
    name: str = Field(description="Which one.")
    size: Literal["small", "big"] = Field("small", description="How big.")


class Undescribed(ToolInput):
    name: str


def said(ctx: Context, args: Named) -> str:
    """Says something."""
    return args.name


def plain(ctx: Context, args: NoInput) -> str:
    """Says something."""
    return "plain"


async def outside(ctx: Context, args: Named) -> str:
    """Says something from elsewhere."""
    return args.name


def undescribed(ctx: Context, args: Undescribed) -> str:
    return args.name


def loose(ctx: Context, args: str) -> str:
    return args


def no_entries(ctx: Context) -> list[Entry]:
    return []


def at(uri: str = "a://{name}", handler: Callable[..., Any] = said, right: str = "tool_0", **how: Any) -> Resource:
    return resource(uri, title="Something", right=right, **how)(handler)


def asks(handler: Callable[..., Any] = said, right: str = "tool_0", **how: Any) -> Prompt:
    return prompt(title="Something", right=right, **how)(handler)


@pytest.fixture
def registry() -> Registry:
    made = Registry()
    for tool in Cases(5).tools(40):
        made.add(tool, "random")
    return made


WRONG: dict[str, tuple[Callable[[], Any], str]] = {
    "a variable that is no field": (lambda: at("a://{other}"), "variables"),
    "a field that is no variable": (lambda: at("a://{size}"), "variables"),
    "entries of a single address": (lambda: at("a://b", plain, entries=no_entries), "entries"),
    "a completer of nothing": (lambda: at(complete={"other": said}), "other"),
    "a completer of no argument": (lambda: asks(complete={"other": said}), "other"),
    "an async handler inline": (lambda: asks(outside, inline=True), "inline"),
    "arguments that are no model": (lambda: asks(loose), "ToolInput"),
}


@pytest.mark.parametrize("what", WRONG)
def test_a_declaration_is_refused_for(what: str) -> None:
    declare, named = WRONG[what]
    with pytest.raises(TypeError, match=named):
        declare()


def test_an_async_handler_is_external_and_every_other_reads(registry: Registry) -> None:
    assert (at().effect, asks().effect) == ("read", "read")
    assert (at("b://{name}", outside).effect, asks(outside).effect) == ("external", "external")


def test_a_right_that_no_tool_has_stops_the_start_and_names_both(registry: Registry) -> None:
    registry.add_resource(at(right="tool_x"), "mine")
    with pytest.raises(ConfigurationError, match=r"said .*tool_x") as caught:
        registry.seal()
    assert "tool_0" in (caught.value.hint or "")


def test_two_of_one_name_stop_the_start(registry: Registry) -> None:
    registry.add_resource(at(), "mine")
    registry.add_prompt(asks(), "mine")
    with pytest.raises(ConfigurationError, match="resource said is declared twice"):
        registry.add_resource(at("b://{name}"), "other")
    with pytest.raises(ConfigurationError, match="prompt said is declared twice"):
        registry.add_prompt(asks(), "other")


def test_two_at_the_same_addresses_stop_the_start(registry: Registry) -> None:
    registry.add_resource(at("a://{name}"), "mine")
    with pytest.raises(ConfigurationError, match="declared twice"):
        registry.add_resource(at("a://{name}", outside), "other")


def test_tools_are_still_what_a_registry_iterates_and_lists(registry: Registry) -> None:
    before = [tool.name for tool in registry]
    registry.add_resource(at(), "mine")
    registry.add_prompt(asks(), "mine")
    registry.seal()
    assert [tool.name for tool in registry] == before
    assert len(registry) == len(before)
    assert registry.get("resource:said") is None
    assert registry.get("said") is None
    assert "prompt:said" not in registry


def test_a_record_has_the_name_of_its_kind_and_the_right_of_its_tool(registry: Registry) -> None:
    registry.add_resource(at(scopes=("extra:read",)), "mine")
    registry.add_prompt(asks(), "mine")
    [found], [asked] = registry.resources(), registry.prompts()
    right = registry.require("tool_0")
    assert (found.tool.name, found.tool.right, found.tool.kind) == ("resource:said", "tool_0", "resource")
    assert (asked.tool.name, asked.tool.right, asked.tool.kind) == ("prompt:said", "tool_0", "prompt")
    assert found.tool.scopes == (*right.scopes, "extra:read")
    assert found.tool.operation == "resources/read resource:said"
    assert asked.tool.operation == "prompts/get prompt:said"
    assert found.domain == found.tool.domain == "mine"


def test_nobody_reaches_more_through_a_resource_than_through_its_tool() -> None:
    cases = Cases(42)
    tools = cases.tools(60)
    registry = Registry()
    for tool in tools:
        registry.add(tool, "random")
        registry.add_resource(renamed(at, tool, plain, uri=f"a://{tool.name}"), "mine")
        registry.add_prompt(renamed(asks, tool, plain), "mine")
        registry.add_resource(renamed(at, tool, outside, uri=f"b://{tool.name}/{{name}}", suffix="_out"), "mine")
    compared = 0
    for actor in cases.actors(400, [tool.name for tool in tools]):
        for declared in (*registry.resources(), *registry.prompts()):
            right = registry.require(declared.right)
            if decide(actor, declared.tool).listed:
                assert decide(actor, right).listed, (actor, right)
                compared += 1
    assert compared > 1000


def renamed(declare: Callable[..., Any], tool: Tool, handler: Callable[..., Any], suffix: str = "", **how: Any) -> Any:
    def own(ctx: Context, args: NoInput) -> str:
        return ""

    async def own_outside(ctx: Context, args: Named) -> str:
        return ""

    made = own_outside if handler is outside else own
    made.__name__ = f"{tool.name}{suffix}"
    return declare(handler=made, right=tool.name, **how)


def test_an_address_finds_its_resource(registry: Registry) -> None:
    registry.add_resource(at("a://{name}"), "mine")
    registry.add_resource(at("a://exactly", plain), "mine")
    found = registry.find_resource("a://exactly")
    assert found is not None
    assert (found[0].name, found[1]) == ("plain", {})
    found = registry.find_resource("a://else")
    assert found is not None
    assert (found[0].name, found[1]) == ("said", {"name": "else"})
    for nothing in ("a://", "b://else", "a", "", "a://x/y", "a://..", "\0"):
        assert registry.find_resource(nothing) is None


def test_the_linter_wants_titles_descriptions_and_described_fields() -> None:
    assert lint_declared(at()) == []
    faults = lint_declared(resource("a://{name}", title="", right="tool_0")(undescribed))
    assert len(faults) == 3
    assert any("title" in fault for fault in faults)
    assert any("description does not say" in fault for fault in faults)
    assert any("field name has no description" in fault for fault in faults)


def test_the_product_declares_nothing_badly() -> None:
    registry = load_domains(plugins=False).registry
    declared = [*registry.resources(), *registry.prompts()]
    assert [fault for each in declared for fault in lint_declared(each)] == []
    assert {each.tool.name for each in declared} >= {"resource:server", "prompt:who_am_i"}


def test_a_module_brings_only_what_it_declares_itself(registry: Registry) -> None:
    module = ModuleType("borrowed")
    vars(module).update(said=at(), asked=asks())
    registry.add_module(module, "mine")
    assert registry.resources() == []
    assert registry.prompts() == []

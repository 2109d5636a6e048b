"""Tools as a client is shown them: complete, and without what goes without saying."""

from dataclasses import replace
from typing import Any

import pytest

from rookery.core.registry import Registry
from rookery.core.wire import wire_form
from rookery.domains.system.tools import get_server_info, ping
from rookery.plugins import load_domains


@pytest.fixture(scope="module")
def product() -> Registry:
    return load_domains(plugins=False).registry


def field(**more: Any) -> dict[str, Any]:
    return {"type": "object", "properties": {"some": {"type": "string", "description": "Some.", **more}}}


def test_a_title_that_spells_the_name_again_is_not_sent() -> None:
    assert "title" not in wire_form(get_server_info)
    assert "title" not in wire_form(ping)


def test_a_title_that_says_more_is_sent() -> None:
    assert wire_form(replace(ping, title="Are you there?"))["title"] == "Are you there?"


@pytest.mark.parametrize("empty", ["", False, 0, [], {}])
def test_a_default_that_is_empty_is_not_sent(empty: object) -> None:
    shown = wire_form(replace(ping, input_schema=field(default=empty)))
    assert shown["inputSchema"] == field()


@pytest.mark.parametrize("default", ["some", True, 50, ["*"]])
def test_any_other_default_is_sent(default: object) -> None:
    shown = wire_form(replace(ping, input_schema=field(default=default)))
    assert shown["inputSchema"] == field(default=default)


def test_that_a_text_must_not_be_empty_is_not_sent_and_a_longer_minimum_is() -> None:
    shown = wire_form(replace(ping, input_schema=field(minLength=1)))
    assert shown["inputSchema"] == field()
    shown = wire_form(replace(ping, input_schema=field(minLength=2)))
    assert shown["inputSchema"] == field(minLength=2)


def test_limits_of_which_whoever_goes_beyond_is_told_are_not_sent() -> None:
    for limit in ({"maxLength": 9}, {"maxItems": 9}, {"minimum": 0}, {"minimum": 1}, {"maximum": 1_000_000}):
        assert wire_form(replace(ping, input_schema=field(**limit)))["inputSchema"] == field()
    for limit in ({"minimum": 2}, {"maximum": 9}, {"maximum": 999_999}, {"minItems": 1}):
        assert wire_form(replace(ping, input_schema=field(**limit)))["inputSchema"] == field(**limit)


def test_that_a_result_is_an_object_goes_without_saying() -> None:
    for outline in ({"type": "object"}, {"type": "object", "properties": {}}):
        assert "outputSchema" not in wire_form(replace(ping, output_schema=outline))
    told = {"type": "object", "properties": {"status": {}}}
    assert wire_form(replace(ping, output_schema=told))["outputSchema"] == told


def test_nested_arguments_are_shown_in_the_same_way() -> None:
    def nesting(some: dict[str, Any]) -> dict[str, Any]:
        several = {"type": "array", "items": some}
        return {"type": "object", "properties": {"all": several, "either": {"anyOf": [several, {"const": "all"}]}}}

    shown = wire_form(replace(ping, input_schema=nesting(field(default="", minLength=1))))
    assert shown["inputSchema"] == nesting(field())


def test_no_result_is_outlined_of_a_tool_that_has_no_outline() -> None:
    assert wire_form(ping)["outputSchema"] == ping.output_schema
    assert "outputSchema" not in wire_form(replace(ping, output_schema={}))


def test_an_argument_that_is_called_default_is_shown() -> None:
    schema = {"type": "object", "properties": {"default": {"type": "string", "description": "Some."}}}
    assert wire_form(replace(ping, input_schema=schema))["inputSchema"] == schema


def test_a_tool_without_arguments_says_so() -> None:
    assert wire_form(ping)["inputSchema"] == {"type": "object", "properties": {}}


def test_the_declaration_is_left_as_it_was() -> None:
    declared = replace(ping, input_schema=field(default=""))
    wire_form(declared)
    assert declared.input_schema == field(default="")


def test_a_reading_tool_is_listed_as_reading(product: Registry) -> None:
    for tool in product:
        hints = wire_form(tool)["annotations"]
        assert hints.get("readOnlyHint", False) == (tool.effect == "read")
        assert hints.get("openWorldHint", True) == tool.open_world
        assert hints.get("destructiveHint", tool.effect != "read") == (tool.tier == "destructive")

"""The declaration of a tool: what cannot be declared, and what has to be said."""

from typing import Any

import pytest
from pydantic import Field, ValidationError

from rookery.core.context import Context
from rookery.core.tool import ToolInput, ToolOutput, plain_name, tool


class Given(ToolInput):
    who: str = Field(description="Who.")


class Made(ToolOutput):
    what: str


HOW: dict[str, Any] = {
    "title": "Make", "effect": "read", "action": "x:y", "tier": "act", "group": "Write", "profiles": "W",
    "default": False,
}  # fmt: skip


def no_annotations(ctx, args):  # pyright: ignore[reportMissingParameterType]
    return None


def three_parameters(ctx: Context, args: Given, more: int) -> Made:
    raise NotImplementedError


def plain_input(ctx: Context, args: dict[str, str]) -> Made:
    raise NotImplementedError


def plain_output(ctx: Context, args: Given) -> str:
    raise NotImplementedError


async def in_a_coroutine(ctx: Context, args: Given) -> Made:
    raise NotImplementedError


def as_it_should_be(ctx: Context, args: Given) -> Made:
    raise NotImplementedError


@pytest.mark.parametrize("handler", [no_annotations, three_parameters, plain_input, plain_output, in_a_coroutine])
def test_a_handler_of_the_wrong_shape_cannot_be_declared(handler: Any) -> None:
    with pytest.raises(TypeError, match=handler.__name__):
        tool(**HOW)(handler)


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"profiles": "WX"}, "X"),
        ({"effect": "external"}, "as_it_should_be"),
        ({"effect": "write", "inline": True}, "inline"),
    ],
)
def test_a_declaration_that_contradicts_itself_is_refused(change: dict[str, Any], named: str) -> None:
    with pytest.raises(TypeError, match=named):
        tool(**{**HOW, **change})(as_it_should_be)


@pytest.mark.parametrize("left_out", HOW)
def test_who_may_have_a_tool_has_no_default_that_could_be_forgotten(left_out: str) -> None:
    with pytest.raises(TypeError, match=left_out):
        tool(**{key: value for key, value in HOW.items() if key != left_out})(as_it_should_be)


def test_a_declaration_carries_the_name_and_the_docstring_of_its_handler() -> None:
    declared = tool(**HOW)(as_it_should_be)
    assert declared.name == "as_it_should_be"
    assert declared.profiles == {"worker"}
    assert declared.scopes == ("x:y",)
    assert list(declared.input_schema["properties"]) == ["who"]


def test_the_fields_of_a_result_are_told_to_agents_and_not_of_tools_for_people() -> None:
    assert list(tool(**HOW)(as_it_should_be).output_schema["properties"]) == ["what"]
    assert tool(**HOW, principals="people")(as_it_should_be).output_schema == {}


def test_an_argument_that_the_schema_does_not_name_is_refused() -> None:
    with pytest.raises(ValidationError, match="agent"):
        Given.model_validate({"who": "me", "agent": "somebody else"})


def test_the_plain_name_loses_the_prefix_once() -> None:
    assert [plain_name(name) for name in ("corvid_ping", "ping", "my_corvid_x")] == ["ping", "ping", "my_corvid_x"]

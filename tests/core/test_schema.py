"""Schemas as clients get them: small, without references, an optional field shown by its type alone."""

from typing import Any, Literal

import pytest
from pydantic import BaseModel, Field

from rookery.core.schema import compact_schema
from rookery.core.tool import ToolInput, ToolOutput


class Place(BaseModel):
    city: str = Field(description="Where.")


class Order(ToolInput):
    """For us, not for the client."""

    title: str = Field(description="A field that is called title.")
    size: Literal["small", "large"] = Field("small", description="How much.")
    place: Place = Field(description="Where to.")
    stops: list[Place] = Field(default=[], description="On the way.")
    note: str | None = Field(None, max_length=10, description="Anything else.")
    count: int | str | None = Field(None, description="How many.")


class Counted(ToolInput):
    counts: dict[str, int] = Field(description="By name.")


class Tree(ToolInput):
    children: list["Tree"] = Field(default=[], description="Below.")


class Answer(ToolOutput):
    note: str | None


class Report(ToolOutput):
    required: str = "yes"
    parts: list[Answer]
    place: Place
    counts: dict[str, int]
    either: int | str | None
    free: list[dict[str, Any]]


def test_titles_go_and_a_field_called_title_stays() -> None:
    schema = compact_schema(Order, "validation")
    assert "title" not in schema
    assert schema["properties"]["title"] == {"type": "string", "description": "A field that is called title."}


def test_references_are_put_in_place() -> None:
    schema = compact_schema(Order, "validation")
    place = {
        "type": "object",
        "properties": {"city": {"type": "string", "description": "Where."}},
        "required": ["city"],
    }
    assert schema["properties"]["stops"]["items"] == place
    assert schema["properties"]["place"] == {**place, "description": "Where to."}
    assert "$ref" not in str(schema)
    assert "$defs" not in schema


def test_an_optional_argument_is_shown_by_its_type_alone() -> None:
    properties = compact_schema(Order, "validation")["properties"]
    assert properties["note"] == {"type": "string", "maxLength": 10, "description": "Anything else."}
    assert properties["count"]["anyOf"] == [{"type": "integer"}, {"type": "string"}]


def test_of_a_result_the_fields_are_told_and_nothing_else() -> None:
    assert compact_schema(Report, "serialization") == {
        "type": "object",
        "properties": {
            "required": {},
            "parts": {"items": {"properties": {"note": {}}}},
            "place": {"properties": {"city": {}}},
            "counts": {},
            "either": {},
            "free": {},
        },
    }


def test_limits_choices_and_defaults_are_kept() -> None:
    schema = compact_schema(Order, "validation")
    assert schema["properties"]["size"] == {
        "type": "string",
        "enum": ["small", "large"],
        "default": "small",
        "description": "How much.",
    }
    assert schema["required"] == ["title", "place"]


def test_that_other_arguments_are_refused_is_not_told_of_each_model() -> None:
    assert Order.model_config.get("extra") == "forbid"
    assert "additionalProperties" not in compact_schema(Order, "validation")


def test_what_the_values_of_a_free_argument_must_be_is_told() -> None:
    counts = compact_schema(Counted, "validation")["properties"]["counts"]
    assert counts == {"type": "object", "additionalProperties": {"type": "integer"}, "description": "By name."}


def test_the_docstring_of_the_model_is_not_sent() -> None:
    assert "description" not in compact_schema(Order, "validation")


def test_a_model_that_refers_to_itself_is_refused_by_name() -> None:
    with pytest.raises(TypeError, match="Tree"):
        compact_schema(Tree, "validation")

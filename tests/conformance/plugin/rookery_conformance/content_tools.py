"""Fixtures that answer at once: every kind of content, an error, and two schemas that must arrive as they are."""

from dataclasses import replace

from pydantic import Field

from rookery.core.context import Context
from rookery.core.errors import Conflict
from rookery.core.tool import NoInput, ToolInput
from rookery_conformance.fixture import Said, Shown, fixture


@fixture("read")
def test_simple_text(ctx: Context, args: NoInput) -> Said:
    """Says a sentence."""
    return Said(text="This is a simple text response for testing.")


@fixture("read")
def test_image_content(ctx: Context, args: NoInput) -> Shown:
    """Shows a picture."""
    return Shown(blocks=["pixel"])


@fixture("read")
def test_audio_content(ctx: Context, args: NoInput) -> Shown:
    """Plays a sound."""
    return Shown(blocks=["silence"])


@fixture("read")
def test_embedded_resource(ctx: Context, args: NoInput) -> Shown:
    """Sends a resource along."""
    return Shown(blocks=["resource"])


@fixture("read")
def test_multiple_content_types(ctx: Context, args: NoInput) -> Shown:
    """Sends text, a picture and a resource."""
    return Shown(blocks=["title", "pixel", "json"])


@fixture("read")
def test_error_handling(ctx: Context, args: NoInput) -> Said:
    """Fails."""
    raise Conflict("This tool intentionally returns an error for testing")


class TestXMcpHeader(ToolInput):
    region: str | None = Field(
        None,
        max_length=100,
        description="What the client repeats in a header.",
        json_schema_extra={"x-mcp-header": "Region"},
    )


@fixture("read")
def test_x_mcp_header(ctx: Context, args: TestXMcpHeader) -> Said:
    """Has an argument that travels in a header as well."""
    return Said(text=f"region={args.region}")


class Address(ToolInput):
    street: str | None = Field(None, max_length=100, description="Street and number.")
    city: str | None = Field(None, max_length=100, description="Town.")


class JsonSchemaTool(ToolInput):
    name: str | None = Field(None, max_length=100, description="Whose contact this is.")
    address: Address | None = Field(None, description="Where they live.")
    contact_method: str | None = Field(None, max_length=5, alias="contactMethod", description="How to reach them.")
    phone: str | None = Field(None, max_length=40, description="Telephone number.")
    email: str | None = Field(None, max_length=100, description="Mail address.")


@fixture("read")
def json_schema_2020_12_tool(ctx: Context, args: JsonSchemaTool) -> Said:
    """Has a schema with keywords that ours never have."""
    return Said(text="ok")


SCHEMA = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "$defs": {
        "address": {
            "$anchor": "addressDef",
            "type": "object",
            "properties": {"street": {"type": "string"}, "city": {"type": "string"}},
        }
    },
    "properties": {
        "name": {"type": "string", "description": "Whose contact this is."},
        "address": {"$ref": "#/$defs/address", "description": "Where they live."},
        "contactMethod": {"type": "string", "enum": ["phone", "email"], "description": "How to reach them."},
        "phone": {"type": "string", "description": "Telephone number."},
        "email": {"type": "string", "description": "Mail address."},
    },
    "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
    "if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
    "then": {"required": ["phone"]},
    "else": {"required": ["email"]},
    "additionalProperties": False,
}
json_schema_2020_12_tool = replace(json_schema_2020_12_tool, input_schema=SCHEMA)

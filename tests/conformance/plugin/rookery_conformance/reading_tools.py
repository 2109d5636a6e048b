"""Fixtures that are resources and prompts. Each is had with the right to one of the tools."""

from pydantic import BaseModel, Field

from rookery.core.blocks import Embedded
from rookery.core.context import Context
from rookery.core.prompt import Message, prompt
from rookery.core.resource import resource
from rookery.core.tool import NoInput, ToolInput
from rookery_conformance.fixture import PIXEL

RIGHT = "test_simple_text"
PLACES = ["paris", "park", "party"]


@resource("test://static-text", title="Static text", right=RIGHT, mime_type="text/plain", inline=True)
def static_text(ctx: Context, args: NoInput) -> str:
    """Text that stays as it is."""
    return "This is the content of the static text resource."


@resource("test://static-binary", title="Static picture", right=RIGHT, mime_type="image/png", inline=True)
def static_binary(ctx: Context, args: NoInput) -> bytes:
    """A picture that stays as it is."""
    return PIXEL.data


@resource("test://watched-resource", title="Watched text", right=RIGHT, mime_type="text/plain", inline=True)
def watched_resource(ctx: Context, args: NoInput) -> str:
    """Text that a client may subscribe to."""
    return "Watched resource content"


class TemplateAddress(ToolInput):
    id: str = Field(max_length=100, description="Which of them.")


class TemplateData(BaseModel):
    id: str
    templateTest: bool = True  # noqa: N815 - the suite's word
    data: str


@resource("test://template/{id}/data", title="Template", right=RIGHT, mime_type="application/json", inline=True)
def template_data(ctx: Context, args: TemplateAddress) -> TemplateData:
    """Says its own number."""
    return TemplateData(id=args.id, data=f"Data for ID: {args.id}")


@prompt(title="Simple prompt", right=RIGHT, inline=True)
def test_simple_prompt(ctx: Context, args: NoInput) -> str:
    """A prompt without arguments."""
    return "This is a simple prompt for testing."


class TestPromptWithArguments(ToolInput):
    arg1: str = Field(max_length=100, description="The first argument.")
    arg2: str = Field(max_length=100, description="The second argument.")


def places(ctx: Context, typed: str, others: dict[str, str]) -> list[str]:
    return [place for place in PLACES if place.startswith(typed)]


@prompt(title="Prompt with arguments", right=RIGHT, complete={"arg1": places}, inline=True)
def test_prompt_with_arguments(ctx: Context, args: TestPromptWithArguments) -> str:
    """A prompt with two arguments."""
    return f"Prompt with arguments: arg1='{args.arg1}', arg2='{args.arg2}'"


class TestPromptWithResource(ToolInput):
    resource_uri: str = Field(max_length=500, alias="resourceUri", description="The resource to send along.")


@prompt(title="Prompt with a resource", right=RIGHT, inline=True)
def test_prompt_with_embedded_resource(ctx: Context, args: TestPromptWithResource) -> list[Message]:
    """A prompt that brings a resource."""
    contents = Embedded(args.resource_uri, "Embedded resource content for testing.", "text/plain")
    return [Message("user", contents), Message("user", "Please process the embedded resource above.")]


@prompt(title="Prompt with a picture", right=RIGHT, inline=True)
def test_prompt_with_image(ctx: Context, args: NoInput) -> list[Message]:
    """A prompt that brings a picture."""
    return [Message("user", PIXEL), Message("user", "Please analyze the image above.")]

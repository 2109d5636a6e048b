"""The resource `echo://{message}`. It is had with the right of the tool echo_message."""

from pydantic import Field

from rookery.core.context import Context
from rookery.core.resource import resource
from rookery.core.tool import ToolInput


class EchoAddress(ToolInput):
    message: str = Field(max_length=200, description="What to say back.")


@resource("echo://{message}", title="Echo", right="echo_message", mime_type="text/plain", inline=True)
def echo(ctx: Context, args: EchoAddress) -> str:
    """Says the message in its own address back."""
    return f"Echo: {args.message}"

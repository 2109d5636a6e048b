"""A plugin with more tools, prompts and resources than fit on one page."""

from pydantic import Field

from rookery.core.context import Context
from rookery.core.prompt import Prompt, prompt
from rookery.core.resource import Entry, Resource, resource
from rookery.core.tool import NoInput, Tool, ToolInput, ToolOutput, tool

MANY = 620


class Number(ToolOutput):
    number: int


class Which(ToolInput):
    number: int = Field(description="Which one.")


def _tool(number: int) -> Tool:
    def count(ctx: Context, args: NoInput) -> Number:
        return Number(number=number)

    count.__name__ = f"count_{number:03d}"
    count.__doc__ = "Counts. Use it in tests only. Returns its number."
    declare = tool(
        title="Count", effect="read", action="many:use", tier="observe", group="System", profiles="", default=True,
        inline=True,
    )  # fmt: skip
    return declare(count)


def _prompt(number: int) -> Prompt:
    def ask(ctx: Context, args: NoInput) -> str:
        return str(number)

    ask.__name__ = f"ask_{number:03d}"
    ask.__doc__ = "Asks for a number."
    return prompt(title="Ask", right="count_000", inline=True)(ask)


def _template(number: int) -> Resource:
    def read(ctx: Context, args: Which) -> str:
        return str(args.number)

    read.__name__ = f"read_{number:03d}"
    read.__doc__ = "Reads a number."
    return resource(f"many-{number:03d}://{{number}}", title="Read", right="count_000", inline=True)(read)


def entries(ctx: Context) -> list[Entry]:
    return [Entry(f"number://{number:03d}", f"number_{number:03d}") for number in range(MANY)]


@resource("number://{number}", title="Number", right="count_000", entries=entries, inline=True)
def number(ctx: Context, args: Which) -> str:
    """A number."""
    return str(args.number)


globals().update({made.name: made for each in range(MANY) for made in (_tool(each), _prompt(each), _template(each))})

"""Tools that call the tool they are told to, for tests of who may call what through another."""

from typing import Any

from pydantic import Field

from rookery.core.context import Context
from rookery.core.tool import EVERY_PROFILE, ToolInput, ToolOutput, tool


class PassOn(ToolInput):
    tool: str = Field(description="Which.")
    arguments: dict[str, Any] = Field(description="With what.")


class Passed(ToolOutput):
    done: bool = True


@tool(
    title="Pass on here", effect="write", action="probe:pass", tier="act", group="Write", profiles=EVERY_PROFILE,
    default=True,
)  # fmt: skip
def pass_on_here(ctx: Context, args: PassOn) -> Passed:
    """Call a tool in this transaction. Use it in tests. Returns nothing of it."""
    ctx.call_here(args.tool, args.arguments)
    return Passed()


@tool(
    title="Pass on", effect="external", action="probe:pass", tier="act", group="Write", profiles=EVERY_PROFILE,
    default=True,
)  # fmt: skip
async def pass_on(ctx: Context, args: PassOn) -> Passed:
    """Call a tool as a call of its own. Use it in tests. Returns nothing of it."""
    await ctx.call_tool(args.tool, args.arguments)
    return Passed()

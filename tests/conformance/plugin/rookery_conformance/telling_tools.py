"""Fixtures that tell the client something while they run, or that something has changed."""

import asyncio

from rookery.core.context import Context
from rookery.core.tool import NoInput
from rookery_conformance.fixture import Said, fixture

# The suite wants to see messages arrive one by one.
PAUSE_S = 0.05
# Long enough that the client has noticed the end of its stream before the answer is there.
AWAY_S = 0.2


@fixture("external")
async def test_tool_with_logging(ctx: Context, args: NoInput) -> Said:
    """Logs three lines."""
    for line in ("Tool execution started", "Tool processing data", "Tool execution completed"):
        ctx.log("info", line)
        await asyncio.sleep(PAUSE_S)
    return Said(text="Logged three lines.")


@fixture("external")
async def test_logging_tool(ctx: Context, args: NoInput) -> Said:
    """Logs a line, which only a client that asked for it gets."""
    ctx.log("info", "Nobody asked for this line")
    return Said(text="Logged a line.")


@fixture("external")
async def test_tool_with_progress(ctx: Context, args: NoInput) -> Said:
    """Reports how far it is."""
    for done in (0, 50, 100):
        ctx.progress(done, 100, f"Completed step {done} of 100")
        await asyncio.sleep(PAUSE_S)
    return Said(text="Reported three times.")


@fixture("external")
async def test_reconnection(ctx: Context, args: NoInput) -> Said:
    """Lets the client's stream go before it answers."""
    await ctx.release()
    await asyncio.sleep(AWAY_S)
    return Said(text="Reconnection test completed")


@fixture("write")
def test_trigger_tool_change(ctx: Context, args: NoInput) -> Said:
    """Announces that the list of tools has changed."""
    ctx.publish("ToolsListChanged")
    return Said(text="Announced.")


@fixture("write")
def test_trigger_prompt_change(ctx: Context, args: NoInput) -> Said:
    """Announces that the list of prompts has changed."""
    ctx.publish("PromptsListChanged")
    return Said(text="Announced.")

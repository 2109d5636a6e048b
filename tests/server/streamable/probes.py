"""Tools that show what a door does with a call: that it waits, talks, asks, writes, or fails."""

import asyncio
from typing import Any

from pydantic import Field

from rookery.core.context import Context
from rookery.core.tool import EVERY_PROFILE, NoInput, ToolInput, ToolOutput, tool

COMMON: dict[str, Any] = {
    "tier": "act",
    "group": "System",
    "profiles": EVERY_PROFILE,
    "default": True,
}
READING: dict[str, Any] = {**COMMON, "tier": "observe"}
waiting: dict[str, asyncio.Event] = {}
"""Calls of `wait_for` that are waiting, by name: set the event to let one go."""
ended: dict[str, str] = {}
"""How calls of `wait_for` ended."""


class Said(ToolOutput):
    text: str


class Named(ToolInput):
    name: str = Field(description="Which call this is.")


class Times(ToolInput):
    times: int = Field(1, ge=0, le=10_000, description="How often.")


@tool(title="Wait", effect="external", action="probe:run", **COMMON)
async def wait_for(ctx: Context, args: Named) -> Said:
    """Wait until the test lets the call go. Use it in tests only. Returns how it ended."""
    event = waiting.setdefault(args.name, asyncio.Event())
    ended[args.name] = "running"
    try:
        await event.wait()
    except asyncio.CancelledError:
        ended[args.name] = "cancelled"
        raise
    finally:
        waiting.pop(args.name, None)
    ended[args.name] = "finished"
    return Said(text=f"{args.name} waited")


@tool(title="Count", effect="external", action="probe:run", **COMMON)
async def count_aloud(ctx: Context, args: Times) -> Said:
    """Report progress so many times. Use it in tests only. Returns the count, never anything else."""
    for number in range(args.times):
        ctx.progress(number + 1, args.times, f"step {number + 1}")
        if number % 100 == 99:
            await asyncio.sleep(0)
    return Said(text=f"counted to {args.times}")


@tool(title="Ask", effect="external", action="probe:run", **COMMON)
async def ask_name(ctx: Context, args: NoInput) -> Said:
    """Ask the person at the client for a name. Use it in tests only. Returns a greeting, if somebody answered."""
    schema = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
    answer = await ctx.elicit("What is your name?", schema)
    return Said(text=f"hello {answer['name']}" if answer else "nobody answered")


@tool(title="Fail", effect="read", action="probe:read", inline=True, **READING)
def fail_badly(ctx: Context, args: NoInput) -> Said:
    """Fail as a bug would. Use it in tests only. Returns nothing."""
    raise RuntimeError("the secret is 42")


@tool(title="Echo", effect="read", action="probe:read", inline=True, **READING)
def say_again(ctx: Context, args: Named) -> Said:
    """Say a name again. Use it in tests only. Returns the name, never anything else."""
    return Said(text=args.name)

"""Tools for agents under test: one that breaks, one that takes as long as the test likes, one that shows everything."""

import asyncio
from collections.abc import Callable
from typing import Any

from pydantic import Field

from rookery.core.blocks import Block, Embedded, Image, Link, Text
from rookery.core.context import Context
from rookery.core.errors import Conflict
from rookery.core.tool import NoInput, Tool, ToolInput, ToolOutput, tool

SECRET = "hunter2"
PIXEL = bytes.fromhex(
    "89504e470d0a1a0a0000000d49484452000000010000000108060000001f15c4890000000d49444154789c6360f8cf500f00038301809a60"
    "e1c70000000049454e44ae426082"
)


class Did(ToolOutput):
    did: str


class Shown(ToolOutput):
    said: str

    def as_blocks(self) -> list[Block]:
        link = Link("rookery://guide", "guide", description="More.")
        return [Text(self.said), Image(PIXEL, "image/png"), Embedded("rookery://note", "a note", "text/plain"), link]


class Seconds(ToolInput):
    seconds: int = Field(ge=0, description="How long to work.")


def trial(**how: Any) -> Callable[[Callable[..., Any]], Tool]:
    def declare(handler: Callable[..., Any]) -> Tool:
        handler.__doc__ = "A trial. Use it in tests only. Returns what it did."
        declared: dict[str, Any] = {
            "title": "Trial", "effect": "external", "action": "trials:use", "tier": "observe", "group": "System",
            "profiles": "", "default": True,
        }  # fmt: skip
        return tool(**{**declared, **how})(handler)

    return declare


class Slow:
    """What a test and a slow handler tell each other."""

    def __init__(self) -> None:
        self.begun = asyncio.Event()
        self.released = asyncio.Event()
        self.cancelled = asyncio.Event()


slow = Slow()


@trial(timeout_s=120.0)
async def work_slowly(ctx: Context, args: NoInput) -> Did:
    ctx.progress(1, 2, "half of it")
    slow.begun.set()
    try:
        await slow.released.wait()
    except asyncio.CancelledError:
        slow.cancelled.set()
        raise
    ctx.progress(2, 2, "all of it")
    return Did(did="at last")


@trial(timeout_s=120.0)
async def work_for_seconds(ctx: Context, args: Seconds) -> Did:
    for second in range(args.seconds):
        ctx.progress(second, args.seconds, "working")
        await asyncio.sleep(1)
    return Did(did=f"{args.seconds} s of work")


@trial()
async def chatter(ctx: Context, args: NoInput) -> Did:
    for step in range(1000):
        ctx.progress(step, 999, f"step {step}")
    return Did(did="a thousand steps")


@trial()
async def break_down(ctx: Context, args: NoInput) -> Did:
    raise RuntimeError(SECRET)


@trial()
async def refuse_politely(ctx: Context, args: NoInput) -> Did:
    raise Conflict("it is closed already", hint="open it first")


@trial(effect="read", inline=True)
def show_things(ctx: Context, args: NoInput) -> Shown:
    return Shown(said="look")


@trial(effect="read", inline=True, tier="destructive")
def wipe_out(ctx: Context, args: NoInput) -> Did:
    return Did(did="gone")


@trial(effect="read", inline=True, default=False, profiles="J")
def judge_it(ctx: Context, args: NoInput) -> Did:
    return Did(did="judged")


class Run(ToolOutput):
    run: str | None
    session: str | None


@trial(effect="read", inline=True)
def tell_run(ctx: Context, args: NoInput) -> Run:
    return Run(run=ctx.actor.run, session=ctx.actor.session)

"""A domain whose tools do what calls can do: succeed, fail, break down, hang, reach out, call each other."""

import asyncio
import logging
import threading
from typing import Any

import sqlalchemy as sa
from pydantic import Field

from rookery.core.context import Context
from rookery.core.errors import Conflict
from rookery.core.tool import NoInput, Tool, ToolInput, ToolOutput, tool
from tests.db.sample import MIGRATIONS, add

__all__ = ["MIGRATIONS"]
REACHED: list[str] = []
"""What external handlers did to the world outside."""
ENTERED = threading.Event()
"""Set by the tools that never end, once they have begun."""
SHORT_S = 0.3
log = logging.getLogger("rookery.workload")


class Key(ToolInput):
    key: str = Field(description="What the row is called.")


class Done(ToolOutput):
    key: str = ""
    count: int = 0


def _tool(effect: str, **how: Any) -> Any:
    declared: dict[str, Any] = {"title": "Work", "effect": effect, "action": "workload:use", "tier": "act"}
    declared |= {"group": "Write", "profiles": "", "default": True}
    return tool(**{**declared, **how})


@_tool("write")
def add_pair(ctx: Context, args: Key) -> Done:
    """Write two rows that belong together."""
    add(args.key)(ctx.tx)
    ctx.publish("PairAdded", key=args.key)
    return Done(key=args.key)


@_tool("write")
def add_pair_inside(ctx: Context, args: Key) -> Done:
    """Let add_pair do it, in this transaction."""
    ctx.call_here("add_pair", {"key": args.key})
    return Done(key=args.key)


@_tool("write")
def add_and_fail(ctx: Context, args: Key) -> Done:
    """Write two rows and then say that it cannot be."""
    add(args.key)(ctx.tx)
    raise Conflict(f"{args.key} cannot be")


@_tool("write")
def add_and_break(ctx: Context, args: Key) -> Done:
    """Write two rows and then stumble over a bug."""
    log.info("about to break")
    add(args.key)(ctx.tx)
    raise ValueError(f"nobody thought of {args.key}")


@_tool("write")
def add_again(ctx: Context, args: Key) -> Done:
    """Write the same rows twice, which the database refuses."""
    add(args.key)(ctx.tx)
    add(args.key)(ctx.tx)
    return Done()


@_tool("write", timeout_s=SHORT_S)
def add_forever(ctx: Context, args: Key) -> Done:
    """Write two rows and never end."""
    add(args.key)(ctx.tx)
    ENTERED.set()
    while True:
        pass


@_tool("read", timeout_s=SHORT_S)
def look_forever(ctx: Context, args: NoInput) -> Done:
    """Look and never end."""
    ENTERED.set()
    while True:
        pass


@_tool("read")
def count_pairs(ctx: Context, args: NoInput) -> Done:
    """Count the pairs."""
    return Done(count=ctx.tx.scalar(sa.text("SELECT count(*) FROM left_half")))


@_tool("read")
def count_pairs_inside(ctx: Context, args: NoInput) -> Done:
    """Let count_pairs do it, in this transaction."""
    counted = ctx.call_here("count_pairs", {})
    assert isinstance(counted, Done)
    return counted


@_tool("read")
def look_and_break(ctx: Context, args: Key) -> Done:
    """Look and stumble over a bug."""
    log.warning("about to break")
    raise ValueError(args.key)


@_tool("external")
async def reach_out(ctx: Context, args: Key) -> Done:
    """Do something to the world outside."""
    REACHED.append(args.key)
    return Done(key=args.key)


@_tool("external")
async def reach_and_break(ctx: Context, args: Key) -> Done:
    """Do something to the world outside and stumble over a bug."""
    REACHED.append(args.key)
    raise ValueError(args.key)


@_tool("external", timeout_s=SHORT_S)
async def reach_forever(ctx: Context, args: Key) -> Done:
    """Do something to the world outside and never hear back."""
    REACHED.append(args.key)
    ENTERED.set()
    await asyncio.Event().wait()
    return Done()


@_tool("read", inline=True, rate_per_minute=2)
def look_twice_a_minute(ctx: Context, args: NoInput) -> Done:
    """Look, but not too often."""
    return Done()


TOOLS: list[Tool] = [found for found in globals().values() if isinstance(found, Tool)]

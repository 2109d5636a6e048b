"""Tools of one plugin that keep something, each kind of handler in its own way."""

from typing import Any

from pydantic import Field

from rookery.core.context import Context
from rookery.core.errors import Conflict
from rookery.core.tool import ToolInput, ToolOutput
from tests.core.context_probes import probe


class Keep(ToolInput):
    key: str = "k"
    value: Any = None
    ttl_s: float | None = None
    fail: bool = False


class Found(ToolOutput):
    value: Any = None
    keys: list[str] = Field(default_factory=list)
    cursor: str | None = None


class Look(ToolInput):
    key: str = "k"
    limit: int = 1000
    cursor: str | None = None


@probe("write")
def keep(ctx: Context, args: Keep) -> Found:
    ctx.storage.set(args.key, args.value, args.ttl_s)
    if args.fail:
        raise Conflict("told to fail")
    return Found(value=ctx.storage.get(args.key))


@probe("write")
def count(ctx: Context, args: Look) -> Found:
    ctx.storage.set(args.key, ctx.storage.get(args.key, 0) + 1)
    return Found(value=ctx.storage.get(args.key))


@probe("write")
def forget(ctx: Context, args: Look) -> Found:
    return Found(value=ctx.storage.delete(args.key))


@probe("read")
def look(ctx: Context, args: Look) -> Found:
    page = ctx.storage.list(limit=args.limit, cursor=args.cursor)
    return Found(value=ctx.storage.get(args.key), keys=page.keys, cursor=page.cursor)


@probe("read")
def keep_reading(ctx: Context, args: Keep) -> Found:
    ctx.storage.set(args.key, args.value)
    return Found()


@probe("read", inline=True)
def look_inline(ctx: Context, args: Look) -> Found:
    return Found(value=ctx.storage.get(args.key))


@probe("external")
async def look_outside_wrongly(ctx: Context, args: Look) -> Found:
    return Found(value=ctx.storage.get(args.key))


@probe("external")
async def keep_outside(ctx: Context, args: Keep) -> Found:
    await ctx.write(lambda tx: ctx.storage_in(tx).set(args.key, args.value, args.ttl_s))
    if args.fail:
        raise Conflict("told to fail")
    return Found(value=await ctx.read(lambda tx: ctx.storage_in(tx).get(args.key)))


@probe("write")
def keep_here_and_there(ctx: Context, args: Keep) -> Found:
    """Calls a tool of the other plugin, which has its own storage."""
    ctx.storage.set(args.key, "here")
    ctx.call_here("keep_there", {"key": args.key, "value": "there"})
    return Found(value=ctx.storage.get(args.key))

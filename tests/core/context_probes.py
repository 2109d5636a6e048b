"""Tools that use everything that a handler is handed, each kind of handler in its own way."""

import asyncio
import time
from collections.abc import Callable, Coroutine
from typing import Any, Literal

from pydantic import Field

from rookery.core.context import Context
from rookery.core.errors import Conflict
from rookery.core.tool import Effect, NoInput, Tool, ToolInput, ToolOutput, tool
from rookery.identity.store import IdentityStore

SHORT_S = 5.0
KEPT: list[Context] = []
"""The contexts that `keep_context` was given."""

Way = Literal["elicit", "sample", "send_notification", "send_request", "call_tool", "read", "write"]
WAYS: dict[Way, Callable[[Context], Coroutine[Any, Any, Any]]] = {
    "elicit": lambda ctx: ctx.elicit("Which colour?", {"type": "object"}),
    "sample": lambda ctx: ctx.sample("Say something", max_tokens=10, system="Be short"),
    "send_notification": lambda ctx: ctx.send_notification("notifications/x", {"a": 1}),
    "send_request": lambda ctx: ctx.send_request("x/y", {"b": 2}),
    "call_tool": lambda ctx: ctx.call_tool("ping", {}),
    "read": lambda ctx: ctx.read(lambda tx: None),
    "write": lambda ctx: ctx.write(lambda tx: None),
}


class Ask(ToolInput):
    way: Way


class Make(ToolInput):
    name: str
    fail: bool = False


class Inside(ToolInput):
    tool: str
    arguments: dict[str, Any] = Field(default_factory=dict)
    fail: bool = False


class Said(ToolOutput):
    said: str = ""


def probe(effect: Effect, **how: Any) -> Callable[[Callable[..., Any]], Tool]:
    return tool(
        title="Probe", effect=effect, action="probe:use", tier="act", group="System", profiles="", default=True, **how
    )


def make(ctx: Context, args: Make) -> Said:
    """Write an agent and tell of it, whoever asks; then fail if told to."""
    IdentityStore(ctx.tx, ctx.actor.tenant).create_agent(args.name, None)
    ctx.publish("ThingMade", subject=args.name, size=3)
    if args.fail:
        raise Conflict("told to fail")
    return Said(said=args.name)


def tell(ctx: Context) -> Said:
    ctx.emit_status("halfway")
    ctx.progress(1, 2, "one of two")
    ctx.progress(2)
    return Said()


@probe("read")
def tell_reading(ctx: Context, args: NoInput) -> Said:
    return tell(ctx)


@probe("write")
def tell_writing(ctx: Context, args: NoInput) -> Said:
    return tell(ctx)


@probe("read", inline=True)
def tell_inline(ctx: Context, args: NoInput) -> Said:
    return tell(ctx)


@probe("external")
async def tell_outside(ctx: Context, args: NoInput) -> Said:
    return tell(ctx)


@probe("write")
def make_thing(ctx: Context, args: Make) -> Said:
    return make(ctx, args)


@probe("write")
def call_inside(ctx: Context, args: Inside) -> Said:
    ctx.publish("OuterCalled")
    value = ctx.call_here(args.tool, args.arguments)
    if args.fail:
        raise Conflict("told to fail")
    return Said(said=value.model_dump_json())


@probe("read")
def call_inside_reading(ctx: Context, args: Inside) -> Said:
    return Said(said=ctx.call_here(args.tool, args.arguments).model_dump_json())


@probe("external")
async def call_another(ctx: Context, args: Inside) -> Said:
    value = await ctx.call_tool(args.tool, args.arguments)
    ctx.publish("OuterCalled")
    if args.fail:
        raise Conflict("told to fail")
    return Said(said=value.model_dump_json())


@probe("read")
def publish_reading(ctx: Context, args: NoInput) -> Said:
    ctx.publish("NothingHappened")
    return Said()


@probe("external")
async def ask(ctx: Context, args: Ask) -> Said:
    return Said(said=str(await WAYS[args.way](ctx)))


def ask_without_waiting(ctx: Context, args: Ask) -> Said:
    """As far as a handler comes that cannot wait: the question must be refused before anyone hears it."""
    waiting = WAYS[args.way](ctx)
    try:
        waiting.send(None)
    finally:
        waiting.close()
    return Said(said="asked")


@probe("read")
def ask_reading(ctx: Context, args: Ask) -> Said:
    return ask_without_waiting(ctx, args)


@probe("write")
def ask_writing(ctx: Context, args: Ask) -> Said:
    return ask_without_waiting(ctx, args)


@probe("external")
async def write_outside(ctx: Context, args: Make) -> Said:
    assert ctx.tx is None
    tenant = ctx.actor.tenant
    await ctx.write(lambda tx: IdentityStore(tx, tenant).create_agent(args.name, None))
    found = await ctx.read(lambda tx: IdentityStore(tx, tenant).agent(args.name).name)
    if args.fail:
        raise Conflict("told to fail")
    return Said(said=found)


@probe("external", timeout_s=SHORT_S)
async def keep_context(ctx: Context, args: NoInput) -> Said:
    KEPT.append(ctx)
    ctx.check()
    ctx.emit_status("waiting")
    await asyncio.Event().wait()
    return Said()


@probe("read", timeout_s=SHORT_S)
def say_remaining(ctx: Context, args: NoInput) -> Said:
    return Said(said=str(ctx.remaining_s))


@probe("read")
def say_remaining_of_many(ctx: Context, args: NoInput) -> Said:
    return Said(said=str(ctx.remaining_s))


@probe("read", timeout_s=SHORT_S)
def say_remaining_inside(ctx: Context, args: NoInput) -> Said:
    return Said.model_validate(ctx.call_here("say_remaining_of_many", {}).model_dump())


@probe("read")
def run_late(ctx: Context, args: NoInput) -> Said:
    ctx.call.deadline = time.monotonic() - 1
    ctx.check()
    return Said(said="went on")


@probe("read")
def describe(ctx: Context, args: NoInput) -> Said:
    return Said(said=f"{ctx.session_id} {ctx.request_id} {ctx.auth} {ctx.actor} {ctx.call}")

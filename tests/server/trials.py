"""A plugin with tools that behave as badly as tools can; the tests install it beside the server."""

import asyncio
import time
from collections.abc import Callable
from typing import Any

import sqlalchemy as sa
from pydantic import Field

from rookery.core.context import Context
from rookery.core.tool import Effect, NoInput, Tool, ToolInput, ToolOutput, tool
from rookery.db.migrate import Migration

SECRET = "hunter2"
SHORT_S = 0.5
STUCK_S = 5.0
MIGRATIONS = (Migration(1, "notes", ["CREATE TABLE trial_notes (id {serial}, text TEXT NOT NULL)"]),)
notes = sa.table("trial_notes", sa.column("id", sa.BigInteger), sa.column("text", sa.Text))
FOREVER = sa.text("WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n WHERE i < 0")


class Text(ToolInput):
    text: str = Field(max_length=200, description="What to keep.")


class AnyText(ToolInput):
    text: str = Field(description="Anything, however long.")


class Steps(ToolInput):
    steps: int = Field(ge=0, le=100_000, description="How many steps to take.")


class Done(ToolOutput):
    done: str


class Notes(ToolOutput):
    texts: list[str]


class Length(ToolOutput):
    length: int


class Whereabouts(ToolOutput):
    cwd: str | None
    worktree: str | None


def trial(
    title: str,
    effect: Effect,
    *,
    timeout_s: float = 60.0,
    inline: bool = False,
    profiles: str = "",
    critical: str = "",
) -> Callable[[Callable[..., Any]], Tool]:
    """Declares a tool whose description is complete enough for the linter."""

    def declare(handler: Callable[..., Any]) -> Tool:
        handler.__doc__ = f"{title}. Use it in tests only. Returns what it did."
        return tool(
            title=title,
            effect=effect,
            action="trials:use",
            tier="act",
            group="System",
            profiles=profiles,
            critical=critical,
            default=True,
            timeout_s=timeout_s,
            inline=inline,
        )(handler)

    return declare


def keep(ctx: Context, text: str) -> None:
    ctx.tx.run(sa.insert(notes).values(text=text))


@trial("Save a note", "write", profiles="W")
def save_note(ctx: Context, args: Text) -> Done:
    keep(ctx, args.text)
    return Done(done=args.text)


@trial("List the notes", "read", profiles="W")
def list_notes(ctx: Context, args: NoInput) -> Notes:
    return Notes(texts=[row.text for row in ctx.tx.all(sa.select(notes.c.text).order_by(notes.c.id))])


@trial("Measure a text", "read", inline=True)
def measure_text(ctx: Context, args: AnyText) -> Length:
    return Length(length=len(args.text))


@trial("Say where the client is", "read", inline=True, profiles="I", critical="I")
def locate_client(ctx: Context, args: NoInput) -> Whereabouts:
    return Whereabouts(cwd=ctx.actor.cwd, worktree=ctx.actor.worktree)


@trial("Count slowly", "external")
async def count_slowly(ctx: Context, args: Steps) -> Done:
    for step in range(args.steps):
        ctx.emit_status(f"step {step + 1}")
        ctx.progress(step + 1, args.steps, f"step {step + 1}")
        await asyncio.sleep(0.02)
    return Done(done=str(args.steps))


@trial("Count in a thread", "read")
def count_in_thread(ctx: Context, args: Steps) -> Done:
    for step in range(args.steps):
        ctx.progress(step + 1, args.steps)
    ctx.emit_status("counted")
    return Done(done=str(args.steps))


@trial("Wait for ever", "external", timeout_s=SHORT_S)
async def wait_for_ever(ctx: Context, args: NoInput) -> Done:
    await asyncio.Event().wait()
    return Done(done="never")


@trial("Read in a spin", "read", timeout_s=SHORT_S)
def spin_reading(ctx: Context, args: NoInput) -> Done:
    while True:
        pass


@trial("Read in a spin that catches what it can", "read", timeout_s=SHORT_S)
def spin_stubbornly(ctx: Context, args: NoInput) -> Done:
    while True:
        try:
            while True:
                pass
        except Exception:
            continue


@trial("Ask the database something endless", "read", timeout_s=SHORT_S)
def query_for_ever(ctx: Context, args: NoInput) -> Done:
    return Done(done=str(ctx.tx.scalar(FOREVER)))


@trial("Ask the database something endless after a change", "write", timeout_s=SHORT_S)
def query_after_writing(ctx: Context, args: Text) -> Done:
    keep(ctx, args.text)
    return Done(done=str(ctx.tx.scalar(FOREVER)))


@trial("Write and spin", "write", timeout_s=SHORT_S)
def spin_writing(ctx: Context, args: Text) -> Done:
    keep(ctx, args.text)
    while True:
        pass


@trial("Write and spin for long", "write", timeout_s=50.0)
def spin_until_cancelled(ctx: Context, args: Text) -> Done:
    keep(ctx, args.text)
    ctx.emit_status("spinning")
    while True:
        pass


@trial("Read and sleep", "read", timeout_s=SHORT_S)
def sleep_reading(ctx: Context, args: NoInput) -> Done:
    time.sleep(STUCK_S)
    return Done(done="too late")


@trial("Write and sleep", "write", timeout_s=SHORT_S)
def sleep_writing(ctx: Context, args: Text) -> Done:
    keep(ctx, args.text)
    time.sleep(STUCK_S)
    keep(ctx, f"{args.text}, too late")
    return Done(done="too late")


@trial("Spin inline", "read", inline=True)
def spin_inline(ctx: Context, args: NoInput) -> Done:
    while True:
        pass


@trial("Spin outside", "external")
async def spin_outside(ctx: Context, args: NoInput) -> Done:
    while True:
        pass


@trial("Spin outside after a wait", "external")
async def spin_later(ctx: Context, args: NoInput) -> Done:
    await asyncio.sleep(0)
    return await spinning()


async def spinning() -> Done:
    while True:
        try:
            await spinning_deep()
        except OSError:
            continue


async def spinning_deep() -> Done:
    while True:
        pass


@trial("Fail inline", "read", inline=True)
def fail_inline(ctx: Context, args: NoInput) -> Done:
    raise ValueError(SECRET)


@trial("Fail while reading", "read")
def fail_reading(ctx: Context, args: NoInput) -> Done:
    raise ValueError(SECRET)


@trial("Fail while writing", "write")
def fail_writing(ctx: Context, args: Text) -> Done:
    keep(ctx, args.text)
    raise ValueError(SECRET)


@trial("Fail outside", "external")
async def fail_outside(ctx: Context, args: NoInput) -> Done:
    raise ValueError(SECRET)


@trial("Fail in the database", "write")
def fail_in_database(ctx: Context, args: NoInput) -> Done:
    ctx.tx.run(sa.text(f"INSERT INTO no_such_table VALUES ('{SECRET}')"))
    return Done(done="never")


@trial("Exit inline", "read", inline=True)
def exit_inline(ctx: Context, args: NoInput) -> Done:
    raise SystemExit(SECRET)


@trial("Exit while reading", "read")
def exit_reading(ctx: Context, args: NoInput) -> Done:
    raise SystemExit(SECRET)


@trial("Exit while writing", "write")
def exit_writing(ctx: Context, args: Text) -> Done:
    keep(ctx, args.text)
    raise SystemExit(SECRET)


@trial("Exit outside", "external")
async def exit_outside(ctx: Context, args: NoInput) -> Done:
    raise SystemExit(SECRET)


@trial("Print to standard output", "read")
def print_text(ctx: Context, args: NoInput) -> Done:
    print("this is no message", flush=True)
    return Done(done="printed")


@trial("Save two notes", "write")
def save_two(ctx: Context, args: Text) -> Done:
    ctx.call_here("save_note", {"text": f"{args.text} 1"})
    ctx.call_here("save_note", {"text": f"{args.text} 2"})
    return Done(done=args.text)


@trial("Save a note and fail", "write")
def save_and_fail(ctx: Context, args: Text) -> Done:
    ctx.call_here("save_note", {"text": args.text})
    raise ValueError(SECRET)


@trial("Ask the person", "external", timeout_s=20.0)
async def ask_person(ctx: Context, args: NoInput) -> Done:
    schema = {"type": "object", "properties": {"colour": {"type": "string"}}, "required": ["colour"]}
    answer = await ctx.elicit("Which colour?", schema)
    return Done(done="declined" if answer is None else str(answer["colour"]))


@trial("Ask the person for a moment", "external", timeout_s=SHORT_S)
async def ask_briefly(ctx: Context, args: NoInput) -> Done:
    await ctx.elicit("Quick?", {"type": "object", "properties": {}})
    return Done(done="answered")


@trial("Ask the person after a while", "external", timeout_s=20.0)
async def ask_late(ctx: Context, args: NoInput) -> Done:
    await asyncio.sleep(SHORT_S)
    await ctx.elicit("Still there?", {"type": "object", "properties": {}})
    return Done(done="answered")


@trial("Ask the person twice", "external", timeout_s=20.0)
async def ask_twice(ctx: Context, args: NoInput) -> Done:
    schema = {"type": "object", "properties": {"name": {"type": "string"}}}
    first = await ctx.elicit("First name?", schema)
    last = await ctx.elicit("Last name?", schema)
    return Done(done=f"{(first or {}).get('name')} {(last or {}).get('name')}")


@trial("Ask the model", "external", timeout_s=20.0)
async def ask_model(ctx: Context, args: NoInput) -> Done:
    return Done(done=await ctx.sample("Say something", max_tokens=10))


@trial("Ask for the folders", "external", timeout_s=20.0)
async def ask_folders(ctx: Context, args: NoInput) -> Done:
    return Done(done=" ".join(root.uri for root in await ctx.roots()))

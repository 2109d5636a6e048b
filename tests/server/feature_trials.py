"""A plugin with resources, prompts and tools that show all they can show; the tests install it beside the server."""

import asyncio
from collections.abc import Callable, Mapping
from typing import Any, Literal

import sqlalchemy as sa
from pydantic import Field

from rookery.core.blocks import Audio, Block, Embedded, Image, Link, Text
from rookery.core.context import Context, LogLevel
from rookery.core.errors import Conflict, NotFound
from rookery.core.prompt import Message, prompt
from rookery.core.questions import Elicit, Roots, Sample
from rookery.core.resource import Contents, Entry, resource
from rookery.core.tool import Effect, NoInput, Tool, ToolInput, ToolOutput, tool
from rookery.db.migrate import Migration

SECRET = "hunter2"
PIXEL = bytes.fromhex("89504e470d0a1a0a")
MIGRATIONS = (Migration(1, "topics", ["CREATE TABLE feature_topics (name TEXT NOT NULL PRIMARY KEY)"]),)
topics = sa.table("feature_topics", sa.column("name", sa.Text))
NAME = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}


class Said(ToolOutput):
    said: str


class Echo(ToolInput):
    message: str = Field(max_length=40, description="What to say.")


class Topic(ToolInput):
    topic: str = Field(max_length=40, description="Which topic.")


class Shown(ToolOutput):
    said: str

    def as_text(self) -> str:
        return f"**{self.said}**"

    def as_blocks(self) -> list[Block]:
        return [
            Text(f"**{self.said}**"),
            Image(PIXEL, "image/png"),
            Audio(b"RIFF", "audio/wav"),
            Embedded("echo://hello", "hello", "text/plain"),
            Embedded("echo://raw", b"\x00\x01", "application/octet-stream"),
            Link("echo://hello", "hello", description="Says hello."),
        ]


def trial(effect: Effect, *, default: bool = True, profiles: str = "", **how: Any) -> Callable[..., Tool]:
    """Declares a tool whose description is complete enough for the linter."""

    def declare(handler: Callable[..., Any]) -> Tool:
        handler.__doc__ = "A trial. Use it in tests only. Returns what it did."
        declared = tool(
            title="Trial", effect=effect, action="features:use", tier="act", group="System", profiles=profiles,
            default=default, **how,
        )  # fmt: skip
        return declared(handler)

    return declare


@trial("read", inline=True, profiles="W")
def echo_message(ctx: Context, args: Echo) -> Said:
    return Said(said=args.message)


@trial("read", inline=True, default=False, profiles="J")
def judge_things(ctx: Context, args: NoInput) -> Said:
    return Said(said="judged")


@trial("read", inline=True)
def show_everything(ctx: Context, args: Echo) -> Shown:
    return Shown(said=args.message)


class Shout(ToolInput):
    message: str = Field(description="What to say.", json_schema_extra={"x-mcp-header": "Message"})
    region: str | None = Field(None, description="Where.", json_schema_extra={"x-mcp-header": "Region"})


@trial("read", inline=True)
def shout(ctx: Context, args: Shout) -> Said:
    return Said(said=args.message.upper())


@trial("write")
def add_topic(ctx: Context, args: Topic) -> Said:
    ctx.tx.run(sa.insert(topics).values(name=args.topic))
    ctx.publish("ResourceUpdated", subject=f"topic://{args.topic}")
    ctx.publish("ResourcesListChanged")
    return Said(said=args.topic)


class Published(ToolInput):
    event: Literal["ToolsListChanged", "PromptsListChanged", "ResourcesListChanged", "ResourceUpdated"] = Field(
        description="Which event."
    )
    uri: str | None = Field(None, description="What it is about.")


@trial("write")
def publish_event(ctx: Context, args: Published) -> Said:
    ctx.publish(args.event, subject=args.uri)
    return Said(said=args.event)


class Lines(ToolInput):
    levels: list[LogLevel] = Field(description="A line of each level.")


@trial("external")
async def log_outside(ctx: Context, args: Lines) -> Said:
    for level in args.levels:
        ctx.log(level, f"a line of {level}", logger="trials")
    return Said(said="logged")


@trial("read")
def log_in_thread(ctx: Context, args: Lines) -> Said:
    for level in args.levels:
        ctx.log(level, f"a line of {level}", logger="trials")
    return Said(said="logged")


@trial("external", timeout_s=20.0)
async def ask_everything(ctx: Context, args: NoInput) -> Said:
    answers = await ctx.ask(
        Elicit("Who are you?", NAME, key="who"), Sample("Say something", max_tokens=10, key="words"), Roots(key="where")
    )
    who, said, where = answers
    assert answers["who"] is answers[0]
    return Said(said=f"{who.action} {who.content} {said.text} {[root.uri for root in where.roots]}")


@trial("external", timeout_s=20.0)
async def ask_in_rounds(ctx: Context, args: Echo) -> Said:
    first = await ctx.elicit("First name?", NAME)
    folders = await ctx.roots(key="folders")
    last = await ctx.elicit("Last name?", NAME, key="last")
    model = await ctx.sample(f"Greet {first} {last}", max_tokens=10)
    names = [(each or {}).get("name") for each in (first, last)]
    return Said(said=f"{args.message} {names} {len(folders)} {model}")


@trial("external", timeout_s=20.0)
async def ask_carelessly(ctx: Context, args: NoInput) -> Said:
    try:
        answer = await ctx.elicit("Who are you?", NAME)
    except Exception:
        return Said(said="caught")
    return Said(said=str(answer))


@trial("external", timeout_s=20.0)
async def ask_through_another(ctx: Context, args: NoInput) -> Said:
    first = await ctx.elicit("Before?", NAME)
    inner = await ctx.call_tool("ask_carelessly", {})
    return Said(said=f"{first} {inner}")


@trial("external")
async def describe_client(ctx: Context, args: NoInput) -> Said:
    await ctx.release()
    ctx.release()
    return Said(said=repr(ctx.client))


@resource("echo://{message}", title="Echo", right="echo_message", mime_type="text/plain", inline=True)
def echo(ctx: Context, args: Echo) -> str:
    """Says the message back."""
    return args.message


@resource("judge://report", title="Report", right="judge_things", scopes=("features:judge",), inline=True)
def report(ctx: Context, args: NoInput) -> str:
    """What the judge has to say."""
    return SECRET


class Path(ToolInput):
    path: str = Field(description="Which file.")


@resource("files:///{+path}", title="File", right="echo_message", mime_type="application/octet-stream")
def file(ctx: Context, args: Path) -> bytes:
    """The path as bytes."""
    return args.path.encode()


@resource("parts://{message}", title="Parts", right="echo_message", inline=True)
def parts(ctx: Context, args: Echo) -> list[Contents]:
    """Several contents at once."""
    return [Contents(args.message), Contents(b"\x00", uri="parts://blob", mime_type="image/png")]


@resource("model://said", title="Model", right="echo_message", inline=True)
def model(ctx: Context, args: NoInput) -> Said:
    """A model, sent as JSON."""
    return Said(said="modelled")


def list_topics(ctx: Context) -> list[Entry]:
    names = ctx.tx.connection.execute(sa.select(topics.c.name).order_by(topics.c.name)).scalars()
    return [Entry(f"topic://{name}", name, title=name.title()) for name in names]


def complete_topic(ctx: Context, typed: str, others: Mapping[str, str]) -> list[str]:
    return [entry.name for entry in list_topics(ctx) if entry.name.startswith(typed)]


@resource(
    "topic://{topic}", title="Topic", right="add_topic", mime_type="text/plain", entries=list_topics,
    complete={"topic": complete_topic},
)  # fmt: skip
def topic(ctx: Context, args: Topic) -> str:
    """A topic, if there is one."""
    if ctx.tx.scalar(sa.select(topics.c.name).where(topics.c.name == args.topic)) is None:
        raise NotFound(f"there is no topic {args.topic}")
    return f"about {args.topic}"


class Broken(ToolInput):
    how: Literal["bug", "type", "conflict", "exit", "write"] = Field(description="Which way to fail.")


def spoil(ctx: Context, how: str) -> Any:
    if how == "exit":
        raise SystemExit(SECRET)
    if how == "conflict":
        raise Conflict("told to fail", hint="ask for less")
    if how == "write":
        ctx.tx.run(sa.insert(topics).values(name=SECRET))
    if how == "bug":
        raise ValueError(SECRET)
    return object()


@resource("broken://{how}", title="Broken", right="echo_message")
def broken(ctx: Context, args: Broken) -> str:
    """Fails as told."""
    return spoil(ctx, args.how)


def list_badly(ctx: Context) -> list[Entry]:
    raise ValueError(SECRET)


@resource("unlisted://{message}", title="Unlisted", right="echo_message", entries=list_badly, inline=True)
def unlisted(ctx: Context, args: Echo) -> str:
    """Cannot list what it holds."""
    return args.message


@resource("asked://{message}", title="Asked", right="echo_message")
async def asked(ctx: Context, args: Echo) -> str:
    """Asks before it answers."""
    answer = await ctx.elicit(f"May I say {args.message}?", NAME)
    return f"{args.message} {answer}"


class Review(ToolInput):
    language: Literal["python", "php", "rust"] = Field(description="Which language.")
    strict: bool = Field(False, description="Whether to be strict.")
    depth: int = Field(1, ge=1, le=3, description="How deep.")
    focus: str = Field("everything", description="What to look at.")


async def complete_focus(ctx: Context, typed: str, others: Mapping[str, str]) -> list[str]:
    names = [f"{others.get('language', 'any')}-{number}" for number in range(120)]
    return [name for name in names if name.startswith(typed)]


@prompt(title="Code review", right="echo_message", complete={"focus": complete_focus}, inline=True)
def code_review(ctx: Context, args: Review) -> list[Message]:
    """Asks for a review."""
    return [
        Message("user", f"Review this {args.language}, {args.strict=}, {args.depth=}, {args.focus}."),
        Message("assistant", Embedded("echo://hello", "hello", "text/plain")),
    ]


@prompt(title="Judgement", right="judge_things", inline=True)
def judgement(ctx: Context, args: NoInput) -> str:
    """How to judge."""
    return SECRET


@prompt(title="Broken", right="echo_message")
def broken_prompt(ctx: Context, args: Broken) -> str:
    """Fails as told."""
    return spoil(ctx, args.how)


@prompt(title="Topics", right="add_topic")
def topic_overview(ctx: Context, args: NoInput) -> str:
    """All topics."""
    return ", ".join(entry.name for entry in list_topics(ctx)) or "none"


@prompt(title="Asked", right="echo_message")
async def asked_prompt(ctx: Context, args: Echo) -> str:
    """Asks before it answers."""
    return f"{args.message} {await ctx.elicit('Who are you?', NAME)}"


@resource("waiting://{message}", title="Waiting", right="echo_message", timeout_s=0.5)
async def waiting(ctx: Context, args: Echo) -> str:
    """Reports, and then waits longer than it may."""
    ctx.progress(1, 2, "half")
    await asyncio.Event().wait()
    return args.message


@resource("endless://{message}", title="Endless", right="echo_message")
async def endless(ctx: Context, args: Echo) -> str:
    """Reports, and then waits until nobody wants it any more."""
    ctx.progress(1, 2, "half")
    await asyncio.Event().wait()
    return args.message

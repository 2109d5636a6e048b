"""A plugin of one file, as an author would start: a note for each tenant, and tools that ask, tell and fail."""

from typing import Any

from pydantic import Field

from rookery.core.context import Context
from rookery.core.errors import NotFound
from rookery.core.prompt import prompt
from rookery.core.resource import Entry, resource
from rookery.core.tool import NoInput, ToolInput, ToolOutput, tool


class SaveNote(ToolInput):
    name: str = Field(min_length=1, max_length=50, description="Name of the note.")
    text: str = Field(max_length=500, description="What to write down.")
    minutes: float | None = Field(None, ge=0, description="For how long; for good if absent.")


class NoteName(ToolInput):
    name: str = Field(min_length=1, max_length=50, description="Name of the note.")


class Note(ToolOutput):
    name: str
    text: str


@tool(
    title="Save note", effect="write", action="notes:write", tier="act", group="Write", profiles="W", default=True,
)  # fmt: skip
def save_note(ctx: Context, args: SaveNote) -> Note:
    """Write a note down. Use it for what should be there tomorrow.
    Returns the note. At most 500 characters; a note of that name is replaced."""
    ctx.storage.set(f"notes/{args.name}", args.text, ttl_s=None if args.minutes is None else args.minutes * 60)
    return Note(name=args.name, text=args.text)


@tool(
    title="Get note", effect="read", action="notes:read", tier="observe", group="Read", profiles="W", default=True,
)  # fmt: skip
def get_note(ctx: Context, args: NoteName) -> Note:
    """Read a note. Use it to see what was written down.
    Returns the note. Only what this installation's agents saved."""
    text = ctx.storage.get(f"notes/{args.name}")
    if text is None:
        raise NotFound(f"there is no note {args.name}", hint="save_note writes one")
    return Note(name=args.name, text=text)


def asking(**how: Any) -> Any:
    declared = {"title": "Probe", "effect": "external", "action": "notes:ask", "tier": "act", "group": "System"}
    return tool(**{**declared, "profiles": "", "default": True, **how})


class Said(ToolOutput):
    said: Any


FORM = {"type": "object", "properties": {"colour": {"type": "string"}}, "required": ["colour"]}


@asking()
async def ask_person(ctx: Context, args: NoInput) -> Said:
    return Said(said=await ctx.elicit("Which colour?", FORM))


@asking()
async def ask_model(ctx: Context, args: NoInput) -> Said:
    return Said(said=await ctx.sample("Say something", max_tokens=7, system="Be short"))


@asking()
async def ask_folders(ctx: Context, args: NoInput) -> Said:
    return Said(said=[root.uri for root in await ctx.roots()])


@asking(effect="write")
def count_up(ctx: Context, args: NoInput) -> Said:
    for step in (1, 2, 3):
        ctx.progress(step, 3, f"step {step}")
        ctx.log("warning", f"at {step}", logger="counter")
    return Said(said=3)


@asking(effect="read")
def stumble(ctx: Context, args: NoInput) -> Said:
    raise ZeroDivisionError("a secret of the handler")


@asking(default=False)
async def wait_forever(ctx: Context, args: NoInput) -> Said:
    ctx.emit_status("waiting")
    while True:
        await ctx.read(lambda tx: None)


def notes(ctx: Context) -> list[Entry]:
    names = [key.removeprefix("notes/") for key in ctx.storage.list("notes/").keys]
    return [Entry(f"notes://{name}", name) for name in names]


@resource("notes://{name}", title="Note", right="get_note", mime_type="text/plain", entries=notes)
def note(ctx: Context, args: NoteName) -> bytes | str:
    """One note."""
    found = ctx.storage.get(f"notes/{args.name}", "nothing")
    return found.encode() if args.name == "raw" else found


@prompt(title="Think", right="get_note")
def think(ctx: Context, args: NoteName) -> str:
    """Asks for thoughts on a note."""
    return f"Think about {args.name}."

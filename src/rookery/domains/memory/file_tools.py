"""The tool with which a profile keeps Markdown files for its later sessions, and the resource that reads them."""

import asyncio
from typing import Annotated, Literal

from pydantic import Field, StringConstraints

from rookery.core.actor import Actor
from rookery.core.context import Context
from rookery.core.errors import ConfigurationError, NotFound, PermissionDenied
from rookery.core.resource import resource
from rookery.core.tool import EVERY_PROFILE, ToolInput, ToolOutput, tool
from rookery.domains.memory.file_copies import ROUNDS, Copies, folder_of
from rookery.domains.memory.file_store import GLOBAL, MemoryFiles, Shelf
from rookery.domains.memory.hygiene import refuse_secrets
from rookery.sealing.keyring import Keyring

MAX_CONTENT = 10_000
Scope = Literal["project", "global"]
# Beside the file stands for a moment one with a longer name, and a name has at most 255 bytes.
Filename = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_-]+\.md$", max_length=128)]


class UpdateMemory(ToolInput):
    scope: Scope = Field(description="For this project, or for all.")
    filename: Filename = Field(description="Like codebase-notes.md.")
    content: str = Field(max_length=MAX_CONTENT, description="The whole new Markdown.")


class UpdatedMemory(ToolOutput):
    path: str
    warning: str | None = None


class MemoryFileAddress(ToolInput):
    scope: Scope = Field(description="project or global.")
    filename: Filename = Field(description="Name of the file.")


@tool(
    title="Update memory", effect="external", action="memory:write", tier="act", group="Write",
    profiles=EVERY_PROFILE, default=False, open_world=False, idempotent=True, outline=False,
)  # fmt: skip
async def update_memory(ctx: Context, args: UpdateMemory) -> UpdatedMemory:
    """Overwrite a memory file of your profile. Use it for what every later session of the profile must be told at
    its start. Returns its path. At most 10,000 characters."""
    shelf = _shelf(ctx.actor, args.scope)
    facts = ctx.platform.facts
    keyring: Keyring | None = facts.get("keyring")
    _refuse_plain(facts.get("network", "local"), keyring)
    refuse_secrets(args.content)
    copies = Copies(_home(facts.get("home")))
    await asyncio.to_thread(copies.prepare, shelf)
    who = ctx.actor.subject
    await ctx.write(lambda tx: MemoryFiles(tx, keyring).put(shelf, args.filename, args.content, who))
    warning = await _copied(ctx, copies, shelf)
    return UpdatedMemory(path=f"{folder_of(shelf)}/{args.filename}", warning=warning)


async def _copied(ctx: Context, copies: Copies, shelf: Shelf) -> str | None:
    """Bring the copies up to date with the rows; what stands in the way, if something does. The rows count anyway."""
    try:
        for _ in range(ROUNDS):
            rows = await ctx.read(lambda tx: MemoryFiles(tx).of(shelf))
            if not await asyncio.to_thread(copies.bring, shelf, rows):
                return None
    except ConfigurationError as error:
        return f"The memory is updated, its file is not: {error.message}."
    return "The memory is updated; its file follows when others write less often."


@resource("memory-file://{scope}/{filename}", title="Memory file", right="update_memory", mime_type="text/markdown")
def memory_file(ctx: Context, args: MemoryFileAddress) -> str:
    """A memory file of your profile, whole, in the scope project or global."""
    store = MemoryFiles(ctx.tx, ctx.platform.facts.get("keyring"))
    row = store.find(_shelf(ctx.actor, args.scope), args.filename)
    if row is None:
        raise NotFound(f"there is no memory file {args.filename}", hint="update_memory makes one")
    return store.open(row)


def _shelf(actor: Actor, scope: Scope) -> Shelf:
    if actor.profile is None:
        raise PermissionDenied(
            "memory files belong to a profile and this session has none",
            hint="start the session with --agent-type, such as --agent-type worker",
            layer="binding",
        )
    if scope == "global":
        return Shelf(actor.tenant, GLOBAL, actor.profile)
    if actor.project_slug is None:
        raise PermissionDenied(
            "this memory file belongs to a project and this session has none",
            hint="start the session with --project-slug, or use the scope global",
            layer="binding",
        )
    return Shelf(actor.tenant, actor.project_slug, actor.profile)


def _home(home: str | None) -> str:
    if not home:
        raise ConfigurationError(
            "there is no home folder for memory files", hint="start the server with --home, or set ROOKERY_HOME"
        )
    return home


def _refuse_plain(network: str, keyring: Keyring | None) -> None:
    if network != "local" and keyring is None:
        raise ConfigurationError(
            f"on the network {network} nothing is remembered in the clear",
            hint="the owner sets ROOKERY_MNEMONIC or a key file; without one the network must be local",
        )

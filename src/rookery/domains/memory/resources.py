"""Memories, to be read by address."""

from collections.abc import Mapping
from urllib.parse import quote

from pydantic import Field

from rookery.core.context import Context
from rookery.core.resource import Entry, resource
from rookery.core.tool import ToolInput
from rookery.domains.memory.recalls import recalls_of
from rookery.domains.memory.tools import Key, memories_of

LISTED = 100
TEXT = "text/plain"


class MemoryAddress(ToolInput):
    key: Key = Field(description="Key of the memory.")


def _newest(ctx: Context) -> list[Entry]:
    return [
        Entry(f"memory://{quote(found.key, safe='')}", name=found.key, mime_type=TEXT)
        for found in memories_of(ctx, ctx.tx).newest(LISTED)
    ]


def _keys(ctx: Context, typed: str, others: Mapping[str, str]) -> list[str]:
    newest = memories_of(ctx, ctx.tx).newest(LISTED)
    return [found.key for found in newest if found.key.casefold().startswith(typed.strip().casefold())]


@resource(
    "memory://{key}", title="Memory", right="recall_memory", mime_type=TEXT, entries=_newest, complete={"key": _keys}
)
def memory(ctx: Context, args: MemoryAddress) -> str:
    """One of your memories, whole. Nobody else's can be read."""
    found = memories_of(ctx, ctx.tx).find(args.key)
    recalls_of(ctx.platform).add([found.row.seq])
    return found.content

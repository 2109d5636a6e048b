"""A tool that does whatever the test at hand wants it to do."""

from collections.abc import Awaitable, Callable

from rookery.core.context import Context
from rookery.core.tool import tool
from tests.server.streamable.probes import COMMON, READING, Named, Said

scripts: dict[str, Callable[[Context], Awaitable[str]]] = {}
"""What `play_script` does, by name."""
writes: dict[str, Callable[[Context], str]] = {}
"""What `play_write` does, by name, in a thread and a transaction."""


@tool(title="Play", effect="external", action="probe:run", **COMMON)
async def play_script(ctx: Context, args: Named) -> Said:
    """Do what the test wants. Use it in tests only. Returns what the script returns."""
    return Said(text=await scripts[args.name](ctx))


@tool(title="Play in a transaction", effect="write", action="probe:run", **COMMON)
def play_write(ctx: Context, args: Named) -> Said:
    """Do what the test wants in a transaction. Use it in tests only. Returns what the script returns."""
    return Said(text=writes[args.name](ctx))


@tool(title="Recall", effect="read", action="probe:read", **READING)
def recall_text(ctx: Context, args: Named) -> Said:
    """Look up what a script has kept. Use it in tests only. Returns the text, or nothing."""
    return Said(text=ctx.storage.get(args.name, "nothing"))

"""The event loop that the server runs on."""

import asyncio
import gc
from collections.abc import Coroutine
from typing import Any, TypeVar

from rookery.server.stall import StallWatch

T = TypeVar("T")
COLLECT_AT = (20_000, 20, 50)


def run(main: Coroutine[Any, Any, T]) -> T:
    """Run `main` on uvloop where it is installed, else on asyncio's own loop. No handler can hold it up for long."""
    try:
        import uvloop
    except ImportError:
        return asyncio.run(_watched(main))
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(_watched(main))


def settle_memory() -> None:
    """Once everything is loaded: keep the collector from walking through it again and again.

    The classes and schemas of the protocol are most of what it would look at, and they live as long as the process.
    """
    gc.freeze()
    gc.set_threshold(*COLLECT_AT)
    gc.enable()


async def _watched(main: Coroutine[Any, Any, T]) -> T:
    watch = StallWatch()
    try:
        return await main
    finally:
        watch.stop()

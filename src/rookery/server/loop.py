"""The event loop that the server runs on."""

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

from rookery.server.stall import StallWatch

T = TypeVar("T")


def run(main: Coroutine[Any, Any, T]) -> T:
    """Run `main` on uvloop where it is installed, else on asyncio's own loop. No handler can hold it up for long."""
    try:
        import uvloop
    except ImportError:
        return asyncio.run(_watched(main))
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(_watched(main))


async def _watched(main: Coroutine[Any, Any, T]) -> T:
    watch = StallWatch()
    try:
        return await main
    finally:
        watch.stop()

"""Threads for what blocks on the way out: looking names up, and handing mail in.

Their own, and many: whoever chooses slow targets must hold up neither the rest of the process nor every other target.
"""

import asyncio
import functools
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

T = TypeVar("T")
MOST = 64


async def in_thread(work: Callable[[], T]) -> T:
    """What `work` returns, done in one of those threads."""
    return await asyncio.get_running_loop().run_in_executor(_threads(), work)


@functools.cache
def _threads() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(MOST, "rookery-outgoing")

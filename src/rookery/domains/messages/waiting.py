"""Waiting for the end of a delivery that some worker, in whatever process, is at."""

import asyncio
import contextlib
import time
from typing import cast

from rookery.core.context import Context
from rookery.db.database import Database
from rookery.domains.messages.store import OPEN, WAKE, Messages, Row

LOOK_S = 1.0
"""So often somebody looks who was not told, as can happen when a connection is lost."""
SPARE_S = 5.0
"""What is left of a call's time for telling how it went."""


async def ended(ctx: Context, message_id: str, limit_s: float) -> Row | None:
    """The message once its delivery is over; None if that takes longer than `limit_s` or than the call may."""
    deadline = time.monotonic() + min(limit_s, ctx.remaining_s - SPARE_S)
    loop = asyncio.get_running_loop()
    told = asyncio.Event()

    def hear(name: str) -> None:
        if name in (WAKE, ""):
            with contextlib.suppress(RuntimeError):
                loop.call_soon_threadsafe(told.set)

    deaf = cast(Database, ctx.platform.database).on_wake(hear)
    try:
        while True:
            told.clear()
            row = await ctx.read(lambda tx: Messages(tx, ctx.actor.tenant).find(message_id))
            if row is None or row.status not in OPEN:
                return row
            left_s = deadline - time.monotonic()
            if left_s <= 0:
                return None
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(min(left_s, LOOK_S)):
                    await told.wait()
    finally:
        deaf()

"""Waiting for an ask to be answered, by whomever and in whatever process."""

import asyncio
import contextlib
import time
from collections.abc import Awaitable, Callable, Generator

from rookery.asks.store import Asks, Row, wake_name
from rookery.asks.tables import OPEN
from rookery.core.errors import DatabaseError, NotFound
from rookery.db.database import Database
from rookery.db.tx import Tx

LOOK_S = 1.0
"""However deaf we are, an answer is seen after so long."""


@contextlib.contextmanager
def listening(database: Database, *names: str) -> Generator[asyncio.Event]:
    """An event that is set by commits that wake one of `names`, and by those of other processes."""
    called = asyncio.Event()
    loop = asyncio.get_running_loop()

    def wake(name: str) -> None:
        if name in names or not name:
            # A loop that has ended waits for nothing.
            with contextlib.suppress(RuntimeError):
                loop.call_soon_threadsafe(called.set)

    deaf = database.on_wake(wake)
    try:
        yield called
    finally:
        deaf()


async def until_settled(
    database: Database,
    tenant: str,
    ask_id: str,
    within_s: float,
    *,
    aside: asyncio.Task[None] | None = None,
    each_look: Callable[[float], None] | None = None,
) -> Row:
    """The ask as soon as it is no longer open, or as it is after `within_s`.

    `aside` is something that may settle it meanwhile: what it raises is raised here, and its end is a reason to look.
    `each_look` is told now and then how long it has taken so far.
    """

    def look(tx: Tx) -> Row | None:
        return Asks(tx, tenant).find(ask_id)

    began = time.monotonic()
    with listening(database, wake_name(ask_id)) as called:
        while True:
            called.clear()
            waited = time.monotonic() - began
            try:
                row = await database.read(look)
            except DatabaseError:
                # Out of reach for a while; the question is safe where it is.
                if waited >= within_s:
                    raise
                await asyncio.sleep(min(LOOK_S, within_s - waited))
                continue
            if row is None:
                raise NotFound(f"there is no ask {ask_id}")
            if row.status != OPEN:
                return row
            if aside is not None and aside.done():
                aside.result()
                aside = None
                continue
            if waited >= within_s:
                return row
            if each_look is not None:
                each_look(waited)
            await _first(called.wait(), aside, min(LOOK_S, within_s - waited))


async def _first(call: Awaitable[object], aside: asyncio.Task[None] | None, limit_s: float) -> None:
    """Until the call comes, `aside` has ended, or the time is over."""
    waiting = asyncio.ensure_future(call)
    try:
        await asyncio.wait(
            [waiting, *([aside] if aside is not None else [])], timeout=limit_s, return_when="FIRST_COMPLETED"
        )
    finally:
        waiting.cancel()

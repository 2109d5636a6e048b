"""A message as programs send it: they get what happens in its turn."""

import asyncio
import contextlib
from collections.abc import AsyncGenerator

from rookery.core.actor import Actor
from rookery.core.errors import Conflict
from rookery.db.database import Database
from rookery.db.tx import Tx
from rookery.sessions.log import Kept, SessionLog
from rookery.sessions.store import SessionRows
from rookery.sessions.tables import DONE, DROPPED, LOST
from rookery.sessions.writing import kept_after

LOOK_S = 1.0


async def sent(database: Database, log: SessionLog, opener: Actor, session_id: str, text: str) -> AsyncGenerator[Kept]:
    """Queue a message, and give what happens in its turn, up to its `done`. Conflict if it never has one."""

    def queue(tx: Tx) -> tuple[str, str, int]:
        rows = SessionRows(tx, opener.tenant, opener.closed)
        row = rows.of(session_id)
        return row.id, rows.queue(row.id, text, opener.subject).message.id, row.event_count

    own_id, message_id, seen = await database.change(queue)
    run_id: str | None = None
    async with contextlib.aclosing(_followed(database, log, opener.tenant, own_id, message_id, seen)) as events:
        async for event in events:
            if event.name == "turn_input" and event.data.get("message_id") == message_id:
                run_id = event.run_id
            if event.run_id == run_id:
                yield event
                if event.name == "done":
                    return


async def _followed(
    database: Database, log: SessionLog, tenant: str, session_id: str, message_id: str, seen: int
) -> AsyncGenerator[Kept]:
    """What happens in the session, as long as the message waits or is being answered."""
    last = seen
    async with contextlib.aclosing(log.follow(tenant, session_id, seen)) as batches:
        coming = asyncio.ensure_future(anext(batches))
        try:
            while True:
                await asyncio.wait([coming], timeout=LOOK_S)
                if coming.done():
                    for event in coming.result():
                        last = event.number
                        yield event
                    coming = asyncio.ensure_future(anext(batches))
                    continue
                await database.read(lambda tx, after=last: _expect(tx, tenant, session_id, message_id, after))
        finally:
            coming.cancel()
            await asyncio.gather(coming, return_exceptions=True)


def _expect(tx: Tx, tenant: str, session_id: str, message_id: str, after: int) -> None:
    """Conflict if nothing is to come of the message after that event."""
    row = SessionRows(tx, tenant).message(session_id, message_id)
    if row is None or row.state == DROPPED:
        raise Conflict("the message was taken back before its turn", hint="send it again if it is wanted")
    if row.state not in (DONE, LOST):
        return
    if row.run_id is None:
        raise Conflict("the message could not be answered", hint="list_sessions shows the error")
    if not kept_after(tx, tenant, session_id, after, 1):
        raise Conflict("the end of the turn was not recorded", hint="list_sessions shows what is known of it")

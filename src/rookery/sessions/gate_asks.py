"""Shows in a session what the gate asks for its agent: programs that cannot be asked back call tools, and are held."""

import asyncio
import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from rookery.asks.approvals import ATTENDED_MS
from rookery.asks.store import Asks, Row
from rookery.asks.tables import OPEN
from rookery.asks.waiting import until_settled
from rookery.core.errors import RookeryError
from rookery.core.events import Event
from rookery.db.database import Database
from rookery.sessions.asking import prompt_of, resolved_of
from rookery.sessions.foreign_tools import OUR_PREFIX

if TYPE_CHECKING:
    from rookery.sessions.turn import Turn

log = logging.getLogger("rookery.sessions")


class GateAsks:
    """Follows the approvals that the gate opens while a turn is under way. `turn_of` finds the turn of a session."""

    def __init__(self, database: Database, turn_of: Callable[[str | None], "Turn | None"]) -> None:
        self._database = database
        self._turn_of = turn_of
        self._tasks: set[asyncio.Task[None]] = set()

    def heard(self, event: Event) -> None:
        """For `Events.subscribe`, on the loop. Those that a host opened for its agent say so, and are shown by it."""
        if event.name != "AskOpened" or event.payload.get("kind") != "approval" or event.payload.get("hosted"):
            return
        try:
            task = asyncio.get_running_loop().create_task(self._show(event.tenant, event.subject or ""))
        except RuntimeError:
            # Somebody without a loop has published it; there are no turns then.
            return
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def close(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _show(self, tenant: str, ask_id: str) -> None:
        try:
            ask: Row | None = await self._database.read(lambda tx: Asks(tx, tenant).find(ask_id))
            turn = self._turn_of(ask.session) if ask is not None else None
            if ask is None or turn is None or ask.status != OPEN:
                return
            tool = f"{OUR_PREFIX}{ask.subject}"
            call_id = turn.call_of(tool) or ""
            shown: dict[str, Any] = {"tool": tool, "input": {}, "title": ask.question, "reason": ask.context}
            turn.tell("approval_required", {**prompt_of(ask, call_id), **shown})
            row = await self._settled(turn, tenant, ask_id)
            if row is not None:
                turn.tell("interaction_resolved", resolved_of(row, call_id))
        except RookeryError as error:
            log.warning("the ask %s is not shown in its session: %s", ask_id, error.message)

    async def _settled(self, turn: "Turn", tenant: str, ask_id: str) -> Row | None:
        """The ask once it is over; None if the turn is over first. It stays open then, for the same call later."""
        settling = asyncio.ensure_future(until_settled(self._database, tenant, ask_id, ATTENDED_MS / 1000))
        ending = asyncio.ensure_future(turn.wait())
        try:
            await asyncio.wait([settling, ending], return_when=asyncio.FIRST_COMPLETED)
            return settling.result() if settling.done() else None
        finally:
            settling.cancel()
            ending.cancel()
            await asyncio.gather(settling, ending, return_exceptions=True)

"""A reception where agents ask and their owner answers, as fast or as slowly as a test says."""

import asyncio
from collections.abc import Sequence
from typing import Any

import sqlalchemy as sa

from rookery.asks.store import HOUR_MS
from rookery.asks.tables import asks
from rookery.core.actor import Actor
from rookery.core.context import SilentDoor
from rookery.core.events import Event
from rookery.identity.store import IdentityStore
from tests.platform_fixtures import Fleet

LIMIT_S = 20.0
QUESTION = "Which colour?"


class Ear(SilentDoor):
    """Hears under which id a question is kept."""

    def __init__(self) -> None:
        self.heard: asyncio.Future[str] = asyncio.get_running_loop().create_future()

    def tell(self, method: str, params: dict[str, Any]) -> None:
        if not self.heard.done():
            self.heard.set_result(params["message"].rpartition("ask_id: ")[2])


class Reception:
    """Speaks to the platform as agents and people do."""

    def __init__(self, fleet: Fleet) -> None:
        self.fleet = fleet
        self.platform = fleet.platform
        self.events: list[Event] = []
        self.platform.events.subscribe(self.events.append)

    @property
    def owner(self) -> Actor:
        return self.fleet.owner

    @property
    def ada(self) -> Actor:
        """The default agent, in a session."""
        return self.fleet.actor(session="ses-ada")

    async def agent(self, name: str, **binding: Any) -> Actor:
        await self.fleet.call(self.owner, "create_agent", name=name)
        return self.fleet.actor(agent=name, session=f"ses-{name}", **binding)

    def stranger(self, **binding: Any) -> Actor:
        """Somebody of another tenant on the same database."""
        self.platform.database.direct(lambda tx: IdentityStore(tx, "other").set_up(), write=True)
        return self.fleet.actor(tenant="other", **binding)

    async def call(self, actor: Actor, tool: str, /, **arguments: Any) -> Any:
        async with asyncio.timeout(LIMIT_S):
            return await self.fleet.call(actor, tool, **arguments)

    async def ask(self, actor: Actor | None = None, /, **given: Any) -> tuple["asyncio.Task[Any]", Any]:
        """A question that waits: the call, and the row of the ask."""
        ear, asked = Ear(), {"question": QUESTION, **given}
        call = asyncio.create_task(self._call(actor or self.ada, asked, ear))
        async with asyncio.timeout(LIMIT_S):
            await asyncio.wait([call, ear.heard], return_when="FIRST_COMPLETED")
        return call, self.row(ear.heard.result() if ear.heard.done() else call.result().ask_id)

    async def _call(self, actor: Actor, asked: dict[str, Any], ear: "Ear") -> Any:
        async with asyncio.timeout(LIMIT_S):
            return (await self.platform.calls.call(actor, "ask_owner", asked, door=ear)).value

    async def opened(self, actor: Actor | None = None, /, **given: Any) -> Any:
        """The row of an open ask for which nobody waits."""
        call, row = await self.ask(actor, **given)
        call.cancel()
        await asyncio.gather(call, return_exceptions=True)
        return row

    async def answer(self, row: Any, text: str = "green", **how: Any) -> Any:
        return await self.call(self.owner, "answer_ask", ask_id=row.id, answer=text, **how)

    def rows(self, statement: sa.Executable | None = None) -> Sequence[Any]:
        wanted = sa.select(asks).order_by(asks.c.created_ms, asks.c.id) if statement is None else statement
        return self.platform.database.direct(lambda tx: tx.all(wanted))

    def row(self, ask_id: str) -> Any:
        return self.rows(sa.select(asks).where(asks.c.id == ask_id))[0]

    def jobs(self, kind: str) -> Sequence[Any]:
        found = sa.text("SELECT args, due_ms, state FROM jobs WHERE kind = :kind ORDER BY id").columns(args=sa.JSON)
        return self.platform.database.direct(lambda tx: tx.all(found, {"kind": kind}))

    def pass_hours(self, hours: float, *, but: tuple[str, ...] = ()) -> None:
        """Make everything that was asked so much older."""
        past = round(hours * HOUR_MS)
        names = [name for name in ("created_ms", "expires_ms", "answered_ms", "told_ms") if name not in but]
        times: dict[str, Any] = {name: asks.c[name] - past for name in names}
        self.platform.database.direct(lambda tx: tx.run(sa.update(asks).values(times)), write=True)

    def told(self, name: str) -> list[Event]:
        """The events of that name so far."""
        return [event for event in self.events if event.name == name]

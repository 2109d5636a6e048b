"""A place where sessions are held: a fleet whose agents play scripts, a worker when one is wanted, and a person."""

import asyncio
import contextlib
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from typing import Any, cast

import sqlalchemy as sa

from rookery.app import Platform
from rookery.asks.store import Asks
from rookery.core.actor import Actor
from rookery.db.tx import Tx
from rookery.lifecycle.run_tables import agent_runs
from rookery.runtimes.scripted import Scripted
from rookery.sessions.manager import AgentSessions
from rookery.sessions.opening import Opening, open_session
from rookery.sessions.port import AgentRuntime
from rookery.sessions.store import Row, SessionRows
from rookery.sessions.tables import session_messages
from rookery.sessions.writing import Kept, kept_after
from tests.jobs.working import running_worker
from tests.platform_fixtures import Fleet

LIMIT_S = 60.0


def use_sessions(platform: Platform, runtime: AgentRuntime | None = None) -> AgentSessions:
    """Let the agents of a platform be started by this runtime, or play scripts."""
    started = runtime or Scripted(platform)
    sessions = AgentSessions(
        platform.calls, platform.database, platform.resolver, platform.settings, {started.name: started}, started.name
    )
    cast("dict[str, Any]", platform.calls.facts).update(sessions=sessions, runtime=sessions)
    return sessions


class Stage:
    """Opens sessions and sends messages as the owner does."""

    def __init__(self, fleet: Fleet, runtime: AgentRuntime | None = None) -> None:
        self.fleet = fleet
        self.platform = fleet.platform
        self.database = fleet.platform.database
        self.sessions = use_sessions(self.platform, runtime)

    def use(self, runtime: AgentRuntime) -> None:
        """From now on agents are started by this one; those of before are forgotten, as if their process had ended."""
        self.sessions = use_sessions(self.platform, runtime)

    @contextlib.asynccontextmanager
    async def at_work(self, **how: Any) -> AsyncGenerator[None]:
        """A worker, and at its end no agent is left."""
        async with running_worker(self.platform, **how) as worker:
            try:
                yield
            finally:
                self.sessions.stop_soon()
                worker.stop()
        await self.sessions.close()

    def open(self, opener: Actor | None = None, **opening: Any) -> Row:
        wanted = Opening(**opening)
        who = opener or self.fleet.owner
        return self.write(lambda tx: open_session(tx, self.platform.resolver, self.sessions.ways, who, wanted))

    def send(self, session_id: str, *script: str, message_id: str | None = None) -> str:
        """Queue a message; its id."""
        text = "\n".join(script)
        queued = self.write(lambda tx: SessionRows(tx, "default").queue(session_id, text, "owner", message_id))
        return queued.message.id

    async def turn(self, session_id: str, *script: str) -> dict[str, Any]:
        """The data of the `done` of a turn."""
        message_id = self.send(session_id, *script)
        return (await self.done(session_id, message_id)).data

    async def done(self, session_id: str, message_id: str) -> Kept:
        """The `done` of the turn of that message, once it is there."""

        def found() -> Kept | None:
            run = next((e.run_id for e in self.events(session_id) if e.data.get("message_id") == message_id), None)
            return next((e for e in self.events(session_id) if e.name == "done" and e.run_id == run), None)

        return await self.until(found, f"{message_id} is done")

    def events(self, session_id: str, *names: str) -> list[Kept]:
        kept = self.read(lambda tx: kept_after(tx, "default", session_id, 0, 10_000))
        return [event for event in kept if not names or event.name in names]

    def names(self, session_id: str) -> list[str]:
        return [event.name for event in self.events(session_id)]

    def row(self, session_id: str) -> Row:
        return self.read(lambda tx: SessionRows(tx, "default").of(session_id))

    def message(self, message_id: str) -> Row:
        wanted = sa.select(session_messages).where(session_messages.c.id == message_id)
        return self.read(lambda tx: tx.all(wanted))[0]

    def runs(self) -> Sequence[Row]:
        return self.read(lambda tx: tx.all(sa.select(agent_runs).order_by(agent_runs.c.created_ms, agent_runs.c.id)))

    def asks(self, status: str | None = "open") -> Sequence[Row]:
        return self.read(lambda tx: Asks(tx, "default").page(status, 100))

    async def asked(self, count: int = 1) -> Sequence[Row]:
        """The open asks, once there are so many."""
        return await self.until(lambda: rows if len(rows := self.asks()) >= count else None, "somebody is asked")

    def answer(self, ask_id: str, text: str, **how: Any) -> None:
        self.write(lambda tx: Asks(tx, "default").answer(ask_id, text, "owner", "test", **how))

    def change(self, work: Callable[[SessionRows], Any]) -> Any:
        return self.write(lambda tx: work(SessionRows(tx, "default")))

    def read(self, work: Callable[[Tx], Any]) -> Any:
        return self.database.direct(work)

    def write(self, work: Callable[[Tx], Any]) -> Any:
        return self.database.direct(work, write=True)

    async def until(self, reached: Callable[[], Any], what: str) -> Any:
        deadline = time.monotonic() + LIMIT_S
        while not (found := reached()):
            assert time.monotonic() < deadline, what
            await asyncio.sleep(0.01)
        return found

    async def call(self, tool: str, /, **arguments: Any) -> Any:
        return await self.fleet.call(self.fleet.owner, tool, **arguments)


async def gathered(*waits: Awaitable[Any]) -> list[Any]:
    return list(await asyncio.wait_for(asyncio.gather(*waits), LIMIT_S))

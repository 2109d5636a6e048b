"""Agents that have nothing to do and are kept for the next message: not for ever, and not too many."""

import asyncio
import logging
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import sqlalchemy as sa

from rookery.core.actor import Mode
from rookery.db.tx import Tx
from rookery.lifecycle.pauses import Pauses
from rookery.sessions.asking import Interactions
from rookery.sessions.port import Agent
from rookery.sessions.redaction import Redaction
from rookery.sessions.servers import Servers
from rookery.sessions.tables import ENDED, agent_sessions

log = logging.getLogger("rookery.sessions")
STOP_S = 10.0
"""So long an agent has to stop."""


@dataclass(slots=True)
class Warm:
    """An agent that lives, whom it asks, and with what it was started."""

    agent: Agent
    host: Interactions
    mode: Mode
    models: set[str | None]
    """What its model was to be, and what the agent calls it."""
    redaction: Redaction
    servers: Servers
    """What it was given besides our own server."""
    since: float = field(default_factory=time.monotonic)


def over_or_paused(tx: Tx, session_ids: Sequence[str]) -> list[str]:
    """Which of these sessions have ended, or have an agent that is paused: no message of theirs is answered now."""
    s = agent_sessions.c
    rows = tx.all(sa.select(s.id, s.tenant, s.state, s.project_id, s.agent).where(s.id.in_(session_ids)))
    held = [row.state == ENDED or Pauses(tx, row.tenant).holding(row.project_id, row.agent) is not None for row in rows]
    return [row.id for row, over in zip(rows, held, strict=True) if over]


async def stop_agent(agent: Agent, session_id: str) -> None:
    """End an agent, as far as its runtime does that within a while. Nothing is raised."""
    stopping = asyncio.ensure_future(agent.stop())
    try:
        await asyncio.wait([stopping], timeout=STOP_S)
    finally:
        if not stopping.done():
            stopping.cancel()
    if not stopping.done():
        stopping.add_done_callback(_forgotten)
        log.error("the agent of %s could not be stopped within %g s", session_id, STOP_S)
    elif not stopping.cancelled() and (error := stopping.exception()) is not None:
        log.error("the agent of %s could not be stopped", session_id, exc_info=error)


def _forgotten(stopping: "asyncio.Future[None]") -> None:
    """Nobody waits for it any more, so nobody is told of its error."""
    if not stopping.cancelled():
        stopping.exception()


class WarmAgents:
    """At most so many, each for at most so long; the one that has waited longest goes first."""

    def __init__(self, idle_s: float, most: int) -> None:
        self._idle_s = idle_s
        self._most = most
        self._agents: dict[str, Warm] = {}
        self._sweeping: asyncio.Task[None] | None = None
        self._stops: set[asyncio.Task[None]] = set()

    def __contains__(self, session_id: str) -> bool:
        return session_id in self._agents

    def __iter__(self) -> Iterator[str]:
        return iter(list(self._agents))

    def __len__(self) -> int:
        return len(self._agents)

    def keep(self, session_id: str, warm: Warm) -> None:
        """Keep an agent that has done its turn."""
        warm.since = time.monotonic()
        self._agents[session_id] = warm
        while len(self._agents) > self._most:
            self.drop(min(self._agents, key=lambda each: self._agents[each].since))
        if self._agents and (self._sweeping is None or self._sweeping.done()):
            self._sweeping = asyncio.create_task(self._sweep(), name="warm agents")

    def take(self, session_id: str) -> Warm | None:
        """The agent of the session, if it is here and can take another message."""
        warm = self._agents.pop(session_id, None)
        if warm is not None and not warm.agent.alive:
            self.stop(session_id, warm)
            return None
        return warm

    def drop(self, session_id: str) -> None:
        """Let the agent of the session stop, if it is here."""
        warm = self._agents.pop(session_id, None)
        if warm is not None:
            self.stop(session_id, warm)

    async def close(self) -> None:
        """Stop all of them."""
        for session_id in list(self._agents):
            self.drop(session_id)
        if self._sweeping is not None:
            self._sweeping.cancel()
            await asyncio.gather(self._sweeping, return_exceptions=True)
        if self._stops:
            await asyncio.wait(self._stops)

    def stop(self, session_id: str, warm: Warm) -> None:
        """Let an agent stop that is not among these."""
        task = asyncio.create_task(stop_agent(warm.agent, session_id))
        self._stops.add(task)
        task.add_done_callback(self._stops.discard)

    async def _sweep(self) -> None:
        """Stop each when its time has come."""
        while self._agents:
            oldest = min(self._agents, key=lambda each: self._agents[each].since)
            left_s = self._agents[oldest].since + self._idle_s - time.monotonic()
            if left_s <= 0:
                self.drop(oldest)
            else:
                await asyncio.sleep(left_s)

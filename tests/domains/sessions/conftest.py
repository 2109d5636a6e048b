"""A fleet with sessions that nobody runs: rows, what is sent to them, and what happened in them."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from rookery.core.actor import Actor
from rookery.identity.store import IdentityStore
from rookery.sessions.events import SessionEvent
from rookery.sessions.log import SessionLog
from rookery.sessions.store import NewSession, Row, SessionRows
from tests.platform_fixtures import Fleet
from tests.sessions.kept import run_of


@dataclass
class Desk:
    """A fleet with two agents and a folder in which agents may work."""

    fleet: Fleet
    folder: Path

    def opened(self, agent: str | None = None, tenant: str = "default", **more: Any) -> str:
        """The id of a session of this agent."""
        wanted = {"runtime": "scripted", "mode": "act", "opened_by": "me", **more}
        new = NewSession(
            actor=self.fleet.actor(agent=agent, tenant=tenant, project=wanted.pop("project", None)), **wanted
        )
        return self.rows(lambda rows: rows.create(new), tenant).id

    def rows(self, work: Callable[[SessionRows], Any], tenant: str = "default") -> Any:
        return self.fleet.platform.database.direct(lambda tx: work(SessionRows(tx, tenant)), write=True)

    def row(self, session_id: str) -> Row:
        return self.rows(lambda rows: rows.of(session_id))

    async def happened(self, session_id: str, events: Sequence[SessionEvent]) -> str:
        """Let these events be the session's, in a run of their own; the run's id."""
        run = run_of(self.fleet)
        log = SessionLog(self.fleet.platform.database)
        log.put("default", session_id, run, *events)
        async with asyncio.timeout(30):
            await log.flush(session_id)
            await log.close()
        return run

    async def call(self, tool: str, actor: Actor | None = None, /, **arguments: Any) -> Any:
        return await self.fleet.call(actor or self.fleet.owner, tool, **arguments)


@pytest.fixture
async def desk(database_url: str, make_fleet: Callable[..., Fleet], tmp_path: Path) -> Desk:
    folder = tmp_path / "work"
    (folder / "deep").mkdir(parents=True)
    (tmp_path / "elsewhere").mkdir()
    fleet = make_fleet(database_url, runtime="scripted", session_roots=(str(folder),))
    for name in ("ada", "bob"):
        await fleet.call(fleet.owner, "create_agent", name=name)
    await fleet.call(fleet.owner, "create_project", slug="secret")
    return Desk(fleet, folder)


@pytest.fixture
def stranger(desk: Desk) -> Actor:
    """The owner of another tenant."""
    desk.fleet.platform.database.direct(lambda tx: IdentityStore(tx, "other").set_up(), write=True)
    return desk.fleet.actor(tenant="other", as_owner=True)


@pytest.fixture
async def ada(desk: Desk) -> Actor:
    """An agent that may look at its sessions."""
    for tool in ("list_sessions", "get_session_stats"):
        await desk.call("grant_tool", agent="ada", tool=tool, reason="to test it")
    return desk.fleet.actor(agent="ada")


async def shut(desk: Desk, slug: str = "secret") -> None:
    """Close a project to all agents."""
    await desk.call("set_project_members", project=slug, agents=[])

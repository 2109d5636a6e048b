"""A project that the orchestrator works on, and what would be decided for it now."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import sqlalchemy as sa

from rookery.db.tx import Tx
from rookery.engine.dispatches import Dispatches, NewDispatch, Outcome
from rookery.engine.plan import Plan, Wait, plan
from rookery.engine.project_settings import OrchestratorProjects
from rookery.engine.tables import dispatches
from rookery.engine.world import read_world
from rookery.engine.world_facts import IssueFact, World
from rookery.identity.store import DEFAULT_TENANT
from rookery.settings import Settings
from tests.domains.tracker.desk import Desk
from tests.platform_fixtures import Fleet

T = TypeVar("T")


class Watched(Desk):
    """The desk, with the default project enabled in a folder of its own."""

    def __init__(self, fleet: Fleet, folder: Path) -> None:
        super().__init__(fleet, folder)
        self.project_id: str = self.owner.project or ""
        self.agent_id: str = self.actor(None).agent or ""
        self.enable()

    def direct(self, work: Callable[[Tx], T], *, write: bool = False) -> T:
        return self.fleet.platform.database.direct(work, write=write)

    def enable(self, project_id: str | None = None, tenant: str = DEFAULT_TENANT, **values: Any) -> None:
        """Let the orchestrator work on a project, with these settings, in a folder."""
        wanted = project_id or self.project_id
        self.direct(lambda tx: OrchestratorProjects(tx, tenant).update(wanted, enabled=True, **values), write=True)
        self.change(sa.text("UPDATE projects SET path = '/srv/shop'"))

    def world(self, **how: Any) -> World:
        settings: Settings = self.fleet.platform.settings
        return self.direct(lambda tx: read_world(tx, settings, **how))

    def fact(self, issue: Any, **how: Any) -> IssueFact:
        """The issue as it is read."""
        (found,) = (each for each in self.world(**how).issues if each.id == issue.id)
        return found

    def plan(self, **how: Any) -> Plan:
        return plan(self.world(**how))

    def wait(self, issue: Any, **how: Any) -> Wait:
        """Why the issue waits."""
        told = self.plan(issue_id=issue.id, **how).about(issue.tenant, issue.id)
        assert told is not None
        return told

    def dispatch(self, issue: Any, **values: Any) -> Any:
        """An attempt that waits for its worker."""
        first: dict[str, Any] = {"project_id": self.project_id, "work": "phase", "role": "worker"}
        about = {"issue_id": issue.id, "phase": issue.phase} if issue is not None else {}
        new = NewDispatch(**{**first, "agent": self.agent_id, **about, **values})
        return self.direct(lambda tx: Dispatches(tx, DEFAULT_TENANT).queue(new), write=True)

    def ended(self, issue: Any, outcome: Outcome, at_ms: int | None = None, **values: Any) -> Any:
        """An attempt that ended so: now, or at this time."""
        row = self.dispatch(issue, **values)
        self.direct(lambda tx: Dispatches(tx, DEFAULT_TENANT).end(row.id, outcome), write=True)
        if at_ms is not None:
            times = {"created_ms": at_ms, "ended_ms": at_ms}
            self.change(sa.update(dispatches).where(dispatches.c.id == row.id).values(**times))
        return row

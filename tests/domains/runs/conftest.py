"""A fleet whose default project has runs, and what else tests of runs need."""

from dataclasses import dataclass

import pytest

from rookery.core.actor import Actor
from rookery.identity.store import IdentityStore
from tests.lifecycle.run_rows import RunRows
from tests.platform_fixtures import Fleet


@dataclass
class Ward:
    """A fleet with an issue in its default project, and rows to put more in."""

    fleet: Fleet
    rows: RunRows
    project: str
    issue: str

    def actor(self, profile: str = "judge") -> Actor:
        return self.fleet.actor(profile=profile)

    def start(self, **known: str | int) -> str:
        """The id of a run for the issue, which has just started."""
        return self.rows.start(self.project, **{"issue_id": self.issue, **known})

    async def close(self, slug: str = "default") -> None:
        """Close a project to all agents."""
        await self.fleet.call(self.fleet.owner, "set_project_members", project=slug, agents=[])


@pytest.fixture
def ward(fleet: Fleet) -> Ward:
    rows = RunRows(fleet.platform.database)
    project = fleet.owner.project
    assert project is not None
    return Ward(fleet, rows, project, rows.issue("SYM-001", project))


@pytest.fixture
def stranger(fleet: Fleet) -> Actor:
    """The owner of another tenant."""
    fleet.platform.database.direct(lambda tx: IdentityStore(tx, "other").set_up(), write=True)
    return fleet.actor(tenant="other", as_owner=True)

"""With what people set up an installation: how far it is, the folder of a project, and what a repository suggests.

Not in a module where tools are looked for: no agent has them.
"""

import asyncio
from typing import Any

import sqlalchemy as sa
from pydantic import Field

from rookery.core.context import Context
from rookery.core.tool import NoInput, ToolInput, ToolOutput, tool
from rookery.domains.tracker.inputs import Ref
from rookery.engine.repository_look import RepositoryLook, look_at
from rookery.identity.owner_tool import owner_tool
from rookery.identity.project_folder import absolute_folder
from rookery.identity.sightings import agent_sightings
from rookery.identity.store import IdentityStore, begin_change
from rookery.identity.tables import agents, projects
from rookery.lifecycle.run_tables import agent_runs

_s = agent_sightings.c
_SEEN = (
    sa.select(agents.c.name, _s.door, _s.first_ms, _s.seen_ms)
    .join(agents, sa.and_(agents.c.tenant == _s.tenant, agents.c.id == _s.agent))
    .where(_s.tenant == sa.bindparam("of_tenant"))
    .order_by(_s.first_ms, agents.c.name)
)
_RAN = sa.select(agent_runs.c.id).where(agent_runs.c.tenant == sa.bindparam("of_tenant")).limit(1)


class SeenAgent(ToolOutput):
    name: str
    door: str
    first_ms: int
    seen_ms: int


class SetUpProject(ToolOutput):
    id: str
    slug: str
    name: str
    path: str | None


class SetupState(ToolOutput):
    """How far the installation is. `done`: a project has a folder, and an agent has connected or has run."""

    projects: list[SetUpProject]
    agents: list[SeenAgent]
    has_run: bool
    done: bool


class GiveFolder(ToolInput):
    project: Ref = Field(description="Slug or id.")
    path: str = Field(min_length=1, max_length=4096, description="Folder of its repository, on the server.")


class LookAtRepository(ToolInput):
    path: str = Field(min_length=1, max_length=4096, description="A folder on the server.")


@tool(
    title="Setup state", effect="read", action="identity:read", tier="observe", group="System", profiles="",
    default=False, principals="people",
)  # fmt: skip
def setup_state(ctx: Context, args: NoInput) -> SetupState:
    """Show how far this installation is set up: its projects with their folders, and which agents have connected."""
    values = {"of_tenant": ctx.actor.tenant}
    found = [_shown(row) for row in IdentityStore(ctx.tx, ctx.actor.tenant).projects()]
    seen = [_seen(row) for row in ctx.tx.all(_SEEN, values)]
    has_run = ctx.tx.one(_RAN, values) is not None
    with_folder = any(project.path for project in found)
    return SetupState(projects=found, agents=seen, has_run=has_run, done=with_folder and bool(seen or has_run))


@owner_tool(title="Give folder", effect="write")
def give_folder(ctx: Context, args: GiveFolder) -> SetUpProject:
    """Set the folder in which a project's repository is, on the server. What agents do there already goes on."""
    project = IdentityStore(ctx.tx, ctx.actor.tenant).project(args.project)
    begin_change(ctx.tx)
    mine = (projects.c.tenant == ctx.actor.tenant, projects.c.id == project.id)
    row = ctx.tx.one(sa.update(projects).where(*mine).values(path=absolute_folder(args.path)).returning(projects))
    assert row is not None
    ctx.publish("ScopeChanged", subject=row.id)
    return _shown(row)


@tool(
    title="Look at repository", effect="external", action="identity:read", tier="act", group="System", profiles="",
    default=False, principals="people",
)  # fmt: skip
async def look_at_repository(ctx: Context, args: LookAtRepository) -> RepositoryLook:
    """Say whether a folder of the server is a git repository that agents can work in, what is wrong if it is not, and
    which commands would be gates."""
    return await asyncio.to_thread(look_at, absolute_folder(args.path))


def _seen(row: sa.Row[Any]) -> SeenAgent:
    return SeenAgent(name=row.name, door=row.door, first_ms=row.first_ms, seen_ms=row.seen_ms)


def _shown(row: sa.Row[Any]) -> SetUpProject:
    return SetUpProject(id=row.id, slug=row.slug, name=row.name, path=row.path)

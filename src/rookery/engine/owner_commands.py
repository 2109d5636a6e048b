"""With what the owner steers the orchestrator from the command line.

Not in a module where tools are looked for: nobody but the owner has them, and no session pays for their listing. They
are called, decided and recorded like any other.
"""

from typing import Any, Literal

import sqlalchemy as sa
from pydantic import Field

from rookery.core.context import Context
from rookery.core.tool import ToolInput, ToolOutput, tool
from rookery.domains.tracker.inputs import Ref
from rookery.domains.tracker.store import Issues
from rookery.engine.leading import leader
from rookery.engine.plan import plan
from rookery.engine.project_settings import OrchestratorProjects, Role
from rookery.engine.settings_input import ConfigureOrchestrator, changed_settings
from rookery.engine.standing import chosen_agent
from rookery.engine.status_view import Attempt, OrchestratorStatus, attempts, status_of
from rookery.engine.tables import ALIVE, ENDED, dispatches
from rookery.engine.tools import present_world
from rookery.identity.store import IdentityStore
from rookery.settings import Settings

_d = dispatches.c
_USUAL: tuple[Role, ...] = ("judge", "worker", "planner", "researcher")


class LookAtOrchestrator(ToolInput):
    project: Ref | None = Field(None, description="Only this project, by slug or id.")


class ListDispatches(ToolInput):
    project: Ref | None = Field(None, description="Only of this project, by slug or id.")
    issue_id: Ref | None = Field(None, description="Only of this issue.")
    state: Literal["live", "ended"] | None = Field(None, description="Only these.")
    limit: int = Field(20, ge=1, le=200, description="At most.")


class ConfiguredOrchestrator(ToolOutput):
    project: str
    enabled: bool
    settings: dict[str, Any]
    warnings: list[str]


class DispatchList(ToolOutput):
    dispatches: list[Attempt]


@tool(
    title="Orchestrator status", effect="read", action="orchestrator:read", tier="observe", group="System",
    profiles="", default=False, principals="people",
)  # fmt: skip
def orchestrator_status(ctx: Context, args: LookAtOrchestrator) -> OrchestratorStatus:
    """Show who leads, what goes on, what is tried again when, what begins next, and what everything else waits for."""
    tenant = ctx.actor.tenant
    wanted = None if args.project is None else IdentityStore(ctx.tx, tenant).project(args.project).id
    world = present_world(ctx, ctx.tx)
    return status_of(ctx.tx, world, plan(world), leader(ctx.tx), tenant, wanted)


@tool(
    title="Configure orchestrator", effect="write", action="orchestrator:configure", tier="privileged", group="System",
    profiles="", default=False, principals="people", binds="project", idempotent=True,
)  # fmt: skip
def configure_orchestrator(ctx: Context, args: ConfigureOrchestrator) -> ConfiguredOrchestrator:
    """Set how the bound project is worked on, or show it. Absent values stay, lists are replaced."""
    identities, tenant = IdentityStore(ctx.tx, ctx.actor.tenant), ctx.actor.tenant
    project, store = identities.project(ctx.actor.project or ""), OrchestratorProjects(ctx.tx, tenant)
    if args.model_fields_set:
        # Locks the row, so that of two who set different roles at once none is lost.
        store.update(project.id)
        values = changed_settings(args, store.of(project.id)[1], identities, project)
        store.update(project.id, enabled=args.enabled, **values)
    enabled, settings = store.of(project.id)
    warnings = _warnings(ctx, project.id) if enabled else []
    return ConfiguredOrchestrator(
        project=project.slug, enabled=enabled, settings=settings.model_dump(mode="json"), warnings=warnings
    )


@tool(
    title="List dispatches", effect="read", action="orchestrator:read", tier="observe", group="System",
    profiles="", default=False, principals="people",
)  # fmt: skip
def list_dispatches(ctx: Context, args: ListDispatches) -> DispatchList:
    """List the attempts to let agents do something, newest first."""
    tenant = ctx.actor.tenant
    guards: list[sa.ColumnElement[bool]] = [_d.tenant == tenant]
    if args.project is not None:
        guards.append(_d.project_id == IdentityStore(ctx.tx, tenant).project(args.project).id)
    if args.issue_id is not None:
        guards.append(_d.issue_id == Issues(ctx.tx, ctx.actor).find(args.issue_id).id)
    if args.state is not None:
        guards.append(_d.state == ENDED if args.state == "ended" else ALIVE)
    return DispatchList(dispatches=attempts(ctx.tx, *guards, limit=args.limit))


def _warnings(ctx: Context, project_id: str) -> list[str]:
    """Why nothing would begin in the project though it is enabled."""
    settings: Settings = ctx.platform.facts["settings"]
    world = present_world(ctx, ctx.tx)
    project = next(each for each in world.projects if each.id == project_id)
    found: list[str] = []
    if not settings.orchestrator:
        found.append("the setting orchestrator is off, so rookery up does not begin anything")
    if not world.runtime:
        found.append("the setting runtime is none, so nothing can run agents")
    if not project.folder:
        found.append(f"the project {project.slug} has no folder in which agents could work")
    chosen = (chosen_agent(role, project, world.agents.get(project.tenant, ())) for role in _USUAL)
    return [*found, *dict.fromkeys(each for each in chosen if isinstance(each, str))]

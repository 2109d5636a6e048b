"""Tools for the owner: projects, agents and profiles."""

from collections.abc import Mapping
from typing import Annotated, Any, Literal

import sqlalchemy as sa
from pydantic import Field

from rookery.core.context import Context
from rookery.core.tool import PROFILES, NoInput, ToolInput, ToolOutput
from rookery.identity.access import AccessStore
from rookery.identity.critical import without
from rookery.identity.owner_tool import owner_tool
from rookery.identity.project_folder import absolute_folder
from rookery.identity.resolve import check_profile, known_names
from rookery.identity.store import IdentityStore, begin_change

NAME = r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$"
Permissions = list[str] | Literal["default"]
AgentRef = Annotated[str, Field(min_length=1, max_length=100)]


class Project(ToolOutput):
    id: str
    slug: str
    name: str
    path: str | None
    members: list[str] | None


class Projects(ToolOutput):
    projects: list[Project]


class AgentSettings(ToolOutput):
    id: str
    name: str
    permissions: list[str] | None
    bundles: list[str]
    mode: str
    trust: int | None
    restrict_networking: bool


class AgentList(ToolOutput):
    agents: list[AgentSettings]


class Profile(ToolOutput):
    profile: str
    allowed: list[str] | None
    disallowed: list[str] | None
    warnings: list[str]


class ProfileList(ToolOutput):
    profiles: list[Profile]


class CreateProject(ToolInput):
    slug: str = Field(pattern=NAME, description="Unique without regard to case.")
    name: str | None = Field(None, min_length=1, max_length=200, description="Absent: the slug.")
    path: str | None = Field(None, max_length=4096, description="Folder of the repository, on the server.")


class SetProjectMembers(ToolInput):
    project: str = Field(min_length=1, max_length=100, description="Slug or id.")
    agents: Annotated[list[AgentRef], Field(max_length=1000)] | Literal["everyone"] = Field(
        description="The only ones that may enter, by name or id; 'everyone' opens it."
    )


class CreateAgent(ToolInput):
    name: str = Field(pattern=NAME, description="Unique without regard to case.")
    permissions: list[str] | None = Field(None, description="Exactly these tools; absent: the default set.")


class UpdateAgent(ToolInput):
    agent: str = Field(min_length=1, max_length=100, description="Name or id.")
    permissions: Permissions | None = Field(
        None,
        description="Exactly these tools, privileged ones too; 'default' for the default set.",
    )
    mode: Literal["ask", "act", "autonomy"] | None = Field(None, description="What needs a person's yes.")
    trust: int | None = Field(None, ge=0, le=4, description="0 untrusted to 4 verified.")
    restrict_networking: bool | None = Field(
        None, description="Sessions that agents start lose the tools that reach agents."
    )


class SetProfileTools(ToolInput):
    profile: str = Field(min_length=1, max_length=20, description="Such as worker.")
    allowed: Permissions | None = Field(None, description="Keep only these; 'default' lifts the limit.")
    disallowed: list[str] | None = Field(None, description="Take these away; [] for none.")


def _settings(row: sa.Row[Any], bundles: list[str]) -> AgentSettings:
    return AgentSettings(
        id=row.id,
        name=row.name,
        permissions=row.permissions,
        bundles=bundles,
        mode=row.mode,
        trust=row.trust,
        restrict_networking=row.restrict_networking,
    )


def _names(store: IdentityStore) -> dict[str, str]:
    return {row.id: row.name for row in store.agents()}


def _project(row: sa.Row[Any], names: Mapping[str, str]) -> Project:
    members = None if row.members is None else sorted(names.get(agent, agent) for agent in row.members)
    return Project(id=row.id, slug=row.slug, name=row.name, path=row.path, members=members)


def _profile(ctx: Context, kind: str) -> Profile:
    allowed, disallowed = IdentityStore(ctx.tx, ctx.actor.tenant).profile(kind)
    critical = ctx.platform.registry.critical(kind)
    lost = {name for name in critical if (allowed is not None and name not in allowed) or name in (disallowed or ())}
    return Profile(
        profile=kind,
        allowed=allowed,
        disallowed=disallowed,
        warnings=[without(kind, name) for name in sorted(lost)],
    )


@owner_tool(title="List projects", effect="read")
def list_projects(ctx: Context, args: NoInput) -> Projects:
    """List the projects. Members are null where every agent may enter."""
    store = IdentityStore(ctx.tx, ctx.actor.tenant)
    names = _names(store)
    return Projects(projects=[_project(row, names) for row in store.projects()])


@owner_tool(title="Create project", effect="write")
def create_project(ctx: Context, args: CreateProject) -> Project:
    """Create a project, one for each repository that agents work on."""
    path = None if args.path is None else absolute_folder(args.path)
    row = IdentityStore(ctx.tx, ctx.actor.tenant).create_project(args.slug, args.name or args.slug, path)
    return _project(row, {})


@owner_tool(title="Set project members", effect="write")
def set_project_members(ctx: Context, args: SetProjectMembers) -> Project:
    """Close a project to all agents but these, or open it to every agent; live sessions follow at once."""
    store = IdentityStore(ctx.tx, ctx.actor.tenant)
    row = store.set_members(args.project, None if args.agents == "everyone" else args.agents)
    ctx.publish("ScopeChanged", subject=row.id)
    return _project(row, _names(store))


@owner_tool(title="List agent settings", effect="read")
def list_agent_settings(ctx: Context, args: NoInput) -> AgentList:
    """List the agents with their tools, bundles, mode and trust."""
    rows = IdentityStore(ctx.tx, ctx.actor.tenant).agents()
    held = AccessStore(ctx.tx, ctx.actor.tenant).holders()
    return AgentList(agents=[_settings(row, held.get(row.id, [])) for row in rows])


@owner_tool(title="Create agent", effect="write")
def create_agent(ctx: Context, args: CreateAgent) -> AgentSettings:
    """Create an agent identity with its own name, rights and record."""
    names = None
    if args.permissions is not None:
        names = sorted(known_names(args.permissions, ctx.platform.registry, "permissions"))
    row = IdentityStore(ctx.tx, ctx.actor.tenant).create_agent(args.name, names)
    ctx.publish("ScopeChanged", subject=row.id)
    return _settings(row, AccessStore(ctx.tx, ctx.actor.tenant).held_bundles(row.id))


@owner_tool(title="Update agent", effect="write")
def update_agent(ctx: Context, args: UpdateAgent) -> AgentSettings:
    """Change what an agent may do; live sessions follow at once. Absent values stay."""
    values: dict[str, object] = {}
    if args.permissions == "default":
        values["permissions"] = None
    elif args.permissions is not None:
        values["permissions"] = sorted(known_names(args.permissions, ctx.platform.registry, "permissions"))
    for field in ("mode", "trust", "restrict_networking"):
        if (value := getattr(args, field)) is not None:
            values[field] = value
    row = IdentityStore(ctx.tx, ctx.actor.tenant).update_agent(args.agent, **values)
    ctx.publish("ScopeChanged", subject=row.id)
    return _settings(row, AccessStore(ctx.tx, ctx.actor.tenant).held_bundles(row.id))


@owner_tool(title="List profiles", effect="read")
def list_profiles(ctx: Context, args: NoInput) -> ProfileList:
    """List the profiles with their allowed and disallowed tools, null where nothing was set."""
    return ProfileList(profiles=[_profile(ctx, kind) for kind in PROFILES.values()])


@owner_tool(title="Set profile tools", effect="write")
def set_profile_tools(ctx: Context, args: SetProfileTools) -> Profile:
    """Narrow the tools of every agent of a profile; it never adds any. Absent lists stay. Warns of critical tools
    lost."""
    kind = check_profile(args.profile)
    store = IdentityStore(ctx.tx, ctx.actor.tenant)
    begin_change(ctx.tx)
    allowed, disallowed = store.profile(kind)
    if args.allowed == "default":
        allowed = None
    elif args.allowed is not None:
        allowed = sorted(known_names(args.allowed, ctx.platform.registry, "allowed"))
    if args.disallowed is not None:
        disallowed = sorted(known_names(args.disallowed, ctx.platform.registry, "disallowed")) or None
    store.set_profile(kind, allowed, disallowed)
    ctx.publish("ScopeChanged")
    return _profile(ctx, kind)

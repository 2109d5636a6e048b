"""Tools for the owner: bundles, grants, tokens, and why an agent has a tool or not."""

from datetime import UTC, datetime
from typing import Any

import sqlalchemy as sa
from pydantic import AwareDatetime, Field

from rookery.core.context import Context
from rookery.core.decide import decide, explain, scope_granted
from rookery.core.errors import InvalidParams, NotFound, PermissionDenied
from rookery.core.tool import NoInput, ToolInput, ToolOutput
from rookery.identity.access import AccessStore
from rookery.identity.critical import lost_tools
from rookery.identity.owner_tool import owner_tool
from rookery.identity.presets import PRESETS
from rookery.identity.resolve import Binding, Resolver, check_profile, known_names
from rookery.identity.store import DEFAULT_AGENT, DEFAULT_PROJECT, IdentityStore


class Bundle(ToolOutput):
    id: str
    name: str
    description: str
    preset: bool
    tools: list[str]
    prompt: str


class Bundles(ToolOutput):
    bundles: list[Bundle]


class HeldBundles(ToolOutput):
    holder: str
    bundles: list[str]


class Grant(ToolOutput):
    id: str
    agent: str
    tool: str
    reason: str
    without_approval: bool
    standing: bool
    expires_at: str | None
    revoked: bool


class Grants(ToolOutput):
    grants: list[Grant]


class Token(ToolOutput):
    id: str
    name: str
    holder: str
    holder_kind: str
    scopes: list[str]
    agent_type: str | None
    project: str | None
    expires_at: str | None
    revoked: bool


class NewToken(Token):
    secret: str


class Tokens(ToolOutput):
    tokens: list[Token]


class Done(ToolOutput):
    id: str
    done: str


class LayerVerdict(ToolOutput):
    layer: str
    outcome: str
    reason: str


class Explanation(ToolOutput):
    tool: str
    outcome: str
    layer: str
    reason: str
    layers: list[LayerVerdict]
    warnings: list[str]


class SaveBundle(ToolInput):
    name: str = Field(min_length=1, max_length=100, description="Unique.")
    tools: list[str] = Field(description="No privileged ones.")
    description: str = Field("", max_length=500, description="What it is for.")
    prompt: str = Field("", max_length=10_000, description="Added to its holders' prompts.")


class BundleName(ToolInput):
    bundle: str = Field(min_length=1, max_length=100, description="Name or id.")


class AssignBundle(BundleName):
    agent: str | None = Field(None, max_length=100, description="Who gets it; or give a project.")
    project: str | None = Field(None, max_length=100, description="Whose agents get it.")
    remove: bool = Field(False, description="Take it away instead.")


class GrantTool(ToolInput):
    agent: str = Field(min_length=1, max_length=100, description="Name or id.")
    tool: str = Field(min_length=1, max_length=100, description="May be privileged.")
    reason: str = Field("", max_length=500, description="For the record.")
    expires_at: AwareDatetime | None = Field(None, description="With zone; absent: until revoked.")
    without_approval: bool = Field(False, description="Nobody is asked about its calls.")


class RowId(ToolInput):
    id: str = Field(min_length=1, max_length=100, description="Id as listed.")


class CreateToken(ToolInput):
    name: str = Field(min_length=1, max_length=100, description="What it is for.")
    agent: str | None = Field(None, max_length=100, description="Whom it acts as; absent: you.")
    scopes: list[str] = Field(default=["*"], min_length=1, description="Such as tracker:*, tool:ping or *.")
    agent_type: str | None = Field(None, max_length=20, description="Profile of its sessions.")
    project: str | None = Field(None, max_length=100, description="Project of its sessions.")
    expires_at: AwareDatetime | None = Field(None, description="With zone; absent: until revoked.")


class ExplainAccess(ToolInput):
    tool: str = Field(min_length=1, max_length=100, description="Its name.")
    agent: str | None = Field(None, max_length=100, description="Absent: the default agent.")
    agent_type: str | None = Field(None, max_length=20, description="Profile of the session.")
    project: str | None = Field(None, max_length=100, description="Project of the session.")
    scheduler: bool = Field(False, description="A schedule started the session.")


def _ms(moment: datetime | None) -> int | None:
    return None if moment is None else int(moment.timestamp() * 1000)


def _iso(ms: int | None) -> str | None:
    return None if ms is None else datetime.fromtimestamp(ms / 1000, UTC).isoformat(timespec="seconds")


def _access(ctx: Context) -> AccessStore:
    return AccessStore(ctx.tx, ctx.actor.tenant)


def _bound_agent(ctx: Context, args: CreateToken) -> str:
    """The agent that the token acts as. It must have a role in the token's project."""
    store = IdentityStore(ctx.tx, ctx.actor.tenant)
    agent = store.agent(args.agent or "").id
    if args.project is not None:
        store.project(args.project, store.closed_to(agent))
    return agent


def _grant(row: sa.Row[Any]) -> Grant:
    return Grant(
        id=row.id,
        agent=row.agent,
        tool=row.tool,
        reason=row.reason,
        without_approval=row.without_approval or row.standing,
        standing=row.standing,
        expires_at=_iso(row.expires_ms),
        revoked=row.revoked_ms is not None,
    )


def _token(row: sa.Row[Any]) -> Token:
    return Token(
        id=row.id,
        name=row.name,
        holder=row.holder,
        holder_kind=row.holder_kind,
        scopes=row.scopes,
        agent_type=row.profile,
        project=row.project,
        expires_at=_iso(row.expires_ms),
        revoked=row.revoked_ms is not None,
    )


@owner_tool(title="List bundles", effect="read")
def list_bundles(ctx: Context, args: NoInput) -> Bundles:
    """List the bundles of tools, presets first."""
    registry = ctx.platform.registry
    presets = [
        Bundle(
            id=preset.id,
            name=preset.name,
            description=preset.description,
            preset=True,
            tools=sorted(registry.in_bundle(preset.id)),
            prompt="",
        )
        for preset in PRESETS.values()
    ]
    custom = [
        Bundle(
            id=row.id,
            name=row.name,
            description=row.description,
            preset=False,
            tools=row.tools,
            prompt=row.prompt,
        )
        for row in _access(ctx).custom_bundles()
    ]
    return Bundles(bundles=[*sorted(presets, key=lambda bundle: bundle.name), *custom])


@owner_tool(title="Save bundle", effect="write")
def save_bundle(ctx: Context, args: SaveBundle) -> Bundle:
    """Create or replace a custom bundle of tools; presets cannot be replaced."""
    registry = ctx.platform.registry
    names = sorted(known_names(args.tools, registry, "tools"))
    privileged = [name for name in names if registry.require(name).tier == "privileged"]
    if privileged:
        raise InvalidParams(f"bundles carry no privileged tools: {', '.join(privileged)}", hint="use grant_tool")
    bundle = _access(ctx).save_bundle(args.name, names, args.description, args.prompt)
    ctx.publish("ScopeChanged")
    return Bundle(
        id=bundle, name=args.name, description=args.description, preset=False, tools=names, prompt=args.prompt
    )


@owner_tool(title="Delete bundle", effect="write", destructive=True)
def delete_bundle(ctx: Context, args: BundleName) -> Done:
    """Delete a custom bundle and take it from all holders; presets cannot be deleted."""
    bundle = _access(ctx).delete_bundle(args.bundle)
    ctx.publish("ScopeChanged")
    return Done(id=bundle, done="deleted")


@owner_tool(title="Assign bundle", effect="write")
def assign_bundle(ctx: Context, args: AssignBundle) -> HeldBundles:
    """Give a bundle to an agent or a project's agents, or take it away. Agents with an explicit list do not get
    project bundles."""
    if (args.agent is None) == (args.project is None):
        raise InvalidParams("give either an agent or a project", hint="one of the two")
    store, access = IdentityStore(ctx.tx, ctx.actor.tenant), _access(ctx)
    bundle = access.bundle_id(args.bundle)
    if args.agent is not None:
        holder = store.agent(args.agent).id
        access.use_bundle(bundle, holder, "agent", remove=args.remove)
    else:
        holder = store.project(args.project or "").id
        access.use_bundle(bundle, holder, "project", remove=args.remove)
    ctx.publish("ScopeChanged", subject=holder)
    return HeldBundles(holder=holder, bundles=access.held_bundles(holder))


@owner_tool(title="Grant tool", effect="write")
def grant_tool(ctx: Context, args: GrantTool) -> Grant:
    """Give one agent one tool, for a time or until revoked."""
    wanted = ctx.platform.registry.require(args.tool)
    name = wanted.name
    if wanted.principals != "any":
        raise InvalidParams(
            f"{name} is for people, so no agent can be given it", hint="do it yourself, or for the agent"
        )
    agent = IdentityStore(ctx.tx, ctx.actor.tenant).agent(args.agent)
    access = _access(ctx)
    grant = access.grant(
        agent.id,
        name,
        args.reason,
        ctx.actor.subject,
        _ms(args.expires_at),
        without_approval=args.without_approval,
    )
    ctx.publish("ScopeChanged", subject=agent.id)
    return next(_grant(row) for row in access.grants(agent.id) if row.id == grant)


@owner_tool(title="Revoke grant", effect="write")
def revoke_grant(ctx: Context, args: RowId) -> Done:
    """End a grant for good; live sessions lose the tool at once."""
    _access(ctx).revoke_grant(args.id)
    ctx.publish("ScopeChanged")
    return Done(id=args.id, done="revoked")


@owner_tool(title="List grants", effect="read")
def list_grants(ctx: Context, args: NoInput) -> Grants:
    """List all grants, ended ones included."""
    return Grants(grants=[_grant(row) for row in _access(ctx).grants()])


@owner_tool(title="Create token", effect="write")
def create_token(ctx: Context, args: CreateToken) -> NewToken:
    """Make a bearer token for clients that connect over HTTP. Returns the secret, this once only."""
    held = ctx.actor.scopes
    beyond = [scope for scope in args.scopes if held is not None and not scope_granted(held, scope)]
    if beyond:
        raise PermissionDenied(
            f"your own token lacks {', '.join(beyond)}",
            hint=f"it has {', '.join(sorted(held or ()))}",
            layer="scopes",
        )
    access, me = _access(ctx), ctx.actor.subject
    holder, kind = (me, "person") if args.agent is None else (_bound_agent(ctx, args), "agent")
    token, secret = access.create_token(
        args.name,
        holder,
        kind,
        args.scopes,
        me,
        _ms(args.expires_at),
        profile=None if args.agent_type is None else check_profile(args.agent_type),
        project=None if args.project is None else IdentityStore(ctx.tx, ctx.actor.tenant).project(args.project).id,
    )
    row = next(row for row in access.tokens() if row.id == token)
    return NewToken(secret=secret, **_token(row).model_dump())


@owner_tool(title="List tokens", effect="read")
def list_tokens(ctx: Context, args: NoInput) -> Tokens:
    """List all tokens, ended ones included, never their secrets."""
    return Tokens(tokens=[_token(row) for row in _access(ctx).tokens()])


@owner_tool(title="Revoke token", effect="write")
def revoke_token(ctx: Context, args: RowId) -> Done:
    """End a token for good."""
    _access(ctx).revoke_token(args.id)
    return Done(id=args.id, done="revoked")


@owner_tool(title="Explain access", effect="read")
def explain_access(ctx: Context, args: ExplainAccess) -> Explanation:
    """Say why an agent has a tool or not, layer by layer, and which critical tools it lost."""
    found = ctx.platform.registry.require(args.tool)
    binding = Binding(
        tenant=ctx.actor.tenant,
        agent=args.agent,
        profile=args.agent_type,
        project=args.project,
        scheduler=args.scheduler,
    )
    me = ctx.actor
    store = IdentityStore(ctx.tx, me.tenant)
    agent, project = store.agent(args.agent or DEFAULT_AGENT), store.project(args.project or DEFAULT_PROJECT)
    if project.id in store.closed_to(agent.id):
        # The agent is told that there is no such project; who manages it may know better.
        raise NotFound(
            f"the agent {agent.name} has no role in the project {project.slug}", hint="set_project_members lets it in"
        )
    resolver = Resolver(
        ctx.platform.registry,
        me.services,
        hide_unavailable=me.hide_unavailable,
        budgets=ctx.platform.facts.get("budgets"),
    )
    actor = resolver.resolve(ctx.tx, binding).actor
    decision = decide(actor, found)
    return Explanation(
        tool=found.name,
        outcome=decision.outcome,
        layer=decision.layer,
        reason=decision.reason,
        layers=[
            LayerVerdict(layer=verdict.layer, outcome=verdict.outcome, reason=verdict.reason)
            for verdict in explain(actor, found)
        ],
        warnings=lost_tools(actor, ctx.platform.registry),
    )

"""What a list of tools would come to before it is saved: who has what from where, what it costs, who would lose what.

Not in a module where tools are looked for: nobody but people has it, and no session pays for its listing.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from pydantic import Field

from rookery.core.actor import NOTHING, Actor
from rookery.core.context import Context
from rookery.core.decide import Decision, decide, held_by
from rookery.core.errors import RookeryError
from rookery.core.lint import tokens
from rookery.core.registry import Registry
from rookery.core.tool import PROFILES, NoInput, Tool, ToolInput, ToolOutput, tool
from rookery.identity.binding import Binding
from rookery.identity.critical import lost_tools
from rookery.identity.live_sessions import connected
from rookery.identity.resolve import Resolver, check_profile, known_names
from rookery.identity.store import IdentityStore

ANY_ISSUE = "any"
"""Stands for the issue of a session that has a profile: such sessions are started for one."""
Names = list[str] | Literal["default"]


class LookAtScope(ToolInput):
    agent: str | None = Field(None, min_length=1, max_length=100, description="Absent: whoever has no list of its own.")
    agent_type: str | None = Field(None, max_length=20, description="Profile of the session.")
    project: str | None = Field(None, max_length=100, description="Project of the session.")
    scheduler: bool = Field(False, description="A schedule started the session.")
    permissions: Names | None = Field(None, description="As if the agent had this list.")
    allowed: Names | None = Field(None, description="As if the profile allowed these.")
    disallowed: list[str] | None = Field(None, description="As if the profile took these away.")


class ToolInScope(ToolOutput):
    name: str
    title: str
    sentence: str
    domain: str
    group: str
    tier: str
    effect: str
    tokens: int
    default: bool
    profiles: list[str]
    critical: list[str]
    for_people: bool
    needs: str | None
    named: bool
    allowed: bool
    held: str
    outcome: str
    layer: str
    reason: str
    outcome_then: str


class ListCost(ToolOutput):
    tools: int
    tokens: int


class AgentCost(ListCost):
    agent_id: str


class ScopeCosts(ToolOutput):
    agents: list[AgentCost]


class SessionChange(ToolOutput):
    id: str
    agent_name: str | None
    agent_type: str | None
    project: str | None
    source: str
    lost: list[str]
    gained: list[str]


class ScopeView(ToolOutput):
    agent: str | None
    agent_type: str | None
    own_list: bool
    tools: list[ToolInScope]
    now: ListCost
    then: ListCost
    added: list[str]
    removed: list[str]
    asked: list[str]
    warnings: list[str]
    warnings_now: list[str]
    sessions: list[SessionChange]


@dataclass(frozen=True, slots=True)
class _Wish:
    """What would be changed: one agent's own list, or the lists of one profile. An absent part stays."""

    agent: str | None
    profile: str | None
    permissions: frozenset[str] | Literal["default"] | None
    allowed: frozenset[str] | Literal["default"] | None
    disallowed: frozenset[str] | None

    @property
    def changes_nothing(self) -> bool:
        return self.permissions is None and self.allowed is None and self.disallowed is None

    def on(self, actor: Actor) -> Actor:
        """The actor as it would be, if the change concerns it."""
        if self.permissions is not None and actor.agent == self.agent:
            actor = replace(actor, permissions=None if self.permissions == "default" else self.permissions)
        if actor.profile is None or actor.profile != self.profile:
            return actor
        if self.disallowed is not None:
            actor = replace(actor, disallowed=self.disallowed)
        if self.allowed is not None:
            limit = actor.within if self.allowed == "default" else self.allowed & (actor.within or self.allowed)
            actor = replace(actor, allowed=limit)
        return actor


@tool(
    title="Look at scope", effect="read", action="identity:read", tier="observe", group="System", profiles="",
    default=False, principals="people",
)  # fmt: skip
def look_at_scope(ctx: Context, args: LookAtScope) -> ScopeView:
    """Show the tools of an agent or profile, what their listing costs, and what a change of the list would do to it
    and to the sessions that are connected now. Changes nothing."""
    registry = ctx.platform.registry
    actor, wish = _actor(ctx, args), _wish(ctx, args)
    then = wish.on(actor)
    before = {each.name: decide(actor, each) for each in registry}
    after = {each.name: decide(then, each) for each in registry}
    had, has = ({name for name, found in verdicts.items() if found.listed} for verdicts in (before, after))
    profiles = [args.agent_type] if args.agent_type else list(PROFILES.values())
    return ScopeView(
        agent=None if args.agent is None else actor.agent_name,
        agent_type=actor.profile,
        own_list=then.permissions is not None,
        tools=[_shown(each, then, before[each.name], after[each.name]) for each in registry],
        now=_cost(registry, had),
        then=_cost(registry, has),
        added=sorted(has - had),
        removed=sorted(had - has),
        asked=sorted(name for name, found in after.items() if found.outcome == "ask"),
        warnings=_lost(ctx, then, profiles, wish),
        warnings_now=_lost(ctx, actor, profiles, None),
        sessions=_changed_sessions(ctx, wish),
    )


@tool(
    title="List scopes", effect="read", action="identity:read", tier="observe", group="System", profiles="",
    default=False, principals="people",
)  # fmt: skip
def list_scopes(ctx: Context, args: NoInput) -> ScopeCosts:
    """Say for every agent how many tools a session of it is listed, and what that listing costs."""
    registry, resolver = ctx.platform.registry, ctx.platform.facts["resolver"]
    prices = {each.name: tokens(each) for each in registry}
    found: list[AgentCost] = []
    for row in IdentityStore(ctx.tx, ctx.actor.tenant).agents():
        try:
            actor = resolver.resolve(ctx.tx, Binding(tenant=ctx.actor.tenant, agent=row.id)).actor
            names = [each.name for each in registry.listed(actor)]
        except RookeryError:
            # The default project is closed to it.
            names = []
        found.append(AgentCost(agent_id=row.id, tools=len(names), tokens=sum(prices[name] for name in names)))
    return ScopeCosts(agents=found)


def sentence_of(tool: Tool) -> str:
    """What the tool does, in the first sentence of its description."""
    return tool.description.partition(". ")[0].rstrip(".").replace("\n", " ")


def _actor(ctx: Context, args: LookAtScope) -> Actor:
    resolver: Resolver = ctx.platform.facts["resolver"]
    binding = Binding(
        tenant=ctx.actor.tenant,
        agent=args.agent,
        profile=args.agent_type,
        project=args.project,
        scheduler=args.scheduler,
    )
    actor = resolver.resolve(ctx.tx, binding).actor
    if actor.profile is not None:
        actor = replace(actor, issue=actor.issue or ANY_ISSUE)
    return actor if args.agent is not None else _of_nobody(actor)


def _of_nobody(actor: Actor) -> Actor:
    """An agent of which nothing is known but its profile."""
    return replace(
        actor,
        agent=None,
        permissions=None,
        bundle_tools=NOTHING,
        project_bundle_tools=NOTHING,
        grants=NOTHING,
        unasked=NOTHING,
        exhausted=NOTHING,
        paused="",
        trust=4,
        mode="autonomy",
    )


def _wish(ctx: Context, args: LookAtScope) -> _Wish:
    agent = None if args.agent is None else IdentityStore(ctx.tx, ctx.actor.tenant).agent(args.agent).id
    registry = ctx.platform.registry

    def names(given: Names | None, where: str) -> frozenset[str] | Literal["default"] | None:
        return known_names(given, registry, where) if isinstance(given, list) else given

    return _Wish(
        agent=agent,
        profile=None if args.agent_type is None else check_profile(args.agent_type),
        permissions=names(args.permissions, "permissions"),
        allowed=names(args.allowed, "allowed"),
        disallowed=None if args.disallowed is None else known_names(args.disallowed, registry, "disallowed"),
    )


def _shown(tool: Tool, then: Actor, before: Decision, after: Decision) -> ToolInScope:
    in_default = tool.default and tool.tier != "privileged" and tool.principals == "any"
    return ToolInScope(
        name=tool.name,
        title=tool.title,
        sentence=sentence_of(tool),
        domain=tool.domain,
        group=tool.group,
        tier=tool.tier,
        effect=tool.effect,
        tokens=tokens(tool),
        default=in_default,
        profiles=sorted(tool.profiles),
        critical=sorted(tool.critical),
        for_people=tool.principals != "any",
        needs=tool.requires if tool.requires not in then.services else None,
        named=in_default if then.permissions is None else tool.name in then.permissions,
        allowed=(then.allowed is None or tool.name in then.allowed) and tool.name not in then.disallowed,
        held=held_by(then, tool) or "",
        outcome=before.outcome,
        layer=after.layer,
        reason=after.reason,
        outcome_then=after.outcome,
    )


def _cost(registry: Registry, names: set[str]) -> ListCost:
    return ListCost(tools=len(names), tokens=sum(tokens(registry.require(name)) for name in names))


def _lost(ctx: Context, actor: Actor, profiles: Sequence[str], wish: _Wish | None) -> list[str]:
    """What sessions of the actor with these profiles could not do."""
    store = IdentityStore(ctx.tx, ctx.actor.tenant)
    warnings: list[str] = []
    for profile in profiles:
        as_it = actor
        if actor.profile != profile:
            allowed, disallowed = store.profile(profile)
            limits = {"allowed": None if allowed is None else frozenset(allowed)}
            as_it = replace(actor, profile=profile, **limits, disallowed=frozenset(disallowed or ()))
        as_it = as_it if wish is None else wish.on(as_it)
        warnings += lost_tools(as_it, ctx.platform.registry)
    return warnings


def _changed_sessions(ctx: Context, wish: _Wish) -> list[SessionChange]:
    registry = ctx.platform.registry
    found: list[SessionChange] = []
    if wish.changes_nothing:
        return found
    of = {"agent": wish.agent} if wish.permissions is not None else {"profile": wish.profile}
    for live, actor in connected(ctx, **of):
        then = wish.on(actor)
        had, has = ({each.name for each in registry.listed(one)} for one in (actor, then))
        if had != has:
            found.append(
                SessionChange(
                    id=live.id,
                    agent_name=actor.agent_name,
                    agent_type=actor.profile,
                    project=actor.project_slug,
                    source=actor.source,
                    lost=sorted(had - has),
                    gained=sorted(has - had),
                )
            )
    return found

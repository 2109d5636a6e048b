"""The permission rules a second time, as sets. Written from docs/permissions.md, sharing nothing with `decide`.

`decide` asks layers about one tool; this computes the set of tools that an actor may have, and subtracts.
"""

from collections.abc import Callable, Iterable
from typing import Any

from rookery.core.actor import Actor
from rookery.core.tool import Tool

Where = Callable[[Callable[[Tool], Any]], set[str]]


def answers(actor: Actor, tools: Iterable[Tool]) -> dict[str, str]:
    """allow, ask, hide or deny, for each tool by name."""
    every = list(tools)

    def where(holds: Callable[[Tool], Any]) -> set[str]:
        return {tool.name for tool in every if holds(tool)}

    hidden = where(lambda t: t.requires and t.requires not in actor.services)
    if actor.hide_unavailable:
        hidden |= where(lambda t: t.needs and t.needs not in actor.services)
    yes = reached(actor, where) & carried(actor, where) & held(actor, where)
    for limit in (actor.allowed, actor.scope_file):
        yes &= yes if limit is None else limit
    yes -= actor.disallowed | hidden | lost(actor, where)
    free = ["observe", *{"ask": [], "act": ["act"], "autonomy": ["act", "destructive"]}[actor.mode]]
    agreed = set(actor.unasked) | where(lambda t: t.tier in free or actor.kind == "human")
    if actor.profile is None and actor.permissions is not None:
        agreed |= where(lambda t: t.tier == "privileged") & actor.permissions
    asks = yes - agreed
    yes -= asks
    said = dict.fromkeys(where(lambda t: True), "deny") | dict.fromkeys(hidden, "hide")
    return said | dict.fromkeys(yes, "allow") | dict.fromkeys(asks, "ask")


def reached(actor: Actor, where: Where) -> set[str]:
    if actor.kind != "human":
        return where(lambda t: t.principals == "any")
    if actor.role == "operator":
        steered = ("any", "operators")
        reach = where(lambda t: t.tier != "privileged" and (t.principals in steered or t.effect == "read"))
        return reach | where(lambda t: t.principals == "everyone")
    if actor.role == "viewer":
        return where(lambda t: (t.effect, t.tier) == ("read", "observe") or t.principals == "everyone")
    return where(lambda t: actor.role == "owner")


def carried(actor: Actor, where: Where) -> set[str]:
    token = actor.scopes
    if token is None:
        return where(lambda t: True)
    whole = where(lambda t: {"tool:*", f"tool:{t.name}", f"tool:{t.name}:*"} & token)
    return whole | where(lambda t: all({s, "*", s.split(":")[0] + ":*"} & token for s in t.scopes))


def held(actor: Actor, where: Where) -> set[str]:
    own, privileged = actor.permissions, where(lambda t: t.tier == "privileged")
    if actor.profile is None and actor.kind == "human":
        return where(lambda t: True)
    if actor.kind == "external":
        scoped = set[str]() if actor.scopes is None else carried(actor, where)
        return (scoped & where(lambda t: actor.profile in (None, *t.profiles)) | actor.grants) - privileged
    bases = (own, actor.scope_file, where(lambda t: t.default and actor.kind == "agent"))
    base = next(names for names in bases if names is not None)
    if actor.profile is not None:
        base = where(lambda t: actor.profile in t.profiles and (own is None or t.name in own))
    bundles = actor.bundle_tools | (actor.project_bundle_tools if own is None else set())
    named = own if own is not None and actor.profile is None else set[str]()
    return set((base | bundles) - privileged | actor.grants | (named & privileged))


def lost(actor: Actor, where: Where) -> set[str]:
    """What the session's circumstances take away, whatever is held."""
    bound = {"issue": actor.issue, "project": actor.project, None: "needs none"}
    agent, reins = actor.kind != "human", actor.restrict_networking and actor.source == "agent"
    gone = where(lambda t: bound[t.binds] is None or t.budget in actor.exhausted)
    gone |= where(lambda t: "credits" in actor.exhausted and t.tier != "observe")
    gone |= where(lambda t: agent and actor.paused != "" and t.tier != "observe")
    gone |= where(lambda t: actor.scheduler and t.scheduler_blocked)
    gone |= where(lambda t: actor.unattended and t.interactive) | where(lambda t: reins and t.networking)
    gone |= where(lambda t: t.max_depth is not None and actor.depth >= t.max_depth)
    gone |= where(lambda t: t.phases is not None and actor.phase not in (None, *t.phases))
    return gone | where(lambda t: agent and t.min_trust > (actor.trust or 0))

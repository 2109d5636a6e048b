"""The one decision: may this actor have this tool?

`decide` is pure and serves listing and calling alike, so the two cannot disagree. It asks the layers in order; the
first that refuses has spoken. `explain` asks them all. Forbid wins; what is unknown is refused.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, NamedTuple

from rookery.core.actor import Actor
from rookery.core.tool import Tool

Outcome = Literal["allow", "hide", "deny", "ask"]


@dataclass(frozen=True, slots=True)
class Decision:
    """`hide` and `deny` mean no, `allow` means yes, `ask` means yes once a person has agreed."""

    outcome: Outcome
    layer: str
    reason: str
    hint: str = ""

    @property
    def listed(self) -> bool:
        """Whether the tool stands in the actor's list; a tool that is not listed cannot be called."""
        return self.outcome in ("allow", "ask")


class Verdict(NamedTuple):
    """What one layer says when asked by itself."""

    layer: str
    outcome: Outcome
    reason: str


Refusal = Decision | None
ALLOW = Decision("allow", "all", "every layer agrees")


def _deny(layer: str, reason: str, hint: str) -> Decision:
    return Decision("deny", layer, reason, hint)


def _available(actor: Actor, tool: Tool) -> Refusal:
    missing = tool.requires if tool.requires not in actor.services else None
    if missing is None and actor.hide_unavailable and tool.needs not in actor.services:
        missing = tool.needs
    if missing is None:
        return None
    return Decision("hide", "available", f"{tool.name} needs {missing}, which is not set up here", f"set up {missing}")


def _principal(actor: Actor, tool: Tool) -> Refusal:
    if actor.kind != "human":
        if tool.principals == "any":
            return None
        return _deny("principal", f"{tool.name} is for people, not for agents", "ask the owner to do it")
    if actor.role == "owner":
        return None
    # A resource reads, whatever the tool does whose right it needs; it must not be easier to reach for that.
    reads = tool.effect == "read" and tool.right_effect in (None, "read")
    if actor.role == "viewer" and reads and tool.tier == "observe":
        return None
    if actor.role == "operator" and tool.tier != "privileged" and (tool.principals in ("any", "operators") or reads):
        return None
    if actor.role is not None and tool.principals == "everyone":
        return None
    return _deny("principal", f"the role {actor.role} does not reach {tool.name}", "ask the owner to do it")


def scope_granted(granted: frozenset[str], required: str) -> bool:
    """Whether one required scope is covered: itself, its namespace (`tracker:*`) or `*`."""
    return required in granted or "*" in granted or f"{required.partition(':')[0]}:*" in granted


def _whole(tool: Tool) -> tuple[str, ...]:
    """The scopes each of which grants the whole: a tool, resource or prompt by its name, or all of its kind."""
    if tool.kind == "tool":
        return f"tool:{tool.name}", f"tool:{tool.name}:*", "tool:*"
    kind, name = tool.name.split(":")[:2]
    whole = f"{kind}:{name}"
    return (whole, f"{whole}:*", f"{kind}:*", *((f"{whole}:read",) if kind == "resource" else ()))


def _scopes(actor: Actor, tool: Tool) -> Refusal:
    granted = actor.scopes
    if granted is None or not granted.isdisjoint(_whole(tool)):
        return None
    missing = [scope for scope in tool.scopes if not scope_granted(granted, scope)]
    if not missing:
        return None
    return _deny("scopes", f"the token lacks {', '.join(missing)}", "use a token that carries these scopes")


def held_by(actor: Actor, tool: Tool) -> str | None:
    """Where the actor has the tool from, or None. The order is from the most to the least deliberate."""
    name = tool.right
    if actor.kind == "human" and actor.profile is None:
        return "a person has every tool"
    if actor.kind == "external":
        return _held_outside(actor, tool)
    if name in actor.grants:
        return "granted by the owner"
    if tool.tier == "privileged":
        listed = actor.profile is None and actor.permissions is not None and name in actor.permissions
        return "named in the agent's own list" if listed else None
    if actor.profile is not None:
        if actor.profile in tool.profiles and (actor.permissions is None or name in actor.permissions):
            return f"in the defaults of the profile {actor.profile}"
    elif actor.permissions is not None:
        if name in actor.permissions:
            return "named in the agent's own list"
    elif actor.scope_file is not None:
        if name in actor.scope_file:
            return "named in the scope file"
    elif tool.default and actor.kind == "agent":
        return "in the default set"
    if name in actor.bundle_tools:
        return "in a bundle of the agent"
    if actor.permissions is None and name in actor.project_bundle_tools:
        return "in a bundle of the project"
    return None


def _held_outside(actor: Actor, tool: Tool) -> str | None:
    """An outsider has what it was given: by the owner, or by the scopes of its token. Never what is privileged."""
    if tool.tier == "privileged":
        return None
    if tool.right in actor.grants:
        return "granted by the owner"
    in_profile = actor.profile is None or actor.profile in tool.profiles
    by_token = actor.scopes is not None and _scopes(actor, tool) is None
    return "granted by the token's scopes" if in_profile and by_token else None


def _role(actor: Actor, tool: Tool) -> Refusal:
    if held_by(actor, tool) is not None:
        return None
    who = "this agent" if actor.kind == "agent" else "this caller"
    role = f"the profile {actor.profile}" if actor.profile else who
    return _deny("role", f"{tool.name} is not among the tools of {role}", "the owner can grant it: grant_tool")


def _allowed(actor: Actor, tool: Tool) -> Refusal:
    if actor.allowed is None or tool.right in actor.allowed:
        return None
    return _deny(
        "allowed",
        f"the profile's allowed tools leave out {tool.name}",
        "the owner can add it: set_profile_tools",
    )


def _disallowed(actor: Actor, tool: Tool) -> Refusal:
    if tool.right not in actor.disallowed:
        return None
    return _deny(
        "disallowed",
        f"{tool.name} is disallowed for this profile",
        "the owner can change it: set_profile_tools",
    )


def _scope_file(actor: Actor, tool: Tool) -> Refusal:
    if actor.scope_file is None or tool.right in actor.scope_file:
        return None
    return _deny("scope_file", f"the scope file of this session leaves out {tool.name}", "work with the listed tools")


def _scheduler(actor: Actor, tool: Tool) -> Refusal:
    if not (actor.scheduler and tool.scheduler_blocked):
        return None
    return _deny("scheduler", f"{tool.name} is blocked in scheduled sessions", "leave it to a session with a person")


def _unattended(actor: Actor, tool: Tool) -> Refusal:
    if not (actor.unattended and tool.interactive):
        return None
    return _deny(
        "unattended",
        f"{tool.name} needs a person and this session has none",
        "decide without asking, or stop",
    )


def _source(actor: Actor, tool: Tool) -> Refusal:
    if not (actor.restrict_networking and actor.source == "agent" and tool.networking):
        return None
    return _deny("source", f"sessions started by agents may not use {tool.name}", "answer the agent that asked")


def _depth(actor: Actor, tool: Tool) -> Refusal:
    if tool.max_depth is None or actor.depth < tool.max_depth:
        return None
    reason = f"Cannot {tool.title.lower()}: invocation depth {actor.depth} exceeds maximum of {tool.max_depth}."
    return _deny("depth", reason, "answer with what you know; deeper chains of agents could wait for each other")


def _binding(actor: Actor, tool: Tool) -> Refusal:
    if tool.binds is None or (actor.issue if tool.binds == "issue" else actor.project) is not None:
        return None
    return _deny(
        "binding",
        f"{tool.name} acts on the bound {tool.binds} and none is bound",
        "start with --issue-id, or claim_issue" if tool.binds == "issue" else "start with --project-id",
    )


def _phase(actor: Actor, tool: Tool) -> Refusal:
    if tool.phases is None or actor.phase is None or actor.phase in tool.phases:
        return None
    return _deny("phase", f"{tool.name} is not for the phase {actor.phase}", "finish this phase first")


def _trust(actor: Actor, tool: Tool) -> Refusal:
    if actor.kind == "human" or tool.min_trust == 0 or (actor.trust is not None and actor.trust >= tool.min_trust):
        return None
    return _deny("trust", f"{tool.name} needs trust level {tool.min_trust}", "trust grows with finished work")


def _budget(actor: Actor, tool: Tool) -> Refusal:
    if "credits" in actor.exhausted and tool.tier != "observe":
        return _deny("budget", "the credits are used up", "work with tools that observe, or wait for grant_credits")
    if tool.budget is None or tool.budget not in actor.exhausted:
        return None
    return _deny("budget", f"the budget {tool.budget} is used up", "wait until it is renewed, or ask the owner")


def _paused(actor: Actor, tool: Tool) -> Refusal:
    if actor.kind == "human" or not actor.paused or tool.tier == "observe":
        return None
    return _deny("paused", actor.paused, "stop what you are doing; until it is resumed only tools that observe work")


def _gate(actor: Actor, tool: Tool) -> Refusal:
    if actor.kind == "human" or tool.tier == "observe" or tool.right in actor.unasked:
        return None
    if tool.tier == "privileged":
        if actor.profile is None and tool.right in (actor.permissions or ()):
            return None
    elif actor.mode == "autonomy" or (actor.mode == "act" and tool.tier == "act"):
        return None
    return Decision(
        "ask",
        "gate",
        f"{tool.name} is {tool.tier} and the session's mode is {actor.mode}",
        "the owner has to approve it",
    )


LAYERS: tuple[tuple[str, Callable[[Actor, Tool], Refusal]], ...] = (
    ("available", _available),
    ("principal", _principal),
    ("scopes", _scopes),
    ("role", _role),
    ("allowed", _allowed),
    ("disallowed", _disallowed),
    ("scope_file", _scope_file),
    ("scheduler", _scheduler),
    ("unattended", _unattended),
    ("source", _source),
    ("depth", _depth),
    ("binding", _binding),
    ("phase", _phase),
    ("trust", _trust),
    ("budget", _budget),
    ("paused", _paused),
    ("gate", _gate),
)


def decide(actor: Actor, tool: Tool) -> Decision:
    """The first layer that does not agree, or ALLOW. Pure: the same actor and tool always get the same answer."""
    for _, layer in LAYERS:
        refusal = layer(actor, tool)
        if refusal is not None:
            return refusal
    return ALLOW


def explain(actor: Actor, tool: Tool) -> list[Verdict]:
    """What each layer says by itself, in order, also those after the first refusal."""
    verdicts: list[Verdict] = []
    for name, layer in LAYERS:
        refusal = layer(actor, tool)
        if refusal is not None:
            verdicts.append(Verdict(name, refusal.outcome, refusal.reason))
        else:
            verdicts.append(Verdict(name, "allow", (held_by(actor, tool) or "") if name == "role" else ""))
    return verdicts

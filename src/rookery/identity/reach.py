"""The tools that somebody has, whatever it is at just now: what a session that it starts must not go beyond."""

from rookery.core.actor import Actor
from rookery.core.decide import explain
from rookery.core.registry import Registry
from rookery.core.tool import Tool

LAYERS = ("role", "allowed", "disallowed", "scope_file")
"""Those of `decide` that say which tools somebody has. The others are about the moment, or about scopes, which a
session inherits as they are."""


def reach_of(actor: Actor, registry: Registry) -> frozenset[str]:
    """The rights to all tools that the actor has."""
    return frozenset(tool.right for tool in registry if _reaches(actor, tool))


def _reaches(actor: Actor, tool: Tool) -> bool:
    return all(verdict.outcome == "allow" for verdict in explain(actor, tool) if verdict.layer in LAYERS)

"""The tools that an agent is started with: computed once, warned about, and handed to its run.

The session is held to them at every call, whatever attaches itself to it. A client program gets them as a file too: see
`runtimes/command_client.py`.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from rookery.core.actor import Actor
from rookery.core.registry import Registry
from rookery.identity.critical import lost_tools


@dataclass(frozen=True, slots=True)
class EffectiveTools:
    """What the agent has for the whole run, and which tools without which its role cannot work are missing."""

    names: Sequence[str]
    warnings: Sequence[str]

    @property
    def record(self) -> dict[str, Any]:
        return {"names": list(self.names), "warnings": list(self.warnings)}


def effective_tools(actor: Actor, registry: Registry) -> EffectiveTools:
    """The tools that the agent would be listed now, by name."""
    names = sorted(tool.name for tool in registry.listed(actor))
    return EffectiveTools(names, lost_tools(actor, registry))

"""The tools without which a profile cannot do its work, and who has lost some of them. A warning, never a refusal."""

from rookery.core.actor import Actor
from rookery.core.decide import explain
from rookery.core.registry import Registry

# Layers that take a tool away for the whole session; the others may let it through later in the same session.
TAKING = frozenset({"scopes", "role", "allowed", "disallowed", "scope_file"})


def without(profile: str, tool: str) -> str:
    """The sentence for a critical tool that is lost."""
    return f"{profile} cannot do its work without {tool}"


def lost_tools(actor: Actor, registry: Registry) -> list[str]:
    """A sentence for each critical tool of the session's profile that the session does not get, and why not."""
    if actor.profile is None:
        return []
    warnings: list[str] = []
    for name in sorted(registry.critical(actor.profile)):
        verdicts = explain(actor, registry.require(name))
        why = next((each.reason for each in verdicts if each.layer in TAKING and each.outcome != "allow"), None)
        if why is not None:
            warnings.append(f"{without(actor.profile, name)}: {why}")
    return warnings

"""What a session shows of the calls of our own tools: as much as whoever approves them is shown, and no secret."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, cast

from rookery.asks.cards import HIDDEN, redacted
from rookery.core.registry import Registry
from rookery.core.tool import Tool
from rookery.sessions.events import SessionEvent
from rookery.sessions.foreign_tools import our_tool


def shown_input(registry: Registry, tool: str, given: Mapping[str, Any]) -> dict[str, Any]:
    """The input of a tool without its secrets, by the tool's whole name. That of a tool that is not ours is as it is.

    What a tool with secrets has no name for is hidden as well: it may be a secret whose name was mistyped.
    """
    ours = _ours(registry, tool)
    if ours is None:
        return dict(given)
    shown = redacted(ours.input, given)
    if not _has_secrets(ours):
        return shown
    return {name: value if name in ours.input.model_fields else HIDDEN for name, value in shown.items()}


def hides(registry: Registry, tool: str) -> bool:
    """Whether the tool is one of ours that takes secrets: then nothing but `shown_input` is fit to be seen."""
    ours = _ours(registry, tool)
    return ours is not None and _has_secrets(ours)


def _ours(registry: Registry, tool: str) -> Tool | None:
    name = our_tool(tool)
    return registry.get(name) if name is not None else None


def _has_secrets(tool: Tool) -> bool:
    empty = dict.fromkeys(tool.input.model_fields, "")
    return redacted(tool.input, empty) != empty


class Redaction:
    """Takes the secrets out of what one agent does. It remembers whose pieces of input are still to come."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        self._hidden: set[str] = set()

    def shown(self, event: SessionEvent) -> SessionEvent | None:
        """The event as it may be kept; None if nothing of it may."""
        call_id, tool = str(event.data.get("call_id", "")), str(event.data.get("tool", ""))
        if event.name == "tool_call_delta":
            return None if call_id in self._hidden else event
        if event.name == "tool_call_start" and hides(self._registry, tool):
            self._hidden.add(call_id)
        elif event.name == "tool_call_end":
            self._hidden.discard(call_id)
            return self._without_secrets(event, tool)
        return event

    def _without_secrets(self, event: SessionEvent, tool: str) -> SessionEvent:
        given = event.data.get("input")
        if isinstance(given, Mapping):
            shown: Any = shown_input(self._registry, tool, cast("Mapping[str, Any]", given))
        else:
            shown = HIDDEN if hides(self._registry, tool) else given
        return replace(event, data={**event.data, "input": shown})

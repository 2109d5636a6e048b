"""Which tools work at this moment, and the last line that each has said of itself. Pure; for runs and for sessions."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from rookery.sessions.foreign_tools import OUR_PREFIX

_STARTS = ("tool_call_start", "tool_call_end")
_ENDS_ALL = ("done", "turn_input")


@dataclass(slots=True)
class StatusLine:
    """A tool that has begun and not ended. `text` is empty if it has said nothing yet."""

    call_id: str
    tool: str
    since_ms: int
    text: str = ""
    at_ms: int | None = None


def status_lines(events: Iterable[Mapping[str, Any]]) -> list[StatusLine]:
    """The tools at work after these events, in the order in which they began.

    An event has `event`, `data` and `at_ms`, as in `session://{id}/events`; those of `query_run_events` are taken too.
    A line that names no call is of the last call of that tool.
    """
    working: dict[str, StatusLine] = {}
    for each in events:
        data: Mapping[str, Any] = each.get("data") or each.get("payload") or {}
        name, call_id, at_ms = each.get("event") or data.get("event"), str(data.get("call_id") or ""), each["at_ms"]
        if name in _ENDS_ALL:
            working.clear()
        elif name in _STARTS and call_id:
            line = working.setdefault(call_id, StatusLine(call_id, "", at_ms))
            line.tool = plain_tool(str(data.get("tool") or "")) or line.tool
        elif name == "tool_result":
            working.pop(call_id, None)
        elif name == "tool_status":
            _said(working, call_id, plain_tool(str(data.get("tool") or "")), str(data.get("text") or ""), at_ms)
    return list(working.values())


def plain_tool(name: str) -> str:
    """A tool's name without that of our own server."""
    return name.removeprefix(OUR_PREFIX)


def _said(working: dict[str, StatusLine], call_id: str, tool: str, text: str, at_ms: int) -> None:
    line = working.get(call_id) or next((each for each in reversed(list(working.values())) if each.tool == tool), None)
    if line is not None:
        line.text, line.at_ms = text, at_ms

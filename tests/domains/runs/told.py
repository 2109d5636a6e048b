"""The events of a run as a session writes them, and people who read them."""

from typing import Any

from rookery.core.actor import Actor
from rookery.core.tool import Tool
from rookery.domains.runs.trace import Happening
from rookery.lifecycle.run_events import RunEvent
from rookery.sessions.events import EventName, SessionEvent
from tests.platform_fixtures import Fleet

START_MS = 1_800_000_000_000


def told(name: EventName, after_ms: int = 0, **data: Any) -> RunEvent:
    """What happened so long after the start."""
    return SessionEvent(name, data, START_MS + after_ms).kept


def happened(*events: RunEvent) -> list[Happening]:
    """The same as a trace reads them."""
    return [
        Happening(number, each.type, each.subtype, each.payload, each.at_ms or 0)
        for number, each in enumerate(events, 1)
    ]


def called(call_id: str, tool: str, start_ms: int, end_ms: int, *, failed: bool = False, **more: Any) -> list[RunEvent]:
    """A tool from its start to its result."""
    return [
        told("tool_call_start", start_ms, call_id=call_id, tool=tool, **more),
        told("tool_call_end", start_ms, call_id=call_id, tool=tool, input={"path": "src/login.py"}),
        told("tool_result", end_ms, call_id=call_id, tool=tool, text="as it is", is_error=failed),
    ]


async def read(fleet: Fleet, tool: Tool, actor: Actor | None = None, **arguments: Any) -> Any:
    """The answer of a tool that is in no list."""
    return (await fleet.platform.calls.run(actor or fleet.owner, tool, arguments)).value

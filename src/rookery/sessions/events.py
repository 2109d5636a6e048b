"""What can happen in a session, and as what it is kept among the events of a run. Pure."""

import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from rookery.lifecycle.run_events import EventSubtype, EventType, RunEvent, stored_payload
from rookery.lifecycle.sessions import Outcome

EventName = Literal[
    "turn_input",
    "text_delta",
    "thinking_delta",
    "tool_call_start",
    "tool_call_delta",
    "tool_call_end",
    "tool_result",
    "tool_status",
    "approval_required",
    "question_prompt",
    "interaction_resolved",
    "session_status",
    "task_update",
    "system",
    "error",
    "done",
]
KEPT_AS: Mapping[EventName, tuple[EventType, EventSubtype | None]] = {
    "turn_input": ("system", "input"),
    "text_delta": ("assistant", "text"),
    "thinking_delta": ("assistant", "thinking"),
    "tool_call_start": ("assistant", "tool_use"),
    "tool_call_delta": ("assistant", "tool_use"),
    "tool_call_end": ("assistant", "tool_use"),
    "tool_result": ("user", "tool_result"),
    "tool_status": ("system", "status"),
    "approval_required": ("system", "ask"),
    "question_prompt": ("system", "ask"),
    "interaction_resolved": ("system", "ask"),
    "session_status": ("system", "init"),
    "task_update": ("system", "status"),
    "system": ("system", "other"),
    "error": ("system", "error"),
    "done": ("result", None),
}
_FLOWING: Mapping[str, str] = {"text_delta": "", "thinking_delta": "", "tool_call_delta": "call_id"}
"""Events whose texts add up, and what else must be the same."""
NAME = "event"
_TELLING = ("call_id", "ask_id", "message_id", "tool", "is_error", "reason", "how")
DONE: EventName = "done"
MOST_TOGETHER = 16_384


@dataclass(frozen=True, slots=True)
class SessionEvent:
    """One thing that happened. The data of each kind are in docs/sessions.md; all of them are plain JSON."""

    name: EventName
    data: Mapping[str, Any] = field(default_factory=dict[str, Any])
    at_ms: int = field(default_factory=lambda: time.time_ns() // 1_000_000)

    @property
    def kept(self) -> RunEvent:
        """As an event of a run. Of data that are too much for one, what tells where they belong is left."""
        kind, subtype = KEPT_AS[self.name]
        data = stored_payload({NAME: self.name, **self.data})
        if NAME not in data:
            told = {name: self.data[name] for name in _TELLING if isinstance(self.data.get(name), (str, bool))}
            data |= {
                NAME: self.name,
                **{name: value[:200] if isinstance(value, str) else value for name, value in told.items()},
            }
        return RunEvent(kind, subtype, data, self.at_ms)


def together(events: Iterable[SessionEvent]) -> list[SessionEvent]:
    """The same events with pieces of one text that follow each other put together, as long as that stays short."""
    merged: list[SessionEvent] = []
    for event in events:
        last = merged[-1] if merged else None
        if last is not None and _goes_on(last, event):
            text = last.data["text"] + event.data["text"]
            merged[-1] = SessionEvent(last.name, {**last.data, "text": text}, last.at_ms)
        else:
            merged.append(event)
    return merged


def _goes_on(last: SessionEvent, event: SessionEvent) -> bool:
    same = _FLOWING.get(event.name)
    if same is None or last.name != event.name or (same and last.data.get(same) != event.data.get(same)):
        return False
    return len(last.data["text"]) + len(event.data["text"]) <= MOST_TOGETHER


def done(outcome: Outcome, reason: str) -> SessionEvent:
    """The end of a turn. `reason` is one of completed, failed, interrupted, stopped, timed_out, stalled."""
    turns, taken, given = outcome.counts
    told = {"reason": reason, "output": outcome.output, "error": outcome.error, "cost_usd": outcome.cost_usd}
    return SessionEvent(DONE, {**told, "turns": turns, "input_tokens": taken, "output_tokens": given})

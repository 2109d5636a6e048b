"""From the lines that a client program prints to what happens in a session. Nothing that it prints ends a turn."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

from rookery.lifecycle.sessions import Outcome
from rookery.sessions.events import SessionEvent
from rookery.sessions.port import ToolUse

Json = dict[str, Any]
LONGEST_LINE = 2000
MOST_SAID = 1_000_000


@dataclass(frozen=True, slots=True)
class Wanted:
    """A program asks whether it may use a tool, and waits for the answer to its request."""

    request: str
    use: ToolUse


@dataclass(slots=True)
class Tally:
    """What is known of a turn so far."""

    native_id: str | None = None
    said: str = ""
    """The last that the agent said."""
    error: str = ""
    status: int | None = None
    """What the model's service answered, if that is the error."""
    code: str = ""
    """A word for the error that programs can tell apart, if the client knows one."""
    over: bool = False
    """Whether the program has said that the turn is over."""
    cost_usd: float = 0.0
    turns: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    total: tuple[int, int] | None = None
    """The tokens, taken and given, of the whole session, if the client counts those."""
    wanted: list[Wanted] = field(default_factory=list[Wanted])

    def outcome(self, error: str = "") -> Outcome:
        """How the turn ended, with what it has used up to now."""
        used = (self.cost_usd, max(self.turns, 1), self.input_tokens, self.output_tokens)
        return Outcome("failed" if error else "done", self.said, error, *used)


class Reader:
    """Reads the output of one turn. Clients know their own lines; what none knows becomes a `system` event."""

    ends_turns = True
    """Whether the program says that a turn is over. If it does not, its end is the turn's end."""

    def __init__(self, servers: Sequence[str] = (), native_id: str | None = None) -> None:
        self.tally = Tally(native_id)
        self._servers = sorted(servers, key=len, reverse=True)

    def read(self, line: str) -> list[SessionEvent]:
        """What this line tells."""
        text = line.strip()
        if not text:
            return []
        try:
            found: Any = json.loads(text)
        except (ValueError, RecursionError):
            return [unknown(text)]
        if not isinstance(found, dict):
            return [unknown(text)]
        try:
            events = self._take(cast(Json, found))
            return [unknown(text)] if events is None else list(events)
        except (AttributeError, KeyError, TypeError, ValueError):
            # A line of a known kind in a shape that no version of the client has had up to now.
            return [unknown(text)]

    def _take(self, line: Json) -> Iterator[SessionEvent] | None:
        """The events of a line; None if it is of no kind that is known."""
        raise NotImplementedError

    def _named(self, tool: str, prefix: str, between: str) -> str:
        """A tool of an MCP server as we call it, `mcp__server__tool`, from what the client calls it."""
        for server in self._servers:
            start = f"{prefix}{server}{between}"
            if tool.startswith(start):
                return f"mcp__{server}__{tool[len(start) :]}"
        return tool


def unknown(text: str) -> SessionEvent:
    return SessionEvent("system", {"line": text[:LONGEST_LINE]})


def said(text: str) -> SessionEvent:
    return SessionEvent("text_delta", {"text": text})


def thought(text: str) -> SessionEvent:
    return SessionEvent("thinking_delta", {"text": text})


def told(text: str) -> SessionEvent:
    return SessionEvent("system", {"text": text[:LONGEST_LINE]})


def called(call_id: str, tool: str, given: Any) -> Iterator[SessionEvent]:
    """A call that is told all at once."""
    yield SessionEvent("tool_call_start", {"call_id": call_id, "tool": tool})
    yield SessionEvent("tool_call_end", {"call_id": call_id, "tool": tool, "input": table(given)})


def result(call_id: str, tool: str, answer: str, *, is_error: bool, structured: Any = None) -> SessionEvent:
    data: Json = {"call_id": call_id, "text": answer, "is_error": is_error}
    if tool:
        data["tool"] = tool
    return SessionEvent("tool_result", data if structured is None else {**data, "structured": structured})


def content_text(content: Any) -> str:
    """The texts among the blocks of a result, or the text that it is."""
    if isinstance(content, str):
        return content
    return "\n".join(text(table(block).get("text")) for block in rows(content)).strip("\n")


def table(value: Any) -> Json:
    """A JSON object, an empty one if the value is none."""
    return cast(Json, value) if isinstance(value, dict) else {}


def rows(value: Any) -> list[Any]:
    return cast("list[Any]", value) if isinstance(value, list) else []


def text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def whole(value: Any) -> int:
    """A number of things, 0 if the value is none."""
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else 0


def dollars(value: Any) -> float:
    # Outcome itself knows what is no price.
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else 0.0


def counted(usage: Mapping[str, Any], *names: str) -> int:
    return sum(whole(usage.get(name)) for name in names)

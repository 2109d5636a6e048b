"""The events of a session as the pieces of a page: who said what, which tools were used, what was asked. Pure."""

import hashlib
import json
from collections.abc import Iterable, Mapping
from functools import cache
from typing import Any

from markupsafe import Markup, escape

from rookery.web.rendering import environment
from rookery.web.showing import LONGEST_MARKDOWN, harmless, one_line
from rookery.web.status_lines import plain_tool

Event = Mapping[str, Any]
Piece = dict[str, Any]
FLOWING: Mapping[str, str] = {"text_delta": "text", "thinking_delta": "thinking"}
QUIET = frozenset({"session_status", "tool_status", "task_update", "tool_call_delta"})
"""What says something of a session while a text goes on."""
CALLS = frozenset({"tool_call_start", "tool_call_end", "tool_result"})
ASKS: Mapping[str, str] = {"approval_required": "approval", "question_prompt": "question"}
FOLDED_ABOVE = 700
SHOWN = 20_000
ORIGINS = ("message", "orchestrator", "schedule", "work", "workflow", "a2a")


class Transcript:
    """The pieces so far. Events are added in their order, from any on; `flow` is the text that may still go on."""

    def __init__(self, events: Iterable[Event] = (), *, over: bool = False) -> None:
        self.pieces: list[Piece] = []
        self.tasks: list[dict[str, Any]] = []
        self.flow: Piece | None = None
        self._calls: dict[str, Piece] = {}
        self._asks: dict[str, Piece] = {}
        for event in events:
            self.add(event)
        if over:
            # What is older than the rest of a page ends somewhere below, if it ends.
            self._leave("below")

    def add(self, event: Event) -> None:
        """Take one more event."""
        name, data = event["event"], event["data"]
        if name in FLOWING:
            self._flow(event)
            return
        if name not in QUIET:
            self.flow = None
        if name in CALLS:
            self._call(event)
        elif name == "tool_status":
            self._status(data)
        elif name == "task_update":
            self.tasks = tasks_of(data)
        elif name == "interaction_resolved":
            self._asks.get(str(data.get("ask_id")), {}).update(how=data.get("how"), decided=data.get("reason") or "")
        elif (piece := piece_of(event)) is not None:
            if piece["kind"] in ("user", "done"):
                self._leave("ended")
            if piece["kind"] == "ask":
                self._asks[piece["ask_id"]] = piece
            self.pieces.append(piece)

    def _flow(self, event: Event) -> None:
        kind, text = FLOWING[event["event"]], str(event["data"].get("text", ""))
        if self.flow is None or self.flow["kind"] != kind:
            self.flow = {"kind": kind, "id": f"e{event['number']}", "at_ms": event["at_ms"], "text": ""}
            self.pieces.append(self.flow)
        self.flow["text"] = joined(self.flow["text"], text)

    def _call(self, event: Event) -> None:
        key = call_key(event["data"])
        call = self._calls.get(key)
        if call is None:
            call = self._calls[key] = call_piece(event)
            self.pieces.append(call)
        call.update(call_update(event))

    def _status(self, data: Mapping[str, Any]) -> None:
        named = self._calls.get(call_key(data)) if data.get("call_id") else None
        tool = plain_tool(str(data.get("tool") or ""))
        alike = (each for each in reversed(self._calls.values()) if each["tool"] == tool and each["state"] == "working")
        call = named or next(alike, None)
        if call is not None:
            call["status"] = one_line(data.get("text") or "", 300)

    def _leave(self, state: str) -> None:
        """No call that has no result yet goes on."""
        for call in self._calls.values():
            if call["state"] == "working":
                call["state"] = state


def named(event: Event, people: Mapping[str, str]) -> Event:
    """The event with the name of the person who sent it, not the id."""
    sender = event["data"].get("from")
    if event["event"] != "turn_input" or sender not in people:
        return event
    return {**event, "data": {**event["data"], "from": people[sender]}}


def joined(before: str, more: str) -> str:
    """A text that goes on, as far as it is shown."""
    return before + more if len(before) <= LONGEST_MARKDOWN else before


def call_key(data: Mapping[str, Any]) -> str:
    """The id of the element of a call. What a runtime calls it may be anything."""
    return f"call-{hashlib.sha256(str(data.get('call_id')).encode('utf-8', 'replace')).hexdigest()[:16]}"


def call_piece(event: Event) -> Piece:
    """A call that has begun."""
    data = event["data"]
    tool = plain_tool(str(data.get("tool") or "a tool"))
    begun = {"kind": "call", "id": call_key(data), "tool": tool, "at_ms": event["at_ms"], "run_id": event["run_id"]}
    return {**begun, "given": None, "result": None, "state": "working", "status": "", "gist": ""}


def call_update(event: Event) -> Piece:
    """What an event adds to a call."""
    data = event["data"]
    if event["event"] == "tool_call_end":
        given = data.get("input")
        text = given if isinstance(given, str) else json.dumps(given, indent=2, ensure_ascii=False, default=str)
        return {"given": folded(text), "gist": one_line(_gist(given), 120), **_tool(data)}
    if event["event"] == "tool_result":
        result = folded(str(data.get("text") or "") or "(nothing)")
        return {"result": result, "state": "failed" if data.get("is_error") else "done", "status": "", **_tool(data)}
    return _tool(data)


def _tool(data: Mapping[str, Any]) -> Piece:
    return {"tool": plain_tool(str(data["tool"]))} if data.get("tool") else {}


def _gist(given: Any) -> str:
    """The input on one line: of several fields the first that says something."""
    if not isinstance(given, dict):
        return "" if given is None else str(given)
    return ", ".join(f"{name}: {value}" for name, value in list(given.items())[:4])  # pyright: ignore


def folded(text: str) -> dict[str, Any]:
    """A text as it is shown, and how much it is if it is folded."""
    lines = text.count("\n") + 1
    long = len(text) > FOLDED_ABOVE or lines > 16
    size = f"{len(text):,} characters{f', {lines:,} lines' if lines > 1 else ''}" if long else ""
    return {"shown": escape(harmless(text, SHOWN)), "size": size}


def piece_of(event: Event) -> Piece | None:
    """The piece that an event is by itself; None if it is part of others, or of none."""
    name, data = event["event"], event["data"]
    whole = {"id": f"e{event['number']}", "at_ms": event["at_ms"], "run_id": event["run_id"]}
    if name == "turn_input":
        text = folded(str(data.get("text") or ""))
        return {**whole, "kind": "user", "text": text, "from": one_line(data.get("from") or "", 80)}
    if name in ASKS:
        asked = {"ask_id": str(data.get("ask_id"))[:64], "asked": ASKS[name], "how": None, "decided": ""}
        return {**whole, "kind": "ask", **asked, "title": one_line(_question(data), 160)}
    if name == "error":
        return {**whole, "kind": "error", "text": str(data.get("message") or data.get("code") or "")}
    if name == "system":
        return {**whole, "kind": "line", "text": str(data.get("text") or data.get("line") or "")}
    return {**whole, "kind": "done", **data} if name == "done" else None


def _question(data: Mapping[str, Any]) -> str:
    for asked in data.get("questions") or ():
        return str(asked.get("question") or "")
    return str(data.get("title") or data.get("tool") or "")


def tasks_of(data: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The list of tasks as the agent keeps it."""
    found: list[dict[str, Any]] = []
    for task in list(data.get("tasks") or ())[:200]:
        found.append({"text": str(task.get("text") or ""), "status": str(task.get("status") or "")})
    return found


@cache
def parts() -> Any:
    """The macros with which pieces are drawn, on the page and in its stream alike."""
    return environment().get_template("session_parts.html").module


def drawn(piece: Piece, *, flowing: bool = False) -> Markup:
    """A piece as HTML. A text that goes on is shown as it comes, and as Markdown when it is whole."""
    return Markup(parts().piece(piece, flowing))

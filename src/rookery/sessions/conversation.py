"""A session's events as the conversation that they are: who said what, which tools were used and what came of it. Pure.

The parts of a message are those of a transcript, so that both are read in the same way.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from rookery.sessions.writing import Kept

Json = dict[str, Any]
_FLOWING = {"text_delta": "text", "thinking_delta": "thinking"}
_ASKED = {"approval_required": "approval", "question_prompt": "question"}


class Talk:
    """The messages so far, as JSON, and the tasks as they stand. Events are added in their order, from any on."""

    def __init__(self, events: Iterable[Kept] = ()) -> None:
        self.messages: list[Json] = []
        self.tasks: list[Json] = []
        self._calls: dict[str, Json] = {}
        self._asks: dict[str, Json] = {}
        for event in events:
            self.add(event)

    def add(self, event: Kept) -> None:
        """Take one more event. What is no part of the conversation, such as a status of the session, adds nothing."""
        data = event.data
        if event.name == "turn_input":
            said = {"type": "text", "text": data.get("text", "")}
            told = {"message_id": data.get("message_id"), "from": data.get("from")}
            self.messages.append({"role": "user", **told, "at_ms": event.at_ms, "parts": [said]})
        elif event.name in _FLOWING:
            self._flow(event, _FLOWING[event.name])
        elif event.name in ("tool_call_start", "tool_call_end"):
            self._call(event)
        elif event.name == "tool_result":
            shown = {"result": data.get("text", ""), "is_error": bool(data.get("is_error"))}
            self._call(event).update(shown)
        elif event.name in _ASKED:
            self._asks[str(data.get("ask_id"))] = self._add(event, {"type": _ASKED[event.name], **data, "how": None})
        elif event.name == "interaction_resolved":
            self._asks.get(str(data.get("ask_id")), {}).update(how=data.get("how"), decided=data.get("reason"))
        elif event.name == "task_update":
            self.tasks = list(data.get("tasks") or ())
        elif event.name == "error":
            self._add(event, {"type": "error", "text": data.get("message", "")})
        elif event.name == "done":
            self._answer(event)["done"] = dict(data)

    def _answer(self, event: Kept) -> Json:
        """The agent's message to which the event belongs: one for each turn."""
        if not self.messages or self.messages[-1]["role"] != "agent" or "done" in self.messages[-1]:
            self.messages.append({"role": "agent", "run_id": event.run_id, "at_ms": event.at_ms, "parts": []})
        return self.messages[-1]

    def _add(self, event: Kept, part: Json) -> Json:
        self._answer(event)["parts"].append(part)
        return part

    def _flow(self, event: Kept, kind: str) -> None:
        parts: list[Json] = self._answer(event)["parts"]
        text = str(event.data.get("text", ""))
        if parts and parts[-1]["type"] == kind:
            parts[-1]["text"] += text
        else:
            parts.append({"type": kind, "text": text})

    def _call(self, event: Kept) -> Json:
        data: Mapping[str, Any] = event.data
        call_id = str(data.get("call_id"))
        call = self._calls.get(call_id)
        if call is None:
            begun = {"type": "tool", "call_id": call_id, "tool": data.get("tool"), "input": None}
            call = self._calls[call_id] = self._add(event, {**begun, "result": None, "is_error": False})
        if data.get("tool"):
            call["tool"] = data["tool"]
        if "input" in data:
            call["input"] = data["input"]
        return call

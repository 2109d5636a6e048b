"""From the messages of the Claude Agent SDK to what happens in a session."""

import base64
import binascii
import json
from collections.abc import Iterator, Mapping
from typing import Any, cast

from claude_agent_sdk import (
    AssistantMessage,
    ConversationResetMessage,
    HookEventMessage,
    RateLimitEvent,
    ResultMessage,
    ServerToolResultBlock,
    ServerToolUseBlock,
    StreamEvent,
    SystemMessage,
    TaskNotificationMessage,
    TaskProgressMessage,
    TaskStartedMessage,
    TaskUpdatedMessage,
    TextBlock,
    ThinkingBlock,
    ToolResultBlock,
    ToolUseBlock,
    UserMessage,
)

from rookery.runtimes.claude_tasks import Tasks
from rookery.sessions.events import SessionEvent

Json = dict[str, Any]
SILENT = frozenset(
    {"status", "thinking_tokens", "session_state_changed", "background_tasks_changed", "post_turn_summary"}
)
"""What Claude Code says of itself many times a turn and nobody has to know."""
LONGEST_LINE = 2000
CONNECTED = "connected"


class Reading:
    """Makes events of messages, in the order in which they come. One for each agent."""

    def __init__(self) -> None:
        self.native_id: str | None = None
        self.model: str | None = None
        self.context_tokens: int | None = None
        self.input_tokens = 0
        self.output_tokens = 0
        """What the turn has used so far, as far as it was told."""
        self._unexplained: list[Json] = []
        self._tasks = Tasks()
        self._streamed: str | None = None
        """The answer that is told piece by piece: its blocks are not told again."""
        self._blocks: dict[int, str] = {}
        self._called: dict[str, str] = {}
        """The tools in use, by their calls."""

    def events(self, message: object) -> Iterator[SessionEvent]:
        """What a message means. The end of a turn is not among it: see `status`."""
        match message:
            case StreamEvent():
                yield from self._piece(message)
            case AssistantMessage():
                yield from self._said(message)
            case UserMessage():
                yield from self._came_back(message)
            case HookEventMessage():
                return
            case TaskStartedMessage() | TaskProgressMessage() | TaskNotificationMessage() | TaskUpdatedMessage():
                yield from _update(self._tasks.heard(message))
            case SystemMessage():
                yield from self._system(message.subtype, message.data)
            case RateLimitEvent():
                yield from _limit(message)
            case ConversationResetMessage():
                self.native_id = message.new_conversation_id
            case _:
                return

    def begin(self) -> None:
        """A turn begins."""
        self.input_tokens = self.output_tokens = 0

    def status(self, result: ResultMessage) -> SessionEvent:
        """What is known of the session when a turn is over."""
        self.native_id = result.session_id or self.native_id
        self._called.clear()
        used = cast("dict[str, Json]", result.model_usage or {}).get(self.model or "") or {}
        known = {
            "model": self.model,
            "cost_usd": result.total_cost_usd,
            "context_tokens": self.context_tokens,
            "context_max_tokens": used.get("contextWindow"),
        }
        return SessionEvent("session_status", {key: value for key, value in known.items() if value is not None})

    def unexplained(self) -> list[Json]:
        """The servers that were just told not to be connected, once."""
        servers, self._unexplained = self._unexplained, []
        return servers

    def _piece(self, message: StreamEvent) -> Iterator[SessionEvent]:
        event = message.event
        match event.get("type"):
            case "message_start":
                self.input_tokens += taken(event["message"].get("usage"))
                if message.parent_tool_use_id is None:
                    self._streamed, self._blocks = event["message"].get("id"), {}
            case "message_delta":
                self.output_tokens += given(event.get("usage"))
            case _ if message.parent_tool_use_id is not None:
                # What a helper of the agent does is told when it is whole.
                return
            case "content_block_start" if event["content_block"]["type"] in ("tool_use", "server_tool_use"):
                block = event["content_block"]
                self._blocks[event["index"]] = block["id"]
                yield self._starts(block["id"], block["name"], None)
            case "content_block_delta":
                yield from self._delta(event["index"], event["delta"])
            case _:
                return

    def _delta(self, index: int, delta: Json) -> Iterator[SessionEvent]:
        match delta.get("type"):
            case "text_delta" if delta["text"]:
                yield SessionEvent("text_delta", {"text": delta["text"]})
            case "thinking_delta" if delta["thinking"]:
                yield SessionEvent("thinking_delta", {"text": delta["thinking"]})
            case "input_json_delta" if delta["partial_json"] and index in self._blocks:
                yield SessionEvent("tool_call_delta", {"call_id": self._blocks[index], "text": delta["partial_json"]})
            case _:
                return

    def _starts(self, call_id: str, tool: str, parent: str | None) -> SessionEvent:
        self._called[call_id] = tool
        below = {"parent_call_id": parent} if parent else {}
        return SessionEvent("tool_call_start", {"call_id": call_id, "tool": tool, **below})

    def _said(self, message: AssistantMessage) -> Iterator[SessionEvent]:
        told = message.message_id is not None and message.message_id == self._streamed
        parent = message.parent_tool_use_id
        if parent is None and message.usage and message.error is None:
            self.model = message.model
            self.context_tokens = taken(message.usage) + given(message.usage)
        for block in message.content:
            match block:
                # What a helper of the agent says is for the agent; its use of tools is for everybody.
                case TextBlock(text) if not told and parent is None and message.error is None:
                    yield SessionEvent("text_delta", {"text": text})
                case ThinkingBlock(thinking) if not told and parent is None:
                    yield SessionEvent("thinking_delta", {"text": thinking})
                case ToolUseBlock(call_id, tool, arguments) | ServerToolUseBlock(call_id, tool, arguments):
                    yield from self._uses(call_id, tool, arguments, parent)
                case ServerToolResultBlock(call_id, content):
                    yield _result(ToolResultBlock(call_id, [content]), self._called.get(call_id), None)
                case _:
                    pass

    def _came_back(self, message: UserMessage) -> Iterator[SessionEvent]:
        if isinstance(message.content, str):
            return
        for block in message.content:
            if isinstance(block, ToolResultBlock):
                tool = self._called.get(block.tool_use_id)
                yield _result(block, tool, message.tool_use_result)
                if not block.is_error:
                    yield from _update(self._tasks.done(tool or "", message.tool_use_result))

    def _system(self, subtype: str, data: Json) -> Iterator[SessionEvent]:
        match subtype:
            case "init":
                self.native_id, self.model = data.get("session_id"), data.get("model")
                servers = [{"name": each["name"], "status": each["status"]} for each in data.get("mcp_servers", ())]
                self._unexplained = [each for each in servers if each["status"] != CONNECTED]
                yield SessionEvent("session_status", {"model": self.model, "servers": servers})
            case "api_retry":
                yield SessionEvent("system", {"text": _retry(data)})
            case "compact_boundary":
                yield SessionEvent("system", {"text": "The conversation was summed up to make room for more."})
            case _ if subtype not in SILENT:
                yield SessionEvent("system", {"line": json.dumps(data, ensure_ascii=False, default=str)[:LONGEST_LINE]})
            case _:
                return

    def _uses(self, call_id: str, tool: str, arguments: Json, parent: str | None) -> Iterator[SessionEvent]:
        if call_id not in self._called:
            yield self._starts(call_id, tool, parent)
        yield SessionEvent("tool_call_end", {"call_id": call_id, "tool": tool, "input": arguments})
        yield from _update(self._tasks.wanted(tool, arguments))


def _update(tasks: list[Json] | None) -> Iterator[SessionEvent]:
    if tasks is not None:
        yield SessionEvent("task_update", {"tasks": tasks})


def taken(usage: Mapping[str, Any] | None) -> int:
    """The tokens that went in, also those that the service had kept."""
    counted = ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")
    return sum(usage.get(name) or 0 for name in counted) if usage else 0


def given(usage: Mapping[str, Any] | None) -> int:
    """The tokens that came out."""
    return usage.get("output_tokens") or 0 if usage else 0


def _retry(data: Json) -> str:
    status = f" ({data['error_status']})" if data.get("error_status") else ""
    again = f"attempt {data['attempt']} of {data['max_retries']}" if "max_retries" in data else "again"
    return f"The model's service did not answer as it should{status}; it is asked again: {again}."


def _limit(message: RateLimitEvent) -> Iterator[SessionEvent]:
    info = message.rate_limit_info
    if info.status != "allowed":
        yield SessionEvent("system", {"text": f"The limit of the model's service is near or reached: {info.status}."})


def _result(block: ToolResultBlock, tool: str | None, raw: object) -> SessionEvent:
    parts: list[Json] = block.content if isinstance(block.content, list) else []
    text = block.content if isinstance(block.content, str) else "\n".join(_text(part) for part in parts)
    data: Json = {"call_id": block.tool_use_id, "text": text.strip("\n"), "is_error": bool(block.is_error)}
    if tool is not None:
        data["tool"] = tool
    structured = cast("Json", raw).get("structuredContent") if isinstance(raw, dict) else None
    if structured is not None:
        data["structured"] = structured
    images = [_image(part["source"]) for part in parts if part.get("type") == "image" and part.get("source")]
    return SessionEvent("tool_result", {**data, "images": images} if images else data)


def _text(part: Json) -> str:
    return part.get("text") or ""


def _image(source: Json) -> Json:
    try:
        size = len(base64.b64decode(source.get("data") or ""))
    except binascii.Error:
        size = 0
    return {"mime_type": source.get("media_type", ""), "bytes": size}

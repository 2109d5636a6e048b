"""The lines of `claude --output-format stream-json`."""

import base64
import binascii
from collections.abc import Iterator, Sequence

from rookery.runtimes.claude_cost import own_cost
from rookery.runtimes.claude_tasks import Tasks
from rookery.runtimes.command_reading import (
    Json,
    Reader,
    Wanted,
    content_text,
    counted,
    dollars,
    result,
    rows,
    said,
    table,
    text,
    thought,
    told,
    whole,
)
from rookery.sessions.events import SessionEvent
from rookery.sessions.port import ToolUse

TAKEN = ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")
_SILENT = frozenset(
    {"status", "thinking_tokens", "session_state_changed", "background_tasks_changed", "post_turn_summary"}
)
_ENDS = {
    "error_max_turns": ("The agent was not done after the turns that it may take.", "max_turns"),
    "error_max_budget_usd": ("The agent has spent what it may spend in this session.", "budget"),
}


class ClaudeReader(Reader):
    """Texts and calls that come piece by piece are told as they come, and not again when they are whole."""

    def __init__(self, servers: Sequence[str] = (), native_id: str | None = None) -> None:
        super().__init__(servers, native_id)
        self._tasks = Tasks()
        self._streamed: set[str] = set()
        self._blocks: dict[int, str] = {}
        self._called: dict[str, str] = {}
        self._model = ""
        self._context = 0

    def _take(self, line: Json) -> Iterator[SessionEvent] | None:
        self.tally.native_id = text(line.get("session_id")) or self.tally.native_id
        below = text(line.get("parent_tool_use_id"))
        match line.get("type"):
            case "stream_event":
                # What a helper of the agent does is told when it is whole.
                return self._piece(table(line.get("event"))) if not below else iter(())
            case "assistant":
                return self._said(table(line.get("message")), below, line.get("error") is not None)
            case "user":
                return self._came_back(line)
            case "system":
                return self._system(line)
            case "result":
                return self._over(line)
            case "control_request":
                return self._asked(line)
            case "control_response" | "keep_alive":
                return iter(())
            case _:
                return None

    def _piece(self, event: Json) -> Iterator[SessionEvent]:
        match event.get("type"):
            case "message_start":
                self._streamed.add(text(table(event.get("message")).get("id")))
                self._blocks.clear()
            case "content_block_start":
                block = table(event.get("content_block"))
                if block.get("type") in ("tool_use", "server_tool_use"):
                    self._blocks[whole(event.get("index"))] = text(block.get("id"))
                    yield self._starts(text(block.get("id")), text(block.get("name")), "")
            case "content_block_delta":
                yield from self._delta(whole(event.get("index")), table(event.get("delta")))
            case _:
                return

    def _delta(self, index: int, delta: Json) -> Iterator[SessionEvent]:
        if more := text(delta.get("text")):
            yield said(more)
        elif more := text(delta.get("thinking")):
            yield thought(more)
        elif (more := text(delta.get("partial_json"))) and index in self._blocks:
            yield SessionEvent("tool_call_delta", {"call_id": self._blocks[index], "text": more})

    def _starts(self, call_id: str, tool: str, below: str) -> SessionEvent:
        self._called[call_id] = tool
        parent = {"parent_call_id": below} if below else {}
        return SessionEvent("tool_call_start", {"call_id": call_id, "tool": tool, **parent})

    def _said(self, message: Json, below: str, failed: bool) -> Iterator[SessionEvent]:
        known = text(message.get("id")) in self._streamed
        usage = table(message.get("usage"))
        if not below and not failed:
            self._model = text(message.get("model")) or self._model
            self._context = counted(usage, *TAKEN, "output_tokens") or self._context
        for block in (table(each) for each in rows(message.get("content"))):
            match block.get("type"):
                # What a helper of the agent says is for the agent, and what the program says in its place is an error.
                case "text" if not known and not below and not failed:
                    yield said(text(block.get("text")))
                case "thinking" if not known and not below:
                    yield thought(text(block.get("thinking")))
                case "tool_use":
                    call_id, tool = text(block.get("id")), text(block.get("name"))
                    if call_id not in self._called:
                        yield self._starts(call_id, tool, below)
                    given = table(block.get("input"))
                    yield SessionEvent("tool_call_end", {"call_id": call_id, "tool": tool, "input": given})
                    yield from _update(self._tasks.wanted(tool, given))
                case _:
                    pass

    def _came_back(self, line: Json) -> Iterator[SessionEvent]:
        raw = line.get("tool_use_result")
        for block in (table(each) for each in rows(table(line.get("message")).get("content"))):
            if block.get("type") != "tool_result":
                continue
            call_id, content = text(block.get("tool_use_id")), block.get("content")
            tool, failed = self._called.get(call_id, ""), block.get("is_error") is True
            structured = table(raw).get("structuredContent")
            event = result(call_id, tool, content_text(content), is_error=failed, structured=structured)
            images = [_image(table(part.get("source"))) for part in map(table, rows(content)) if part.get("source")]
            yield SessionEvent("tool_result", {**event.data, "images": images}) if images else event
            if not failed:
                yield from _update(self._tasks.done(tool, raw))

    def _system(self, line: Json) -> Iterator[SessionEvent] | None:
        subtype = text(line.get("subtype"))
        if subtype == "init":
            return self._began(line)
        if subtype == "api_retry":
            return iter([told(f"The model's service did not answer; attempt {whole(line.get('attempt'))} is over.")])
        if subtype == "compact_boundary":
            return iter([told("The conversation was summed up to make room for more.")])
        return iter(()) if subtype in _SILENT else None

    def _began(self, line: Json) -> Iterator[SessionEvent]:
        self._model = text(line.get("model"))
        listed = [table(each) for each in rows(line.get("mcp_servers"))]
        servers = [{"name": text(each.get("name")), "status": text(each.get("status"))} for each in listed]
        yield SessionEvent("session_status", {"model": self._model, "servers": servers})

    def _asked(self, line: Json) -> Iterator[SessionEvent] | None:
        request = table(line.get("request"))
        if request.get("subtype") != "can_use_tool":
            return None
        use = ToolUse(
            tool=text(request.get("tool_name")),
            input=table(request.get("input")),
            call_id=text(request.get("tool_use_id")),
            title=text(request.get("title")) or text(request.get("display_name")),
            reason=text(request.get("decision_reason")) or text(request.get("description")),
        )
        self.tally.wanted.append(Wanted(text(line.get("request_id")), use))
        return iter(())

    def _over(self, line: Json) -> Iterator[SessionEvent]:
        tally, usage = self.tally, table(line.get("usage"))
        tally.over = True
        total, own = dollars(line.get("total_cost_usd")), own_cost(line)
        tally.cost_usd, tally.turns = total if own is None else own, whole(line.get("num_turns"))
        tally.input_tokens, tally.output_tokens = counted(usage, *TAKEN), counted(usage, "output_tokens")
        tally.said = text(line.get("result"))
        if line.get("is_error") is True:
            problems = "; ".join(text(each) for each in rows(line.get("errors")))
            subtype = text(line.get("subtype"))
            tally.error = problems or tally.said or subtype or "it did not say why"
            tally.said = ""
            tally.status = whole(line.get("api_error_status")) or None
            if subtype in _ENDS:
                tally.error, tally.code = _ENDS[subtype]
        window = table(table(line.get("modelUsage")).get(self._model)).get("contextWindow")
        known = {
            "model": self._model,
            "cost_usd": total,
            "context_tokens": self._context,
            "context_max_tokens": whole(window),
        }
        yield SessionEvent("session_status", {key: value for key, value in known.items() if value})


def _update(tasks: list[Json] | None) -> Iterator[SessionEvent]:
    if tasks is not None:
        yield SessionEvent("task_update", {"tasks": tasks})


def _image(source: Json) -> Json:
    try:
        size = len(base64.b64decode(text(source.get("data"))))
    except (binascii.Error, ValueError):
        size = 0
    return {"mime_type": text(source.get("media_type")), "bytes": size}

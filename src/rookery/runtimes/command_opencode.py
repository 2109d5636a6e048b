"""opencode: `opencode run --format json`. It asks nobody: a tool is free or it is not there."""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from rookery.core.actor import Mode
from rookery.runtimes.command_client import AsksNobody, Invocation, Server, Turn, tools_of, write_private
from rookery.runtimes.command_reading import (
    Json,
    Reader,
    called,
    counted,
    dollars,
    result,
    rows,
    said,
    table,
    text,
    thought,
    whole,
)
from rookery.sessions.events import SessionEvent
from rookery.sessions.port import OURS

_READS = {
    "*": "deny",
    **dict.fromkeys(("read", "grep", "glob", "list", "todoread", "todowrite", "webfetch", "websearch"), "allow"),
}
_EDITS = {**_READS, "edit": "allow", "write": "allow", "patch": "allow"}
PERMISSION: Mapping[Mode, Mapping[str, str]] = {"ask": _READS, "act": _EDITS, "autonomy": {"*": "allow"}}
CALL_MS = 900_000
KEYS = (
    "ANTHROPIC", "OPENAI", "GEMINI", "GOOGLE_GENERATIVE_AI", "OPENROUTER", "GROQ", "MISTRAL", "DEEPSEEK", "XAI",
    "TOGETHER", "FIREWORKS", "CEREBRAS", "MOONSHOT", "ZHIPU", "COHERE", "PERPLEXITY",
)  # fmt: skip


class Opencode(AsksNobody):
    """Calls of our own tools are decided at our server, which asks for itself.

    What a project says about opencode does not count: an agent could have written it.
    """

    name = "opencode"
    title = "opencode"
    program = "opencode"
    install = "npm install -g opencode-ai"
    variables = ("OPENCODE_", *(f"{key}_API_KEY" for key in KEYS))

    def invocation(self, turn: Turn) -> Invocation:
        free = [f"{name}_{tool}" for name in turn.servers for tool in tools_of(name, turn.allowed)]
        permission = {**PERMISSION[turn.mode], f"{OURS}_*": "allow", **dict.fromkeys(free, "allow")}
        config: Json = {
            "$schema": "https://opencode.ai/config.json",
            "autoupdate": False,
            "share": "disabled",
            "mcp": {name: _entry(server) for name, server in turn.servers.items()},
            "permission": permission,
        }
        if turn.launch.instructions:
            config["instructions"] = [str(write_private(turn.folder / "instructions.md", turn.launch.instructions))]
        words = [self.program, "run", "--format", "json"]
        if turn.launch.model:
            words += ["--model", turn.launch.model]
        if turn.native_id is not None:
            words += ["--session", turn.native_id]
        switches = {"OPENCODE_CONFIG_CONTENT": json.dumps(config), "OPENCODE_DISABLE_PROJECT_CONFIG": "1"}
        return Invocation(words=words, input=turn.prompt.encode(errors="replace"), environment=switches)

    def reader(self, turn: Turn) -> "OpencodeReader":
        return OpencodeReader(list(turn.servers), turn.native_id)


def _entry(server: Server) -> Json:
    if "command" not in server:
        return {
            "type": "remote",
            "url": server.get("url", ""),
            "headers": table(server.get("headers")),
            "enabled": True,
        }
    command: list[Any] = [server["command"], *(server.get("args") or ())]
    entry: Json = {"type": "local", "command": command, "enabled": True, "timeout": CALL_MS}
    return {**entry, "environment": table(server.get("env"))}


class OpencodeReader(Reader):
    ends_turns = False

    def _take(self, line: Json) -> Iterator[SessionEvent] | None:
        self.tally.native_id = text(line.get("sessionID")) or self.tally.native_id
        part = table(line.get("part"))
        match line.get("type"):
            case "step_start":
                return iter(())
            case "text":
                return self._said(text(part.get("text")))
            case "reasoning":
                return iter([thought(text(part.get("text")))])
            case "tool_use":
                return self._used(part)
            case "step_finish":
                return self._step(part)
            case "error":
                self._failed(table(line.get("error")))
                return iter(())
            case _:
                return None

    def _said(self, more: str) -> Iterator[SessionEvent]:
        self.tally.said = more
        yield said(more)

    def _used(self, part: Json) -> Iterator[SessionEvent]:
        state, call_id = table(part.get("state")), text(part.get("callID"))
        tool = self._named(text(part.get("tool")), "", "_")
        yield from called(call_id, tool, state.get("input"))
        failed = state.get("status") != "completed"
        answer = text(state.get("error")) if failed else text(state.get("output"))
        yield result(call_id, tool, answer, is_error=failed)
        if tool == "todowrite" and not failed:
            yield _tasks(rows(table(state.get("input")).get("todos")))

    def _step(self, part: Json) -> Iterator[SessionEvent]:
        tally, tokens = self.tally, table(part.get("tokens"))
        cached = counted(table(tokens.get("cache")), "read", "write")
        tally.turns += 1
        tally.cost_usd += dollars(part.get("cost"))
        tally.input_tokens += counted(tokens, "input") + cached
        tally.output_tokens += counted(tokens, "output", "reasoning")
        yield SessionEvent("session_status", {"cost_usd": tally.cost_usd, "context_tokens": counted(tokens, "total")})

    def _failed(self, error: Json) -> None:
        told = table(error.get("data"))
        self.tally.error = text(told.get("message")) or text(error.get("name")) or "it did not say why"
        self.tally.status = whole(told.get("statusCode")) or None


def _tasks(todos: Sequence[Any]) -> SessionEvent:
    numbered = enumerate((table(each) for each in todos), 1)
    return SessionEvent("task_update", {"tasks": [_task(str(number), each) for number, each in numbered]})


def _task(number: str, todo: Json) -> Json:
    return {"id": number, "text": text(todo.get("content")), "status": text(todo.get("status")) or "pending"}

"""Gemini CLI: `gemini --output-format stream-json`. It asks nobody: what it would have to ask for is refused."""

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from rookery.core.actor import Mode
from rookery.core.errors import ConfigurationError
from rookery.runtimes.command_client import AsksNobody, Invocation, Server, Turn, tools_of, write_private
from rookery.runtimes.command_reading import (
    MOST_SAID,
    Json,
    Reader,
    called,
    counted,
    result,
    said,
    table,
    text,
    told,
)
from rookery.sessions.events import SessionEvent
from rookery.sessions.port import OURS

APPROVAL: Mapping[Mode, str] = {"ask": "default", "act": "auto_edit", "autonomy": "yolo"}
CALL_MS = 14_400_000
"""A call of ours may wait for a person."""
READS = (
    "read_file", "read_many_files", "list_directory", "glob", "grep_search", "search_file_content",
    "google_web_search", "web_fetch", "write_todos", "update_topic", "get_internal_docs", "list_mcp_resources",
    "read_mcp_resource",
)  # fmt: skip
EDITS = ("replace", "write_file")
SETTINGS = "GEMINI_CLI_SYSTEM_SETTINGS_PATH"
SYSTEM_SETTINGS = Path("/etc/gemini-cli/settings.json")


class GeminiCli(AsksNobody):
    """Calls of our own tools are decided at our server, which asks for itself.

    Its rules and settings come as those of the machine, which count more than those of a project: what an agent writes
    there widens nothing. The real settings of the machine stay in force.
    """

    name = "gemini"
    title = "Gemini CLI"
    program = "gemini"
    install = "npm install -g @google/gemini-cli"
    variables = ("GEMINI_", "GOOGLE_")

    def invocation(self, turn: Turn) -> Invocation:
        words = [self.program, "--output-format", "stream-json", "--approval-mode", APPROVAL[turn.mode], "--skip-trust"]
        settings = _system_settings()
        _add(settings, "mcpServers", {name: _entry(name, server) for name, server in turn.servers.items()})
        if turn.launch.max_turns is not None:
            _add(settings, "model", {"maxSessionTurns": turn.launch.max_turns})
        if turn.mode != "autonomy":
            # What a project could run without anybody being asked.
            servers = [*table(settings["mcpServers"])]
            _add_missing(settings, "hooksConfig", {"enabled": False})
            _add_missing(settings, "tools", {"discoveryCommand": "", "callCommand": ""})
            _add_missing(settings, "mcp", {"serverCommand": "", "allowed": servers})
            words += ["--admin-policy", str(write_private(turn.folder / "policy.toml", _policy(turn)))]
        if turn.launch.model:
            words += ["--model", turn.launch.model]
        if turn.native_id is not None:
            words += ["--resume", turn.native_id]
        path = write_private(turn.folder / "settings.json", json.dumps(settings))
        return Invocation(
            words=words, input=turn.whole_prompt.encode(errors="replace"), environment={SETTINGS: str(path)}
        )

    def reader(self, turn: Turn) -> "GeminiReader":
        return GeminiReader(list(turn.servers), turn.native_id)


def _add(settings: Json, key: str, more: Json) -> None:
    settings[key] = {**table(settings.get(key)), **more}


def _add_missing(settings: Json, key: str, more: Json) -> None:
    settings[key] = {**more, **table(settings.get(key))}


def _policy(turn: Turn) -> str:
    """The rules by which it has the tools that are free in the mode, and no others."""
    free = READS if turn.mode == "ask" else (*READS, *EDITS)
    rules: list[Json] = [
        {"toolName": "*", "decision": "deny", "priority": 100},
        {"toolName": list(free), "decision": "allow", "priority": 200},
        {"mcpName": OURS, "toolName": "*", "decision": "allow", "priority": 300},
    ]
    for name in turn.servers:
        if tools := tools_of(name, turn.allowed):
            rules.append({"mcpName": name, "toolName": tools, "decision": "allow", "priority": 300})
    # The strings, numbers and lists of JSON are those of TOML as well.
    return "\n".join(
        "\n".join(["[[rule]]", *(f"{key} = {json.dumps(value)}" for key, value in rule.items()), ""]) for rule in rules
    )


def _system_settings() -> Json:
    try:
        found: Any = json.loads(SYSTEM_SETTINGS.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        raise ConfigurationError(f"{SYSTEM_SETTINGS} cannot be read: {error}", hint="it has to be JSON") from error
    return table(found)


def _entry(name: str, server: Server) -> Json:
    entry = {key: value for key, value in server.items() if key in ("command", "args", "env", "headers")}
    if "command" not in server:
        # Its `url` would be one of server-sent events.
        entry["url" if server.get("type") == "sse" else "httpUrl"] = server.get("url", "")
    return {**entry, "timeout": CALL_MS, "trust": name == OURS}


class GeminiReader(Reader):
    def __init__(self, servers: Sequence[str] = (), native_id: str | None = None) -> None:
        super().__init__(servers, native_id)
        self._called: dict[str, str] = {}

    def _take(self, line: Json) -> Iterator[SessionEvent] | None:
        match line.get("type"):
            case "init":
                self.tally.native_id = text(line.get("session_id")) or self.tally.native_id
                return iter([SessionEvent("session_status", {"model": text(line.get("model"))})])
            case "message":
                return self._said(text(line.get("content"))) if line.get("role") == "assistant" else iter(())
            case "tool_use":
                return self._call(line)
            case "tool_result":
                return self._came_back(line)
            case "error":
                return iter([told(text(line.get("message")))])
            case "result":
                self._over(line)
                return iter(())
            case _:
                return None

    def _said(self, more: str) -> Iterator[SessionEvent]:
        self.tally.said = (self.tally.said + more)[-MOST_SAID:]
        yield said(more)

    def _call(self, line: Json) -> Iterator[SessionEvent]:
        # What it says before it uses a tool is not its last word.
        self.tally.said = ""
        call_id, tool = text(line.get("tool_id")), self._named(text(line.get("tool_name")), "mcp_", "_")
        self._called[call_id] = tool
        return called(call_id, tool, line.get("parameters"))

    def _came_back(self, line: Json) -> Iterator[SessionEvent]:
        call_id = text(line.get("tool_id"))
        answer = text(line.get("output")) or text(table(line.get("error")).get("message"))
        failed = line.get("status") != "success"
        yield result(call_id, self._called.get(call_id, ""), answer, is_error=failed)

    def _over(self, line: Json) -> None:
        tally, stats = self.tally, table(line.get("stats"))
        tally.over, tally.turns = True, 1
        tally.input_tokens, tally.output_tokens = counted(stats, "input_tokens"), counted(stats, "output_tokens")
        if line.get("status") != "success":
            tally.error = text(table(line.get("error")).get("message")) or "it did not say why"

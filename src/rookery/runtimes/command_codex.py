"""Codex: `codex exec --json`. It asks nobody: what its sandbox does not let it do is refused."""

import json
import secrets
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from rookery.core.actor import Mode
from rookery.core.errors import ConfigurationError
from rookery.runtimes.command_client import KEPT, AsksNobody, Invocation, Server, Turn, tools_of
from rookery.runtimes.command_reading import (
    Json,
    Reader,
    called,
    content_text,
    counted,
    result,
    rows,
    said,
    table,
    text,
    thought,
    told,
)
from rookery.sessions.events import SessionEvent
from rookery.sessions.port import OURS

SANDBOX: Mapping[Mode, str] = {"ask": "read-only", "act": "workspace-write", "autonomy": "danger-full-access"}
START_S = 60
CALL_S = 14_400
"""A call of ours may wait for a person."""


class Codex(AsksNobody):
    """Calls of our own tools are decided at our server, which asks for itself; other tools are as their modes say."""

    name = "codex"
    title = "Codex"
    program = "codex"
    install = "npm install -g @openai/codex"
    variables = ("OPENAI_", "CODEX_", "AZURE_OPENAI_")

    def invocation(self, turn: Turn) -> Invocation:
        hidden: dict[str, str] = {}
        settings: Json = {"approval_policy": "never", "sandbox_mode": SANDBOX[turn.mode]}
        for name, server in turn.servers.items():
            settings[f"mcp_servers.{name}"] = _entry(name, server, turn.allowed, hidden)
        # What the servers are told by variables is not for the commands that the agent runs.
        settings["shell_environment_policy.exclude"] = sorted(hidden)
        words = [self.program, "exec", "--json", "--skip-git-repo-check", "--color", "never"]
        words += [word for key, value in settings.items() for word in ("-c", f"{key}={_toml(value)}")]
        if turn.launch.model:
            words += ["--model", turn.launch.model]
        if turn.native_id is not None:
            words += ["resume", turn.native_id]
        return Invocation(words=[*words, "-"], input=turn.whole_prompt.encode(errors="replace"), environment=hidden)

    def reader(self, turn: Turn) -> "CodexReader":
        prefix = f"{secrets.token_hex(4)}-"
        return CodexReader(list(turn.servers), turn.native_id, before=turn.before, prefix=prefix)


def _entry(name: str, server: Server, allowed: Sequence[str], hidden: dict[str, str]) -> Json:
    """The server as Codex has it. Values that others must not read go by variables, which are added to `hidden`."""
    # Without `required` the model is asked before the server is there, and knows none of its tools.
    entry: Json = {"startup_timeout_sec": START_S, "tool_timeout_sec": CALL_S, "required": name == OURS}
    if "command" in server:
        env = {str(key): str(value) for key, value in table(server.get("env")).items()}
        # Codex itself goes by these, and they are no secrets.
        shown = {key: value for key, value in env.items() if key in KEPT}
        for key in env.keys() - shown.keys():
            if key.startswith(Codex.variables) or hidden.setdefault(key, env[key]) != env[key]:
                raise ConfigurationError(f"Codex cannot give {name} a {key} of its own", hint="name it otherwise")
        entry |= {"command": server["command"], "args": list(server.get("args") or ()), "env": shown}
        entry["env_vars"] = sorted(env.keys() - shown.keys())
    else:
        headers = {str(key): str(value) for key, value in table(server.get("headers")).items()}
        variables = {key: f"ROOKERY_MCP_{name}_{number}".replace("-", "_") for number, key in enumerate(headers)}
        hidden.update({variable: headers[key] for key, variable in variables.items()})
        entry |= {"url": server.get("url", ""), "env_http_headers": variables}
    if name == OURS:
        entry["default_tools_approval_mode"] = "approve"
    elif tools := tools_of(name, allowed):
        entry["tools"] = {tool: {"approval_mode": "approve"} for tool in tools}
    return entry


def _toml(value: Any) -> str:
    if isinstance(value, dict):
        pairs = (f"{json.dumps(key)} = {_toml(each)}" for key, each in table(value).items())
        return f"{{ {', '.join(pairs)} }}"
    # The strings, numbers and lists of JSON are those of TOML as well.
    return json.dumps(value)


class CodexReader(Reader):
    """Its calls are numbered anew in each turn; `prefix` keeps those of a session apart."""

    def __init__(
        self,
        servers: Sequence[str] = (),
        native_id: str | None = None,
        *,
        before: tuple[int, int] | None = (0, 0),
        prefix: str = "",
    ) -> None:
        super().__init__(servers, native_id)
        self._before = before
        self._prefix = prefix
        self._begun: set[str] = set()

    def _take(self, line: Json) -> Iterator[SessionEvent] | None:
        match line.get("type"):
            case "thread.started":
                self.tally.native_id = text(line.get("thread_id")) or self.tally.native_id
            case "turn.started":
                pass
            case "item.started" | "item.updated" | "item.completed":
                return self._item(table(line.get("item")), whole=line["type"] == "item.completed")
            case "turn.completed":
                self._over(table(line.get("usage")))
            case "turn.failed":
                self.tally.over = True
                self.tally.error = text(table(line.get("error")).get("message")) or "it did not say why"
            case "error":
                # Mostly that it tries again; if it gives up, the failed turn says so.
                return iter([told(text(line.get("message")))])
            case _:
                return None
        return iter(())

    def _over(self, usage: Json) -> None:
        """It counts the tokens of the whole session. What is not known of the turns before cannot be taken off."""
        tally, before = self.tally, self._before
        tally.over, tally.turns = True, 1
        tally.total = (counted(usage, "input_tokens"), counted(usage, "output_tokens"))
        if before is not None:
            tally.input_tokens, tally.output_tokens = (
                max(now - then, 0) for now, then in zip(tally.total, before, strict=True)
            )

    def _item(self, item: Json, *, whole: bool) -> Iterator[SessionEvent] | None:
        match item.get("type"):
            case "agent_message":
                return self._said(text(item.get("text"))) if whole else iter(())
            case "reasoning":
                return iter([thought(text(item.get("text")))] if whole else ())
            case "command_execution":
                failed = item.get("status") != "completed" or item.get("exit_code") != 0
                given = {"command": text(item.get("command"))}
                return self._call(item, "shell", given, whole, text(item.get("aggregated_output")), failed)
            case "file_change":
                failed = item.get("status") != "completed"
                return self._call(item, "apply_patch", {"changes": rows(item.get("changes"))}, whole, "", failed)
            case "web_search":
                return self._call(item, "web_search", {"query": text(item.get("query"))}, whole, "", False)
            case "mcp_tool_call":
                return self._mcp_call(item, whole)
            case "todo_list":
                return iter([_tasks(rows(item.get("items")))])
            case "error":
                return iter([told(text(item.get("message")))])
            case _:
                return None

    def _said(self, more: str) -> Iterator[SessionEvent]:
        self.tally.said = more
        yield said(more)

    def _mcp_call(self, item: Json, whole: bool) -> Iterator[SessionEvent]:
        tool = f"mcp__{text(item.get('server'))}__{text(item.get('tool'))}"
        answer, error = table(item.get("result")), text(table(item.get("error")).get("message"))
        failed = item.get("status") != "completed"
        words = error or content_text(answer.get("content"))
        structured = answer.get("structured_content")
        return self._call(item, tool, table(item.get("arguments")), whole, words, failed, structured)

    def _call(
        self, item: Json, tool: str, given: Json, whole: bool, answer: str, failed: bool, structured: Any = None
    ) -> Iterator[SessionEvent]:
        call_id = self._prefix + text(item.get("id"))
        if call_id not in self._begun:
            self._begun.add(call_id)
            yield from called(call_id, tool, given)
        if whole:
            yield result(call_id, tool, answer, is_error=failed, structured=structured)


def _tasks(items: Sequence[Any]) -> SessionEvent:
    numbered = enumerate((table(each) for each in items), 1)
    return SessionEvent("task_update", {"tasks": [_task(str(number), each) for number, each in numbered]})


def _task(number: str, item: Json) -> Json:
    return {
        "id": number,
        "text": text(item.get("text")),
        "status": "completed" if item.get("completed") is True else "pending",
    }

"""With what Claude Code is started: its command line, its environment, and what it is told of servers."""

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rookery.core.actor import Mode
from rookery.lifecycle.leftovers import RUN_MARK
from rookery.lifecycle.session_mark import marked
from rookery.sessions.port import Launch

_KEPT = (
    "PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LANGUAGE", "TZ", "TMPDIR", "CLAUDE_CONFIG_DIR",
    "CLAUDE_CODE_OAUTH_TOKEN", "CLAUDE_CODE_SUBPROCESS_ENV_SCRUB", "SSL_CERT_FILE", "SSL_CERT_DIR",
    "NODE_EXTRA_CA_CERTS", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "no_proxy",
)  # fmt: skip
_KEPT_FAMILIES = ("LC_", "XDG_", "ANTHROPIC_", "CLAUDE_CODE_USE_", "CLAUDE_CODE_MAX_")
_SWITCHES = {
    "DISABLE_TELEMETRY": "1",
    "DISABLE_ERROR_REPORTING": "1",
    "DISABLE_AUTOUPDATER": "1",
    "DISABLE_BUG_COMMAND": "1",
    "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
    "CLAUDE_CODE_DISABLE_TERMINAL_TITLE": "1",
    # A turn that is over has nothing going on any more.
    "CLAUDE_CODE_DISABLE_BACKGROUND_TASKS": "1",
    "CLAUDE_CODE_DISABLE_CRON": "1",
    "CLAUDE_CODE_ENTRYPOINT": "sdk-py",
    # The SDK hears from it when a turn and everything that follows from it are over.
    "CLAUDE_CODE_SDK_READS_SESSION_STATE": "1",
}
TOOLS = (
    "Task", "AskUserQuestion", "Bash", "Edit", "Glob", "Grep", "ListMcpResourcesTool", "NotebookEdit", "Read",
    "ReadMcpResourceTool", "Skill", "TaskCreate", "TaskGet", "TaskList", "TaskUpdate", "TodoWrite", "ToolSearch",
    "WebFetch", "WebSearch", "Write",
)  # fmt: skip
"""Its own tools that an agent is offered. Those that do something later, or elsewhere, are not among them."""
SERVERS_FILE = "servers.json"
INSTRUCTIONS_FILE = "instructions.md"


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaudeConfig:
    """What the owner can say about every session of this runtime."""

    program: str | None = None
    """Another Claude Code than the one that the SDK brings along."""
    setting_sources: Sequence[str] = ()
    """Which settings of the machine count: user, project, local. None of them unless they are named."""
    tools: Sequence[str] = TOOLS
    environment: Mapping[str, str] = field(default_factory=dict[str, str])
    """Variables besides those that are handed on."""


def permission_mode(mode: Mode, *, root: bool) -> str:
    """What Claude Code calls the mode. It does not let root act unasked; there the host is asked, and allows it."""
    if mode == "autonomy":
        return "default" if root else "bypassPermissions"
    return "acceptEdits" if mode == "act" else "default"


def environment(config: ClaudeConfig, session: str, mark: str) -> dict[str, str]:
    """What it sees of ours: where it runs, the way to its model, the marks of its session, and no other secret."""
    kept = {name: value for name, value in os.environ.items() if name in _KEPT or name.startswith(_KEPT_FAMILIES)}
    return marked({**kept, **_SWITCHES, **config.environment, RUN_MARK: mark}, session)


def command_line(
    program: str, config: ClaudeConfig, launch: Launch, folder: Path, allowed: Sequence[str], resumed: str | None
) -> list[str]:
    """The words that start it. What others must not read stands in files of `folder`: see `write_files`."""
    words = [program, "--output-format", "stream-json", "--input-format", "stream-json", "--verbose"]
    words += ["--include-partial-messages", "--strict-mcp-config", "--mcp-config", str(folder / SERVERS_FILE)]
    words += ["--permission-prompt-tool", "stdio"]
    words += ["--permission-mode", permission_mode(launch.mode, root=os.geteuid() == 0)]
    words += [f"--setting-sources={','.join(config.setting_sources)}", "--tools", ",".join(config.tools)]
    if allowed:
        words += ["--allowedTools", ",".join(allowed)]
    if launch.instructions:
        words += ["--append-system-prompt-file", str(folder / INSTRUCTIONS_FILE)]
    if launch.model:
        words += ["--model", launch.model]
    if launch.max_turns is not None:
        words += ["--max-turns", str(launch.max_turns)]
    if launch.budget_usd is not None:
        words += ["--max-budget-usd", str(launch.budget_usd)]
    # One word: what follows a space could be taken for another option.
    return [*words, f"--resume={resumed}"] if resumed else words


def write_files(folder: Path, launch: Launch, servers: Mapping[str, Mapping[str, Any]]) -> None:
    """What the command line names, for nobody's eyes but ours. Blocks."""
    told = {
        name: {key: value for key, value in server.items() if key != "instance"} for name, server in servers.items()
    }
    for name, text in ((SERVERS_FILE, json.dumps({"mcpServers": told})), (INSTRUCTIONS_FILE, launch.instructions)):
        with open(os.open(folder / name, os.O_CREAT | os.O_WRONLY | os.O_EXCL, 0o600), "w", encoding="utf-8") as file:
            file.write(text)

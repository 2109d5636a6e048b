"""The inspector and Claude Code as a person runs them: from a command line, with an empty home and no network."""

import json
import subprocess
from pathlib import Path
from typing import Any, NamedTuple

from tests.clients.install import claude, node, package
from tests.clients.running import bare_environment
from tests.clients.scripted_model import ScriptedModel

LIMIT_S = 90
QUIET = {
    "DISABLE_TELEMETRY": "1",
    "DISABLE_AUTOUPDATER": "1",
    "DISABLE_ERROR_REPORTING": "1",
    "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
    # Otherwise the model is told of no tool until it has searched for it.
    "ENABLE_TOOL_SEARCH": "0",
}


class Inspected(NamedTuple):
    """How a run of the inspector ended: its exit code, the result if there is one, and what it complained about."""

    code: int
    result: dict[str, Any]
    complaint: str


def inspect(user: Path, target: list[str], era: str, *words: str) -> Inspected:
    """Run the inspector's command line once against a target, in a protocol era: legacy or modern."""
    program = package("@modelcontextprotocol/inspector", "clients", "launcher", "build", "index.js")
    command = [str(node()), str(program), "--cli", *target, "--protocol-era", era, *words, "--format", "json", "-q"]
    done = subprocess.run(
        command,
        env=bare_environment(user, MCP_INSPECTOR_SECRET_STORE="memory"),
        cwd=user, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=LIMIT_S,
    )  # fmt: skip
    result = json.loads(done.stdout)["result"] if done.returncode == 0 else {}
    return Inspected(done.returncode, result, done.stdout + done.stderr)


class Session(NamedTuple):
    """What Claude Code printed about one session, and what its model was offered."""

    lines: list[dict[str, Any]]
    offered: set[str]

    @property
    def servers(self) -> dict[str, str]:
        """The MCP servers that it was told of, and whether it is connected to them."""
        begun = next(line for line in self.lines if line.get("subtype") == "init")
        return {server["name"]: server["status"] for server in begun["mcp_servers"]}

    @property
    def said(self) -> str:
        return next(line for line in self.lines if line["type"] == "result")["result"]

    @property
    def tool_results(self) -> list[dict[str, Any]]:
        users = [line["message"]["content"] for line in self.lines if line["type"] == "user"]
        return [block for content in users for block in content if block.get("type") == "tool_result"]


def claude_environment(user: Path, model: ScriptedModel | None = None, **more: str) -> dict[str, str]:
    """With `claude` on the PATH, and a model that is not there unless one is given."""
    url = model.url if model else "http://127.0.0.1:9"
    reached = {"ANTHROPIC_BASE_URL": url, "ANTHROPIC_API_KEY": "sk-ant-dummy"}
    found = bare_environment(user, **QUIET, **reached, **more)
    return {**found, "PATH": f"{claude().parent}:{found['PATH']}"}


def converse(user: Path, model: ScriptedModel, *options: str, **environ: str) -> Session:
    """Hold one session of Claude Code with the scripted model."""
    words = ["claude", "-p", "go on", "--output-format", "stream-json", "--verbose", *options]
    done = subprocess.run(
        words,
        executable=claude(),
        env=claude_environment(user, model, **environ),
        cwd=user, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=LIMIT_S,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    return Session(lines, set().union(*model.offered))

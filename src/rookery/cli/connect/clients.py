"""The clients: where each keeps its servers, and how it writes one down."""

import json
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, NamedTuple

from rookery.cli.connect.servers import NAME, Launch, Remote

Scope = Literal["user", "project"]
Table = dict[str, Any]


class Client(NamedTuple):
    """Where a client keeps its servers, and how it writes one down. `moved` counts if its variable is set.

    `address` and `headers` are its words for a server that it reaches over HTTP.
    """

    title: str
    syntax: Literal["json", "jsonc", "toml"]
    key: str
    entry: Literal["typed", "plain", "joined"]
    project: str
    user: str = ""
    moved: str = ""
    note: str = ""
    project_note: str = ""
    address: str = "url"
    headers: str = "headers"


CLIENTS: dict[str, Client] = {
    "claude": Client(
        "Claude Code",
        "json",
        "mcpServers",
        "typed",
        project=".mcp.json",
        user=".claude.json",
        moved="CLAUDE_CONFIG_DIR/.claude.json",
        project_note="Claude Code asks once whether the servers of this project may start.",
    ),
    "codex": Client(
        "Codex",
        "toml",
        "mcp_servers",
        "plain",
        project=".codex/config.toml",
        user=".codex/config.toml",
        moved="CODEX_HOME/config.toml",
        project_note="Codex reads it in a trusted project only.",
        headers="http_headers",
    ),
    "gemini": Client(
        "Gemini CLI",
        "jsonc",
        "mcpServers",
        "plain",
        project=".gemini/settings.json",
        user=".gemini/settings.json",
        moved="GEMINI_CLI_HOME/.gemini/settings.json",
        note="Gemini CLI uses servers in a trusted folder only.",
        address="httpUrl",
    ),
    "opencode": Client(
        "opencode",
        "jsonc",
        "mcp",
        "joined",
        project="opencode.json",
        user=".config/opencode/opencode.json",
        moved="XDG_CONFIG_HOME/opencode/opencode.json",
    ),
    "cursor": Client("Cursor", "jsonc", "mcpServers", "typed", ".cursor/mcp.json", ".cursor/mcp.json"),
    "vscode": Client("VS Code", "jsonc", "servers", "typed", ".vscode/mcp.json"),
}


def entry_of(client: Client, server: Launch | Remote) -> Table:
    """Our server as this client writes it down."""
    if isinstance(server, Remote):
        return _reached(client, server)
    env = dict(server.env)
    if client.entry == "joined":
        command = [server.command, *server.args]
        return {"type": "local", "command": command, "enabled": True} | ({"environment": env} if env else {})
    split: Table = {"command": server.command, "args": list(server.args)}
    typed: Table = {"type": "stdio"} if client.entry == "typed" else {}
    return typed | split | ({"env": env} if env or client.syntax == "json" else {})


def _reached(client: Client, remote: Remote) -> Table:
    kinds: dict[str, Table] = {"typed": {"type": "http"}, "joined": {"type": "remote"}}
    entry = kinds.get(client.entry, {}) | {client.address: remote.url}
    if client.entry == "joined":
        entry["enabled"] = True
        # With a token there is nothing to sign in to, and opencode would try.
        entry |= {"oauth": False} if remote.token else {}
    return entry | ({client.headers: {"Authorization": remote.authorization}} if remote.token else {})


def without_token(entry: Table) -> Table:
    """The entry as it can be compared: any token is as good as another."""
    headers = {key for key in ("headers", "http_headers") if isinstance(entry.get(key), dict)}
    return {key: dict.fromkeys(entry[key]) if key in headers else value for key, value in entry.items()}


def locations(client: Client, scope: Scope, home: Path, folder: Path, environ: Mapping[str, str]) -> list[Path]:
    """The files in which the client looks for servers of this scope, the one for a fresh entry first."""
    variable, _, below = client.moved.partition("/")
    if scope == "project":
        file = folder / client.project
    elif moved := environ.get(variable):
        file = folder / Path(moved).expanduser() / below
    else:
        file = home / client.user
    return [file, file.with_suffix(".jsonc")] if client.entry == "joined" else [file]


def own_command(name: str, scope: Scope, server: Launch | Remote) -> str | None:
    """The client's own command line for the same entry, where it has one that does not ask."""
    if name == "claude":
        words = ["claude", "mcp", "add", "--scope", scope]
        if isinstance(server, Remote):
            header = ["--header", f"Authorization: {server.authorization}"] if server.token else []
            return shlex.join([*words, "--transport", "http", NAME, server.url, *header])
        env = [word for key, value in server.env.items() for word in ("--env", f"{key}={value}")]
        return shlex.join([*words, *env, "--transport", "stdio", NAME, "--", server.command, *server.args])
    if name == "vscode" and scope == "user":
        entry = {"name": NAME} | entry_of(CLIENTS[name], server)
        return shlex.join(["code", "--add-mcp", json.dumps(entry, ensure_ascii=False)])
    return None

"""Further MCP servers for sessions, and which of their tools need no question. Pure."""

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from rookery.core.errors import ValidationFailed
from rookery.sessions.foreign_tools import OUR_PREFIX
from rookery.sessions.port import OURS

_NAME = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9-]|_(?!_))*")
_TOOL = re.compile(r"mcp__(.+?)__([A-Za-z0-9_.-]+)")
_REMOTE = ("http", "sse")
OUR_WILDCARD = f"{OUR_PREFIX}*"


@dataclass(frozen=True, slots=True)
class Servers:
    """What sessions are given besides our own server."""

    servers: Mapping[str, Mapping[str, Any]] = field(default_factory=dict[str, Mapping[str, Any]])
    allowed: Sequence[str] = ()

    def allowed_besides(self, own: Collection[str]) -> tuple[str, ...]:
        """What is allowed in a session that brings servers of its `own`: one of the same name is not the one meant."""
        return tuple(tool for tool in self.allowed if server_of(tool) not in own)


def server_of(tool: str) -> str | None:
    """The server that a tool belongs to, by the tool's whole name."""
    found = _TOOL.fullmatch(tool)
    return found[1] if found is not None else None


def checked_servers(servers: Mapping[str, Mapping[str, Any]], allowed: Sequence[str] | None = None) -> Servers:
    """The servers and the tools of theirs that are allowed by name, or ValidationFailed.

    All tools of our own server stand for themselves: the mode of the session and the gate decide about each call. Of
    other servers only single tools can be allowed, since what a wildcard covers is up to whoever runs the server.
    """
    for name, server in servers.items():
        _check_server(name, server)
    named = [tool for tool in allowed or () if not tool.startswith(OUR_PREFIX)]
    for tool in named:
        _check_tool(tool, servers)
    return Servers({name: dict(server) for name, server in servers.items()}, tuple(dict.fromkeys(named)))


def _check_server(name: str, server: Mapping[str, Any]) -> None:
    if name == OURS:
        raise ValidationFailed(f"the name {OURS} is that of our own server", hint="give the server another name")
    if not _NAME.fullmatch(name):
        raise ValidationFailed(
            f"{name[:50]!r} is no name of an MCP server", hint="letters, digits, - and single _, such as issue-tracker"
        )
    kind = server.get("type", "stdio")
    wanted = "url" if kind in _REMOTE else "command"
    if kind not in ("stdio", *_REMOTE) or not isinstance(server.get(wanted), str) or not server[wanted]:
        raise ValidationFailed(
            f"the MCP server {name} has no {wanted}",
            hint='such as {"command": "tracker-mcp", "args": []} or {"type": "http", "url": "https://…"}',
        )


def _check_tool(tool: str, servers: Mapping[str, Any]) -> None:
    if "*" in tool or tool.removeprefix("mcp__") in servers:
        raise ValidationFailed(
            f"{tool[:100]} stands for tools that nobody has named",
            hint="name each tool of another server, such as mcp__tracker__search",
        )
    if server_of(tool) not in servers:
        known = ", ".join(sorted(servers)) or "none"
        raise ValidationFailed(f"{tool[:100]} is no tool of a server given here", hint=f"servers: {known}")

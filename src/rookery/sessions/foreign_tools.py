"""What tools that are not ours may do without anybody being asked. Pure, but for the links that it follows.

A session's agent has tools of its own runtime, such as a shell, and those of further MCP servers. We do not run them,
so nothing but the runtime's question stands between them and the machine.
"""

import os
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from rookery.core.actor import Mode
from rookery.sessions.port import OURS

HARMLESS = frozenset(
    {
        *("WebSearch", "ToolSearch", "TodoRead", "TodoWrite", "Task", "Agent"),
        *("TaskCreate", "TaskGet", "TaskList", "TaskUpdate", "TaskOutput", "TaskStop"),
    }
)
"""They keep the agent's own notes, or search the web; what an agent starts as a task asks for itself."""
READING: Mapping[str, str] = {
    "Read": "file_path",
    "NotebookRead": "notebook_path",
    "Grep": "path",
    "Glob": "path",
    "LS": "path",
}
"""They look at files, and say where by this argument."""
SEARCHING = frozenset({"Grep", "Glob", "LS"})
"""These look at the folder if they do not say where."""
FETCHING = "WebFetch"
"""It looks, but the address that it asks for can carry away what was read."""
EDITING: Mapping[str, str] = {
    "Edit": "file_path",
    "Write": "file_path",
    "MultiEdit": "file_path",
    "NotebookEdit": "notebook_path",
}
"""They change a file, and say which by this argument."""
GUARDED = frozenset(
    {
        *(".git", ".gitmodules", ".gitconfig", ".husky", ".vscode", ".idea", ".envrc", ".npmrc", ".ripgreprc"),
        *(".bashrc", ".bash_profile", ".bash_login", ".profile", ".zshrc", ".zshenv", ".zprofile"),
        *(".claude", ".claude.json", ".mcp.json", ".codex", ".gemini", ".cursor", ".opencode", "opencode.json"),
    }
)
"""Whoever writes these runs programs later, or decides what an agent may do."""
OUR_PREFIX = f"mcp__{OURS}__"
OUTSIDE = "is outside of the worktree of this session"
_ELSEWHERE = re.compile(r"\.\.|(^|[{,(|\[])\s*[/\\~]")
_MAY_RUN = re.compile(r"bash|shell|exec|command|terminal|script|eval|python|run", re.IGNORECASE)


def our_tool(name: str) -> str | None:
    """The plain name of a tool of our own server, None if it is another's."""
    return name.removeprefix(OUR_PREFIX) if name.startswith(OUR_PREFIX) else None


@dataclass(frozen=True, slots=True)
class Ground:
    """The files that an agent may work on: those of its session's `folder`, but for the server's `home`."""

    folder: str | None = None
    home: str | None = None

    def reads(self, tool: str, given: Mapping[str, Any]) -> bool:
        """Whether what a tool of READING looks at is on it."""
        path = given.get(READING[tool])
        if tool == "Glob" and not _stays(given.get("pattern")):
            return False
        if tool in SEARCHING and path in (None, ""):
            path = "."
        return self._within(path) is not None

    def edits(self, tool: str, given: Mapping[str, Any]) -> bool:
        """Whether what a tool of EDITING changes is on it, and nothing that makes other programs run."""
        within = self._within(given.get(EDITING[tool]))
        return within not in (None, ".") and not {part.casefold() for part in within.split(os.sep)} & GUARDED

    def holds(self, path: object) -> bool:
        """Whether a path leads to something on it."""
        return self._within(path) is not None

    def _within(self, path: object) -> str | None:
        """The path from the folder on, links followed; None if it leads elsewhere, or to the server's own files."""
        if self.folder is None or not isinstance(path, str) or not path or "\0" in path:
            return None
        if path.startswith("~") or path != path.strip():
            # The client reads these otherwise than the system does.
            return None
        top = os.path.realpath(self.folder)
        real = os.path.realpath(os.path.join(top, path))
        if not _holds(top, real):
            return None
        if self.home is not None:
            home = os.path.realpath(self.home)
            own = top != home and _holds(home, top)
            if not own and (_holds(home, real) or _holds(real, home)):
                return None
        return os.path.relpath(real, top)


def is_free(tool: str, given: Mapping[str, Any], mode: Mode, ground: Ground, listed: Collection[str] = ()) -> bool:
    """Whether the tool may be used in that mode without a question.

    What reads is free on the `ground` only, and so is what edits in the mode act. The `listed` tools of other servers
    are free in modes that allow something by themselves.
    """
    if tool in HARMLESS or mode == "autonomy":
        return True
    if tool in READING:
        return ground.reads(tool, given)
    if mode != "act":
        return False
    return tool == FETCHING or tool in listed or (tool in EDITING and ground.edits(tool, given))


def outside_worktree(tool: str, given: Mapping[str, Any], worktree: str | None) -> str | None:
    """Why a session that is bound to a worktree may not edit that file, whatever its mode allows; None if it may."""
    if worktree is None or tool not in EDITING:
        return None
    path = given.get(EDITING[tool])
    if Ground(worktree).holds(path):
        return None
    return f"{str(path)[:200]} {OUTSIDE}; write only inside of {worktree}"


def is_told_by_name(tool: str, given: Mapping[str, Any], ground: Ground) -> bool:
    """Whether a yes to this use can be one to others of the same tool. Not if the input says what is run, or where."""
    if tool in EDITING:
        return ground.edits(tool, given)
    return tool == FETCHING or (tool.startswith("mcp__") and _MAY_RUN.search(tool) is None)


def _holds(folder: str, path: str) -> bool:
    return os.path.commonpath([folder, path]) == folder


def _stays(pattern: object) -> bool:
    """Whether a pattern of file names leads to nothing outside the folder in which it is searched."""
    return isinstance(pattern, str) and _ELSEWHERE.search(pattern) is None

"""What tools that are not ours may do without anybody being asked. Pure.

A session's agent has tools of its own runtime, such as a shell, and those of further MCP servers. We do not run them,
so nothing but the runtime's question stands between them and the machine.
"""

import os
from collections.abc import Collection, Mapping
from typing import Any

from rookery.core.actor import Mode
from rookery.sessions.port import OURS

READING = frozenset(
    {
        *("Read", "Grep", "Glob", "LS", "NotebookRead", "WebSearch", "WebFetch", "ToolSearch"),
        *("TodoRead", "TodoWrite", "Task", "Agent"),
        *("TaskCreate", "TaskGet", "TaskList", "TaskUpdate", "TaskOutput", "TaskStop"),
    }
)
"""They look, or keep the agent's own notes; what an agent starts as a task asks for itself."""
EDITING: Mapping[str, str] = {
    "Edit": "file_path",
    "Write": "file_path",
    "MultiEdit": "file_path",
    "NotebookEdit": "notebook_path",
}
"""They change a file, and say which by this argument."""
OUR_PREFIX = f"mcp__{OURS}__"


def our_tool(name: str) -> str | None:
    """The plain name of a tool of our own server, None if it is another's."""
    return name.removeprefix(OUR_PREFIX) if name.startswith(OUR_PREFIX) else None


def is_free(
    tool: str, given: Mapping[str, Any], mode: Mode, *, folder: str | None = None, listed: Collection[str] = ()
) -> bool:
    """Whether the tool may be used in that mode without a question.

    What edits is free in the mode act inside the session's `folder` only. The `listed` tools of other servers are free
    in modes that allow something by themselves.
    """
    if tool in READING or mode == "autonomy":
        return True
    if mode != "act":
        return False
    return tool in listed or (tool in EDITING and _inside(given.get(EDITING[tool]), folder))


def _inside(path: object, folder: str | None) -> bool:
    if not isinstance(path, str) or not path or "\0" in path or folder is None:
        return False
    top = os.path.realpath(folder)
    real = os.path.realpath(os.path.join(top, path))
    return real != top and os.path.commonpath([real, top]) == top

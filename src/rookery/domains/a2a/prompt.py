"""What the session that does a task is told. Pure."""

from collections.abc import Sequence
from typing import Any

MAX_HISTORY = 8_000
ENDING = "Your last words go back as the answer. Nobody is there to be asked."
_HEAD = "Said before in this conversation:"


def prompt_for(task: Any, before: Sequence[Any]) -> str:
    """The prompt. What was said before is quoted, so that nothing in it can be taken for a line of the prompt."""
    asked = f"Task from {task.sender_name}, from outside"
    asked += f", for the skill {task.skill}:" if task.skill else ":"
    told = f"{asked}\n\n{task.content}\n\n{ENDING}"
    block = _history(before)
    return f"{block}\n\n{told}" if block else told


def _history(before: Sequence[Any]) -> str:
    lines: list[str] = []
    room = MAX_HISTORY
    for task in reversed(before):
        said = [f"{task.sender_name}: {task.content}"]
        if task.answer is not None:
            said.append(f"{task.agent_name}: {task.answer}")
        quoted = "\n".join(f"> {line}" for each in said for line in each.splitlines())
        room -= len(quoted) + 1
        if room < 0:
            break
        lines.append(quoted)
    return "\n".join([_HEAD, *reversed(lines)]) if lines else ""

"""What a receiver is told: what was said before, who writes, and the message itself. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass

MAX_HISTORY = 10
MAX_HISTORY_CHARACTERS = 8_000
ENDING = "Your last words go back as the answer."


@dataclass(frozen=True, slots=True)
class Said:
    """Something that somebody said in a thread."""

    who: str
    text: str


def prompt_for(sender: str, text: str, before: Sequence[Said]) -> str:
    """The prompt of the session that answers."""
    told = f"Message from {sender}:\n\n{text}\n\n{ENDING}"
    block = history_block(before)
    return f"{block}\n\n{told}" if block else told


def history_block(before: Sequence[Said]) -> str:
    """The last things that were said, oldest first; empty if there are none. What does not fit is left out whole.

    Every line is quoted, so that nothing in it can be taken for a line of the prompt.
    """
    lines: list[str] = []
    room = MAX_HISTORY_CHARACTERS - len(_HEAD)
    for said in reversed(before[-MAX_HISTORY:]):
        quoted = _quoted(said)
        if len(quoted) + 1 > room:
            break
        room -= len(quoted) + 1
        lines.append(quoted)
    return "\n".join([_HEAD, *reversed(lines)]) if lines else ""


_HEAD = "Said before in this conversation:"


def _quoted(said: Said) -> str:
    whole = f"{said.who}: {said.text}"
    return "\n".join(f"> {line}" for line in whole.splitlines())

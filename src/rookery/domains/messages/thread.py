"""What a receiver is told: what was said before, who writes, and the message itself. Pure."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

MAX_HISTORY = 10
MAX_HISTORY_CHARACTERS = 8_000
ENDING = "Your last words go back as the answer."
FENCE = "====="
_OURS = re.compile(r"\s*(message\s+from|your\s+last\s+words|said\s+before)", re.IGNORECASE)
"""How lines of the prompt begin. In a message they are quoted, as mailboxes do with lines that begin letters."""
_RUNS = re.compile("=+")


@dataclass(frozen=True, slots=True)
class Said:
    """Something that somebody said in a thread."""

    who: str
    text: str


def prompt_for(sender: str, text: str, before: Sequence[Said]) -> str:
    """The prompt of the session that answers. What the sender wrote stands between two lines that it cannot write."""
    who = _one_line(sender)
    # Longer than any in the text, so that nothing in it can end it.
    fence = "=" * max([len(FENCE), *(len(run) + 1 for run in _RUNS.findall(f"{who}{text}"))])
    lines = [f"> {line}" if _OURS.match(line) else line for line in text.splitlines()]
    inner = "\n".join([f"{fence} what {who} wrote", *lines, f"{fence} end of what {who} wrote"])
    told = f"Message from {who}:\n\n{inner}\n\n{ENDING}"
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
    first, *others = said.text.splitlines() or [""]
    # Set in: nobody can say something as another.
    return "\n".join([f"> {_one_line(said.who)}: {first}", *(f">   {line}" for line in others)])


def _one_line(name: str) -> str:
    """A name as far as it can be seen. Those of other issuers' tokens may be anything."""
    return "".join(each if each.isprintable() else " " for each in " ".join(name.split()))

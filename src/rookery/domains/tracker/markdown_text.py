"""Markdown that keeps what others wrote apart from our own structure. Pure.

Whatever a text contains, quoted or fenced it ends where we end it, and none of its headings is one of ours.
"""

import re
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from functools import cache
from itertools import pairwise
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from markdown_it import MarkdownIt

# Only what Markdown takes for the end of a line; splitlines() knows more of them.
_BREAK = re.compile(r"\r\n?|\n")
_TICKS = re.compile(r"`+")
_DEEPEST = 6


def line(text: object, longest: int | None = None) -> str:
    """The text on one line, so that it cannot start a block of its own."""
    one = " ".join(str(text).split())
    return one if longest is None or len(one) <= longest else f"{one[: longest - 1]}…"


def code(text: object) -> str:
    """The text as code within a line."""
    one = line(text)
    ticks = "`" * (_longest_run(one) + 1)
    pad = " " if one.startswith("`") or one.endswith("`") else ""
    return f"{ticks}{pad}{one}{pad}{ticks}"


def quoted(text: str, longest: int | None = None) -> str:
    """The text as a block quote; of one longer than `longest` the beginning, and how much is missing."""
    shown, missing = _cut(text.strip("\r\n"), longest)
    lines = (f"> {each}".rstrip() for each in _BREAK.split(shown))
    return "\n".join([*lines, *_missing(missing)])


def fenced(text: str, info: str = "", longest: int | None = None) -> str:
    """The text as a block of code, cut in the same way."""
    shown, missing = _cut(text.strip("\r\n"), longest)
    fence = "`" * max(3, _longest_run(shown) + 1)
    return "\n".join([f"{fence}{info}", shown, fence, *_missing(missing)])


def part(text: str, under: int) -> str:
    """A whole Markdown text as a part of a longer one: its headings come below level `under`.

    A text that would not end where it ends, such as one with an open fence, is shown as code instead.
    """
    lines = _BREAK.split(text.strip())
    tokens = _parser().parse("\n".join([*lines, "", "# end"]))
    if len(tokens) < 3 or tokens[-3].type != "heading_open" or tokens[-3].level:
        return fenced(text, "markdown")
    for head, content in pairwise(tokens[:-3]):
        if head.type == "heading_open" and head.level == 0 and head.map is not None:
            first, last = head.map
            marks = "#" * min(int(head.tag[1:]) + under, _DEEPEST)
            lines[first:last] = [f"{marks} {line(content.content)}", *[""] * (last - first - 1)]
    return "\n".join(lines)


def blocks(*found: str | None) -> str:
    """Blocks with an empty line between them; those that are empty or None are left out."""
    return "\n\n".join(block for block in found if block)


def bullets(facts: Mapping[str, str]) -> str:
    """Facts by name, those that are empty left out."""
    return "\n".join(f"- **{name}:** {value}" for name, value in facts.items() if value)


def labelled(label: str, items: Iterable[str]) -> str:
    """A list below a line that says what it lists; empty if there is nothing to list."""
    listed = "\n".join(f"- {item}" for item in items)
    return f"{label}\n\n{listed}" if listed else ""


def at(ms: int) -> str:
    """A time as people read it."""
    return datetime.fromtimestamp(ms / 1000, UTC).strftime("%Y-%m-%d %H:%M UTC")


def _cut(text: str, longest: int | None) -> tuple[str, int]:
    if longest is None or len(text) <= longest:
        return text, 0
    shown = text[:longest]
    # At the end of a line, unless the lines are very long.
    end = shown.rfind("\n", longest // 2)
    shown = shown[:end] if end > 0 else shown
    return shown, len(text) - len(shown)


def _missing(count: int) -> list[str]:
    return ["", f"(Cut here: {count:,} more characters.)"] if count else []


def _longest_run(text: str) -> int:
    return max((len(found[0]) for found in _TICKS.finditer(text)), default=0)


@cache
def _parser() -> "MarkdownIt":
    from markdown_it import MarkdownIt

    # Blocks are all that is needed, and without these two no text takes more than linear time.
    return MarkdownIt("commonmark").disable(["inline", "reference"])

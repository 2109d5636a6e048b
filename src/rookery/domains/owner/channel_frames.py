"""How words of others are shown in a channel: so that they fit, and that nobody takes them for ours."""

import re
from collections.abc import Callable
from dataclasses import dataclass

CUT = "… (cut)"
KEPT = "\n\u200c\u200d"
"""Not seen, and of use all the same: lines, and what joins or parts letters and emoji."""
_TICKS = re.compile("`+")
_CHAT_MARKS = re.compile(r"([\\*_~`|<>\[\]()#@:-])")
Size = Callable[[str], int]
Frame = Callable[[str], str]


def visible(text: str) -> str:
    """The text with whatever would not be seen, or would turn others around, spelled out."""
    lines = text.replace("\r\n", "\n").replace("\t", "    ")
    if lines.isprintable():
        return lines
    return "".join(each if each in KEPT or each.isprintable() else f"\\u{ord(each):04x}" for each in lines)


def one_line(text: str) -> str:
    """The same on one line."""
    return visible(" ".join(text.split()))


def units(text: str) -> int:
    """The length as Telegram and other programs count it: an emoji has two."""
    return len(text.encode("utf-16-le", "surrogatepass")) // 2


def in_bytes(text: str) -> int:
    """The length as it is sent."""
    return len(text.encode("utf-8", "surrogatepass"))


def cut(text: str, limit: int, size: Size = len) -> str:
    """The text, or as much of its beginning as fits with a mark that there was more."""
    if size(text) <= limit:
        return text
    fits, over = 0, len(text)
    while fits + 1 < over:
        middle = (fits + over) // 2
        if size(text[:middle] + CUT) <= limit:
            fits = middle
        else:
            over = middle
    return text[:fits] + CUT


def bare(text: str) -> str:
    """As it is, where a mark beside the text is the frame."""
    return text


def margin(text: str) -> str:
    """For plain text: no line begins as one of ours does."""
    return "\n".join(f"│ {line}" for line in text.split("\n"))


def chat_fence(text: str) -> str:
    """For chats that end a fence at three backticks wherever they stand: there are no two in a row."""
    parted = re.sub("`(?=`)", "`\u200b", text)
    return f"```\n{parted}\n```"


def markdown_fence(text: str) -> str:
    """For Markdown: the fence is longer than whatever could close it."""
    longest = max((len(run) for run in _TICKS.findall(text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}\n{text}\n{fence}"


def without_marks(text: str) -> str:
    """For a line of a chat where no fence can stand: marks are shown as they stand."""
    return _CHAT_MARKS.sub(r"\\\1", text)


@dataclass(frozen=True, slots=True, kw_only=True)
class Fit:
    """What fits into a channel: so much, counted by `size`, with the words of others in a `frame`."""

    limit: int = 60_000
    size: Size = len
    frame: Frame = margin
    titled: bool = False
    """Whether the title stands in the frame as well, since the channel has no place for it."""

    def framed(self, text: str) -> int:
        """How much a text takes with its frame."""
        return self.size(self.frame(text))

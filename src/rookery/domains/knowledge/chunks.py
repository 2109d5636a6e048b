"""Cuts a text into chunks of about 800 tokens, each under one heading as far as possible.

Nothing is lost: a chunk is a slice of the text, and what follows the overlap of each, joined, is the whole text but
for stretches of nothing but blanks. A fence of code is cut only if it is longer than a chunk.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Literal

Kind = Literal["markdown", "text", "html", "pdf", "source"]

LONGEST = 3_200
"""Characters of a chunk: about 800 tokens."""
OVERLAP = 400
"""Characters that a chunk repeats of the one before if both are in one section: about 100 tokens."""
SMALL = 800
"""A section that comes after less than this is put into the same chunk."""
PIECE = LONGEST - OVERLAP
MAX_HEADING = 300
PAGE_BREAK = "\f"
_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})(.*)")
_HEADING = re.compile(r" {0,3}(#{1,6})(?:[ \t]+(.*))?$")
_UNDERLINE = re.compile(r" {0,3}(=+|-{2,})[ \t]*$")
_DEFINITION = re.compile(
    r"^(?:(?:export|public|pub|private|static|default|abstract|final|async)[ \t]+)*"
    r"(?:def|class|func|fn|function|interface|impl|struct|trait|enum|module|namespace|type)[ \t]+[^\n{(:=;]+",
    re.MULTILINE,
)
_BREAKS = [re.compile(pattern) for pattern in (r"\n\s*\n", r"[.!?]\s", r"\n", r"\s")]


@dataclass(frozen=True, slots=True)
class Chunk:
    """Under which headings it stands, what it says, and how much of that the chunk before says as well."""

    heading: str
    content: str
    overlap: int


@dataclass(frozen=True, slots=True)
class _Block:
    """Lines that belong together. `opens`: a section begins with it. `title`: it is only a heading. `fenced`: code."""

    start: int
    end: int
    heading: str
    opens: bool = False
    title: bool = False
    fenced: bool = False


class _Cutter:
    """Puts blocks together until a chunk is full or a section ends."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.found: list[Chunk] = []
        self._begin = self._fresh = self._run = 0
        self._heading = ""
        self._last: _Block | None = None

    def add(self, block: _Block) -> None:
        # Headings that follow each other stay with the text below them.
        if self._last is None or not self._last.title:
            self._run = block.start
        at = self._run if block.end - self._run <= LONGEST else block.start
        full = block.end - self._begin > LONGEST
        if at > self._fresh and (full or (block.opens and at - self._fresh >= SMALL)):
            self.emit(at)
            ends = block.opens or at < block.start or self._last is None or self._last.fenced
            self._begin = at if ends else self._overlap(at)
        if self._fresh in (self._run, block.start) or not self._heading:
            self._heading = block.heading
        self._last = block

    def emit(self, end: int) -> None:
        """A chunk of everything up to `end`, unless that is blank."""
        if self.text[self._fresh : end].strip():
            content = self.text[self._begin : end]
            self.found.append(Chunk(self._heading[:MAX_HEADING], content, self._fresh - self._begin))
        self._begin = self._fresh = end

    def _overlap(self, end: int) -> int:
        """Where the repetition begins: after a paragraph, a sentence, a line or a word, in this order."""
        start = end - OVERLAP
        for each in _BREAKS:
            found = each.search(self.text, start, end)
            if found and found.end() < end:
                return found.end()
        return start


def cut(text: str, kind: Kind) -> list[Chunk]:
    """The chunks of a text, in its order. Sections are those of Markdown, pages of PDFs and definitions in source."""
    cutter = _Cutter(text)
    for block in _BLOCKS[kind](text):
        for piece in _pieces(text, block):
            cutter.add(piece)
    cutter.emit(len(text))
    return cutter.found


def _pieces(text: str, block: _Block) -> Iterator[_Block]:
    """The block, or parts of it that are short enough: cut after a line, else after a word, else anywhere."""
    start, opens = block.start, block.opens
    while block.end - start > PIECE:
        least, latest = start + PIECE // 2, start + PIECE
        at = text.rfind("\n", least, latest) + 1 or text.rfind(" ", least, latest) + 1 or latest
        yield _Block(start, at, block.heading, opens)
        start, opens = at, False
    yield replace(block, start=start, opens=opens, fenced=block.fenced and start == block.start)


def _lines(text: str) -> Iterator[tuple[int, int, str]]:
    """Where each line starts and ends, its break included, and the line without it."""
    start = 0
    while start < len(text):
        end = text.find("\n", start) + 1 or len(text)
        yield start, end, text[start:end].rstrip("\n")
        start = end


class _Sections:
    """The headings that a place in a Markdown text stands under."""

    def __init__(self) -> None:
        self._titles: dict[int, str] = {}

    def open(self, level: int, title: str) -> None:
        self._titles = {other: text for other, text in self._titles.items() if other < level}
        if title := title.strip().rstrip("#").rstrip():
            self._titles[level] = title

    @property
    def path(self) -> str:
        return " > ".join(self._titles[level] for level in sorted(self._titles))


def _markdown(text: str) -> Iterator[_Block]:
    """Headings, fences of code, and paragraphs with the blank lines around them."""
    sections, fence, start, filled, before = _Sections(), "", 0, 0, ""
    for at, end, line in _lines(text):
        mark = _FENCE.match(line)
        title = None if fence or mark else _HEADING.match(line)
        under = None if fence or mark or filled != 1 else _UNDERLINE.match(line)
        if fence:
            if mark and mark[1].startswith(fence) and not mark[2].strip():
                yield _Block(start, end, sections.path, fenced=True)
                start, filled, fence = end, 0, ""
        elif mark and not (mark[1][0] == "`" and "`" in mark[2]):
            if at > start:
                yield _Block(start, at, sections.path)
            start, fence = at, mark[1]
        elif under or title:
            if title and at > start:
                yield _Block(start, at, sections.path)
                start = at
            level = len(title[1]) if title else 1 if line.strip()[0] == "=" else 2
            sections.open(level, (title[2] or "") if title else before)
            yield _Block(start, end, sections.path, opens=True, title=True)
            start, filled = end, 0
        elif line.strip():
            filled, before = filled + 1, line
        elif filled:
            yield _Block(start, end, sections.path)
            start, filled = end, 0
    if start < len(text):
        yield _Block(start, len(text), sections.path)


def _paragraphs(text: str, start: int = 0, end: int | None = None) -> Iterator[tuple[int, int]]:
    """Where each paragraph starts and ends, with the blank lines after it."""
    end = len(text) if end is None else end
    for gap in re.compile(r"\n\s*\n").finditer(text, start, end):
        yield start, gap.end()
        start = gap.end()
    if start < end:
        yield start, end


def _plain(text: str) -> Iterator[_Block]:
    for start, end in _paragraphs(text):
        yield _Block(start, end, "")


def _pages(text: str) -> Iterator[_Block]:
    start = 0
    for number, page in enumerate(text.split(PAGE_BREAK), start=1):
        end = min(start + len(page) + 1, len(text))
        for first, last in _paragraphs(text, start, end):
            yield _Block(first, last, f"page {number}", opens=first == start)
        start = end


def _source(text: str) -> Iterator[_Block]:
    heading = ""
    for start, end in _paragraphs(text):
        defined = _DEFINITION.search(text, start, end)
        heading = defined[0].strip() if defined else heading
        yield _Block(start, end, heading, opens=defined is not None)


_BLOCKS: dict[Kind, Callable[[str], Iterator[_Block]]] = {
    "markdown": _markdown,
    "html": _markdown,
    "text": _plain,
    "pdf": _pages,
    "source": _source,
}

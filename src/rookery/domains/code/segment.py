"""The names of some files that were read together, in the form in which the index keeps and searches them.

A row for each name of each file would cost more time than reading the files. So the names of a segment are lines of
text: those that are defined in one text, those that are mentioned in some texts by a hash of the name. A search reads
one text of every segment and looks for a line.
"""

import json
import zlib
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rookery.domains.code.extract import IMPORT, Row, spelled

BUCKETS = 64
IMPORTS = BUCKETS
"""The number of the text that has what is imported, in the form of the defined names: it is seldom asked for."""
EXPORTED = "+"
"""Behind the kind of what is exported."""
Packed = tuple[list[tuple[Any, ...]], list[int], str, dict[int, str]]
"""The files, how many lines are before each, the text of defined names, and those of mentioned names by buckets."""


def bucket_of(name: str) -> int:
    """In which text a name is mentioned."""
    return zlib.crc32(name.encode(errors="replace")) % BUCKETS


class Segment:
    """Takes in files, which it counts from 0."""

    def __init__(self) -> None:
        self.files: list[tuple[Any, ...]] = []
        self.mentions: dict[bytes, list[int]] = {}
        """The lines that mention each name; those of every file are counted on from the ones of the files before."""
        self.before = 0
        """How many lines there are so far."""
        self._starts: list[int] = []
        self._defined: dict[str, list[str]] = {}
        self._imported: dict[str, list[str]] = {}

    def add(self, about: tuple[Any, ...], symbols: Sequence[Row], lines: int) -> None:
        """Take in a file of so many lines, whose mentions are in already."""
        number = len(self.files)
        self.files.append(about)
        self._starts.append(self.before)
        self.before += lines
        for at, symbol in enumerate(symbols):
            kind = symbol[1]
            names = self._defined if kind != IMPORT else self._imported
            names.setdefault(symbol[0], []).append(f"{number}.{at}.{kind}{EXPORTED if symbol[5] else ''}")

    def packed(self) -> Packed:
        """Everything in the form that the index keeps. Texts begin and end with the end of a line."""
        texts: list[list[str]] = [[] for _ in range(BUCKETS)]
        for word, lines in self.mentions.items():
            name = spelled(word)
            if name is not None:
                texts[bucket_of(name)].append(f"{name}\t{lines}")
        used = {bucket: "\n{}\n".format("\n".join(some)) for bucket, some in enumerate(texts) if some}
        if self._imported:
            used[IMPORTS] = _lines(self._imported)
        return self.files, self._starts, _lines(self._defined), used


def _lines(names: Mapping[str, Sequence[str]]) -> str:
    return "".join(f"\n{name}\t{','.join(places)}" for name, places in names.items()) + "\n"


@dataclass(frozen=True, slots=True)
class Defined:
    """One definition: in which file of the segment, which symbol of the file, of what kind, and whether exported."""

    name: str
    file: int
    number: int
    kind: str
    exported: bool


def defined_in(line: str) -> Iterator[Defined]:
    """What a line of the text of defined names says."""
    name, _, places = line.partition("\t")
    for place in places.split(","):
        file, number, kind = place.split(".")
        plain = kind.removesuffix(EXPORTED)
        yield Defined(name, int(file), int(number), plain, plain != kind)


def line_of(text: str, name: str) -> str | None:
    """The line of a text that is about exactly this name."""
    at = text.find(f"\n{name}\t")
    return None if at < 0 else text[at + 1 : text.index("\n", at + 1)]


def mentioned_in(line: str, starts: Sequence[int]) -> Mapping[int, list[int]]:
    """The lines in which each file of the segment mentions a name, by a line of the text of mentioned names."""
    found: dict[int, list[int]] = {}
    for number in json.loads(line.partition("\t")[2]):
        file = bisect_left(starts, number) - 1
        found.setdefault(file, []).append(number - starts[file])
    return found

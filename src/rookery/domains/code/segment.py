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

from rookery.domains.code.extract import Row, spelled

BUCKETS = 64
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

    def add(self, about: tuple[Any, ...], symbols: Sequence[Row], lines: int) -> None:
        """Take in a file of so many lines, whose mentions are in already."""
        number = len(self.files)
        self.files.append(about)
        self._starts.append(self.before)
        self.before += lines
        for at, symbol in enumerate(symbols):
            self._defined.setdefault(symbol[0], []).append(f"{number}.{at}.{symbol[1]}")

    def packed(self) -> Packed:
        """Everything in the form that the index keeps. Texts begin and end with the end of a line."""
        defined = "".join(f"\n{name}\t{','.join(places)}" for name, places in self._defined.items())
        texts: dict[int, list[str]] = {}
        for word, lines in self.mentions.items():
            name = spelled(word)
            if name is not None:
                texts.setdefault(bucket_of(name), []).append(f"{name}\t{lines}")
        used = {bucket: "\n{}\n".format("\n".join(some)) for bucket, some in texts.items()}
        return self.files, self._starts, f"{defined}\n", used


@dataclass(frozen=True, slots=True)
class Defined:
    """One definition: in which file of the segment, which symbol of the file, and of what kind."""

    name: str
    file: int
    number: int
    kind: str


def defined_in(line: str) -> Iterator[Defined]:
    """What a line of the text of defined names says."""
    name, _, places = line.partition("\t")
    for place in places.split(","):
        file, number, kind = place.split(".")
        yield Defined(name, int(file), int(number), kind)


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

"""Finds symbols and mentions in the index."""

import heapq
import itertools
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, cast

import sqlalchemy as sa

from rookery.db.tx import Tx
from rookery.domains.code.extract import IMPORT, Symbol, symbols_of
from rookery.domains.code.matching import fold, lines_like
from rookery.domains.code.segment import IMPORTS, Defined, bucket_of, defined_in, line_of, mentioned_in
from rookery.domains.code.store import parts
from rookery.domains.code.tables import files, segments, words
from rookery.domains.code.texts import DefinedTexts

Match = Literal["exact", "prefix", "fuzzy"]
EXPORT = "export"
"""Not a kind of its own: whatever is exported is of it as well."""
MAX_FOUND = 10_000
"""So many symbols are counted and shown, the best first."""
_NO: "sa.BindParameter[int]" = sa.bindparam("of_no")
_BELOW = sa.or_(
    files.c.path == sa.bindparam("at"),
    sa.and_(files.c.path >= sa.bindparam("below"), files.c.path < sa.bindparam("after")),
)
_USED = (
    sa.select(words.c.segment_no, words.c.used, segments.c.starts)
    .join(segments, sa.and_(segments.c.project_no == words.c.project_no, segments.c.segment_no == words.c.segment_no))
    .where(words.c.project_no == _NO, words.c.bucket == sa.bindparam("the_bucket"))
)
_IMPORTED = sa.select(words.c.segment_no, words.c.used).where(words.c.project_no == _NO, words.c.bucket == IMPORTS)
_PATHS = sa.select(files.c.file_no, files.c.path).where(files.c.project_no == _NO)
_SOME_PATHS = _PATHS.where(files.c.file_no.in_(sa.bindparam("numbers", expanding=True)))
_LISTED = (
    sa.select(files.c.file_no, files.c.path, files.c.symbols).where(files.c.project_no == _NO).order_by(files.c.path)
)
_OUTLINES = sa.select(files.c.file_no, files.c.outline).where(
    files.c.project_no == _NO, files.c.file_no.in_(sa.bindparam("numbers", expanding=True))
)
_SOME = sa.select(files.c.file_no).where(files.c.project_no == _NO, _BELOW).limit(1)
# With the statements for everything those for a part, so that each is built once.
_PARTS: dict[Any, Any] = {each: each.where(_BELOW) for each in (_PATHS, _SOME_PATHS, _LISTED)}
MANY_FILES = 300
"""From so many on, the paths of all files are read faster than those of some."""


@dataclass(frozen=True, slots=True)
class Place:
    """A symbol and the file that it is in, with everything else that the file defines."""

    path: str
    symbols: Sequence[Symbol]
    number: int

    @property
    def symbol(self) -> Symbol:
        return self.symbols[self.number]


@dataclass(frozen=True, slots=True)
class Mention:
    """A line that mentions a name, and the innermost symbol around it."""

    path: str
    line: int
    inside: Symbol | None


@dataclass(frozen=True, slots=True)
class Page:
    """A part of what was found. `more`: there is more after it. `cut`: there is even more than was counted."""

    items: Sequence[Any]
    total: int
    more: bool
    cut: bool = False


class Search:
    """Looks into the index of one project, below a folder or at a file, or everywhere."""

    def __init__(self, tx: Tx, texts: DefinedTexts, no: int, path: str = "") -> None:
        self.tx = tx
        self.texts = texts
        self.no = no
        self.path = path

    def has_files(self) -> bool:
        """Whether there is anything to look into."""
        return self.tx.one(_SOME, {"of_no": self.no, **self._place()}) is not None

    def symbols(self, query: str, match: Match, kinds: frozenset[str], start: int, limit: int) -> Page:
        """Symbols whose names match, whatever their case; the best first."""
        texts, folded = self.texts.of(self.tx, self.no)
        if IMPORT in kinds:
            texts = {**texts, **self._with_imports(texts)}
            folded = {no: fold(text) for no, text in texts.items()}
        lines = ((rank, no, texts[no][at:end]) for rank, no, at, end in lines_like(folded, query, match))
        every = (
            (rank, each.name, segment + each.file, each.number)
            for rank, segment, line in lines
            for each in defined_in(line)
            if _is_of(each, kinds)
        )
        found = list(itertools.islice(every, MAX_FOUND + 1))
        if len(found) > MAX_FOUND:
            # What is elsewhere, or no longer there, may take nobody's place.
            paths: Mapping[int, str] = self._every_path()
            there = (each for each in itertools.chain(found, every) if each[2] in paths)
            found = list(itertools.islice(there, MAX_FOUND + 1))
        else:
            paths = self._paths({file_no for _, _, file_no, _ in found})
        there = [each for each in found[:MAX_FOUND] if each[2] in paths]
        # Of thousands a page is wanted: to put them all in order would be most of the time.
        best = heapq.nsmallest(
            start + limit, ((rank, name, paths[file_no], number, file_no) for rank, name, file_no, number in there)
        )
        page = self._page([(file_no, path, number) for _, _, path, number, file_no in best], start, limit)
        more = len(there) > start + limit
        return replace(page, total=len(there), more=more, cut=len(found) > MAX_FOUND)

    def listed(self, kinds: frozenset[str], start: int, limit: int) -> Page:
        """The symbols of files in the order of their paths and lines."""
        rows = self._all(_LISTED, {})
        # Only where kinds are asked for has every outline to be read.
        every = self._of_kinds([row.file_no for row in rows], kinds) if kinds else {}
        shown: list[tuple[int, str, int]] = []
        total = 0
        for row in rows:
            file_no, path, count = row.file_no, row.path, row.symbols
            wanted = every[file_no] if kinds else range(count)
            part = wanted[max(start - total, 0) : max(start + limit - total, 0)]
            shown += [(file_no, path, number) for number in part]
            total += len(wanted)
        outlines = self._outlines(file_no for file_no, _, _ in shown)
        places = [Place(path, outlines[file_no], number) for file_no, path, number in shown]
        return Page(places, total, total > start + limit)

    def definitions(self, name: str, limit: int) -> Page:
        """Where exactly this name is defined, in the order of paths and lines."""
        found: list[tuple[int, int]] = []
        for segment, text in self.texts.of(self.tx, self.no)[0].items():
            line = line_of(text, name)
            if line is not None:
                found += [(segment + each.file, each.number) for each in defined_in(line)]
        paths = self._paths({file_no for file_no, _ in found})
        there = [(paths[file_no], number, file_no) for file_no, number in found if file_no in paths]
        there.sort()
        return self._page([(file_no, path, number) for path, number, file_no in there], 0, limit)

    def mentions(self, name: str, start: int, limit: int) -> Page:
        """The lines that mention exactly this name without defining it, in the order of paths and lines."""
        by_file: dict[int, list[int]] = {}
        for row in self.tx.all(_USED, {"of_no": self.no, "the_bucket": bucket_of(name)}):
            line = line_of(row.used, name)
            if line is not None:
                found = mentioned_in(line, json.loads(row.starts))
                by_file |= {row.segment_no + file: lines for file, lines in found.items()}
        paths = self._paths(by_file.keys())
        total = 0
        shown: list[tuple[int, str, int]] = []
        for path, file_no in sorted((path, file_no) for file_no, path in paths.items()):
            lines = by_file[file_no]
            part = lines[max(start - total, 0) : max(start + limit - total, 0)]
            shown += [(file_no, path, line) for line in part]
            total += len(lines)
        outlines = self._outlines(file_no for file_no, _, _ in shown)
        mentions = [Mention(path, line, _around(outlines[file_no], line)) for file_no, path, line in shown]
        return Page(mentions, total, total > start + limit)

    def _page(self, found: Sequence[tuple[int, str, int]], start: int, limit: int) -> Page:
        shown = found[start : start + limit]
        outlines = self._outlines(file_no for file_no, _, _ in shown)
        places = [Place(path, outlines[file_no], number) for file_no, path, number in shown]
        return Page(places, len(found), len(found) > start + limit)

    def _paths(self, numbers: Iterable[int]) -> Mapping[int, str]:
        """The paths of those files that are still there, and in the part that is looked into."""
        wanted = sorted(numbers)
        if len(wanted) <= MANY_FILES:
            return dict(cast("Sequence[tuple[int, str]]", self._all(_SOME_PATHS, {"numbers": wanted})))
        there = self._every_path()
        return {file_no: there[file_no] for file_no in wanted if file_no in there}

    def _every_path(self) -> dict[int, str]:
        # Rows are pairs: taken as such, thousands of them cost half as much.
        return dict(cast("Sequence[tuple[int, str]]", self._all(_PATHS, {})))

    def _all(self, statement: Any, values: dict[str, Any]) -> Sequence[sa.Row[Any]]:
        """Rows of the files that are looked into."""
        values = {"of_no": self.no, **values}
        if not self.path:
            return self.tx.all(statement, values)
        return self.tx.all(_PARTS[statement], {**values, **self._place()})

    def _place(self) -> dict[str, str]:
        # The character after the slash: everything in the folder sorts before it.
        return {"at": self.path, "below": f"{self.path}/", "after": f"{self.path}0"}

    def _of_kinds(self, numbers: Sequence[int], kinds: frozenset[str]) -> dict[int, list[int]]:
        """Which symbols of each file are of some kinds. Every outline is read, and none is kept."""
        found: dict[int, list[int]] = {}
        for part in parts(numbers):
            for file_no, symbols in self._outlines(part).items():
                found[file_no] = [number for number, each in enumerate(symbols) if _is_of(each, kinds)]
        return found

    def _with_imports(self, texts: Mapping[int, str]) -> dict[int, str]:
        """The texts of those segments that import anything, with it."""
        rows = self.tx.all(_IMPORTED, {"of_no": self.no})
        return {row.segment_no: texts[row.segment_no] + row.used[1:] for row in rows if row.segment_no in texts}

    def _outlines(self, numbers: Iterable[int]) -> dict[int, list[Symbol]]:
        wanted = sorted(set(numbers))
        rows = [row for part in parts(wanted) for row in self.tx.all(_OUTLINES, {"of_no": self.no, "numbers": part})]
        return {row.file_no: symbols_of(row.outline) for row in rows}


def _is_of(symbol: Symbol | Defined, kinds: frozenset[str]) -> bool:
    """Whether a symbol is of some kinds, or of any that is a definition."""
    return not kinds or symbol.kind in kinds or (bool(symbol.exported) and EXPORT in kinds)


def _around(symbols: Sequence[Symbol], line: int) -> Symbol | None:
    """The innermost function, class or the like with this line: the outer come before the inner."""
    around = None
    for each in symbols:
        if each.start > line:
            break
        if each.end >= line and each.kind not in ("variable", IMPORT):
            around = each
    return around

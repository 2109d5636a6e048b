"""The lines of a changed file as rows of a table, side by side or one below the other, with colours. Pure."""

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby, zip_longest
from typing import Literal

from markupsafe import Markup, escape

from rookery.domains.tracker.diff_files import ChangedFile, Hunk, Line, Side, hunks
from rookery.web.code_colours import coloured, language_of
from rookery.web.hidden_marks import marked, short

View = Literal["unified", "split"]
Spot = tuple[Side, int]
"""A line on one side of a file."""
Notes = Mapping[Spot, Sequence[Markup]]
LONGEST_FILE = 5_000
"""Lines of one file that are shown at once."""
COLOURED_LINES = 3_000
"""A file with more lines is shown without colours."""
SHOWN_HEADING = 200


@dataclass(slots=True)
class Clock:
    """How long colours may take for all that is shown at once; what comes after has none."""

    until: float = field(default_factory=lambda: time.monotonic() + 1.0)


@dataclass(frozen=True, slots=True)
class Shown:
    """The rows of a file, how many lines they hold, and how many are left out."""

    rows: Markup
    lines: int
    left_out: int


def file_rows(diff: str, file: ChangedFile, view: View, notes: Notes, clock: Clock) -> Shown:
    """The rows of a file's hunks. Comments stand below the line that they are about."""
    parts: list[str] = []
    language = language_of(file.path) if file.size < LONGEST_FILE * 80 else None
    count = left_out = 0
    for hunk in hunks(diff, file):
        room = LONGEST_FILE - count
        if room <= 0:
            left_out += len(hunk.lines)
            continue
        cut = Hunk(hunk.old, hunk.new, hunk.heading, hunk.lines[:room])
        left_out += len(hunk.lines) - len(cut.lines)
        count += len(cut.lines)
        parts.append(_heading(hunk, view))
        parts += _hunk(cut, view, notes, language if count <= COLOURED_LINES else None, clock)
    return Shown(Markup("".join(parts)), count, left_out)


def _heading(hunk: Hunk, view: View) -> str:
    words = marked(f"@@ -{hunk.old} +{hunk.new} @@  {hunk.heading[:SHOWN_HEADING]}".rstrip())
    return f'<tr class="hunk"><td colspan="{_width(view)}">{words}</td></tr>'


def _width(view: View) -> int:
    return 3 if view == "unified" else 4


def _hunk(hunk: Hunk, view: View, notes: Notes, language: str | None, clock: Clock) -> Iterator[str]:
    code = _coloured(hunk.lines, language, clock)
    if view == "unified":
        for line, html in zip(hunk.lines, code, strict=True):
            yield _unified(line, html)
            yield from _notes(line, notes, 3)
        return
    for pair in _pairs(list(zip(hunk.lines, code, strict=True))):
        yield _split(*pair)
        for line in dict.fromkeys(found[0] for found in pair if found is not None):
            yield from _notes(line, notes, 4)


def _coloured(lines: Sequence[Line], language: str | None, clock: Clock) -> list[Markup]:
    """Each line as HTML. Both sides are read as they are in their files, so that no string is left open."""
    shortened = [short(line.text) for line in lines]
    texts = [text for text, _ in shortened]
    kinds = {line.kind for line in lines}
    sides = (*(["added"] if "deleted" in kinds else []), *(["deleted"] if kinds - {"deleted"} else []))
    done: dict[int, Markup] = {}
    for other in sides:
        places = [at for at, line in enumerate(lines) if line.kind != other]
        done |= dict(zip(places, coloured([texts[at] for at in places], language, clock.until), strict=True))
    return [done[at] + _tail(line, shortened[at][1]) for at, line in enumerate(lines)]


def _tail(line: Line, cut: int) -> Markup:
    more = Markup('<span class="line-cut">… and {} more characters</span>').format(f"{cut:,}") if cut else Markup("")
    if not line.unended:
        return more
    return more + Markup('<span class="line-cut" title="No end of line at the end of the file">no newline</span>')


_MARKS = {"added": "a", "deleted": "d", "kept": ""}


def _unified(line: Line, html: Markup) -> str:
    old = "" if line.old is None else line.old
    new = "" if line.new is None else line.new
    return (
        f'<tr class="{_MARKS[line.kind]}"><td class="n" data-side="old">{old}</td><td class="n" data-side="new">{new}'
        f'</td><td class="t">{html}</td></tr>'
    )


Found = tuple[Line, Markup]


def _pairs(lines: Sequence[Found]) -> Iterator[tuple[Found | None, Found | None]]:
    """What stands beside what: kept lines beside themselves, deleted ones beside those added in their place."""
    for kept, group in groupby(lines, key=lambda found: found[0].kind == "kept"):
        block = list(group)
        if kept:
            yield from ((found, found) for found in block)
            continue
        deleted = [found for found in block if found[0].kind == "deleted"]
        added = [found for found in block if found[0].kind == "added"]
        yield from zip_longest(deleted, added)


def _split(left: Found | None, right: Found | None) -> str:
    return f"<tr>{_half(left, 'old')}{_half(right, 'new')}</tr>"


def _half(found: Found | None, side: Side) -> str:
    if found is None:
        return '<td class="n"></td><td class="t none"></td>'
    line, html = found
    number = line.old if side == "old" else line.new
    mark = _MARKS[line.kind]
    return f'<td class="n {mark}" data-side="{side}">{number}</td><td class="t {mark}">{html}</td>'


def _notes(line: Line, notes: Notes, width: int) -> Iterator[str]:
    if not notes:
        return
    sides: tuple[tuple[Side, int | None], ...] = (("old", line.old), ("new", line.new))
    for side, number in sides:
        for note in notes.get((side, number), ()) if number is not None else ():
            yield f'<tr class="note"><td colspan="{width}">{escape(note)}</td></tr>'

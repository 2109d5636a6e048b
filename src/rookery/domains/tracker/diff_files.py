"""A diff of git to be shown: its files without their lines, and the lines of one file. Pure.

The diff is one that `parse_diff` has accepted. To find its files costs little, so lines are read file by file.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from rookery.domains.tracker.diff import Header, Status, read_header
from rookery.domains.tracker.file_kinds import is_generated

Side = Literal["old", "new"]
Kind = Literal["kept", "added", "deleted"]
_START = re.compile(r"^diff --git ", re.MULTILINE)
_BODY = re.compile(r"^(?:@@|GIT binary patch)", re.MULTILINE)
_HUNK = re.compile(r"@@ -(\d{1,9})(?:,\d{1,9})? \+(\d{1,9})(?:,\d{1,9})? @@ ?(.*)", re.DOTALL)
_SIGNATURE = re.compile(r"\n-- ?\r?\n\d[^\n]*\s*\Z")
_KINDS: dict[str, Kind] = {"+": "added", "-": "deleted"}


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangedFile:
    """One file of a diff. Its hunks are at `start` to `end` in the diff's text."""

    number: int
    path: str
    old_path: str | None
    status: Status
    added: int
    deleted: int
    binary: bool
    generated: bool
    old_mode: str | None
    new_mode: str | None
    start: int
    end: int

    @property
    def changed_lines(self) -> int:
        return self.added + self.deleted

    @property
    def size(self) -> int:
        """The characters of its hunks."""
        return self.end - self.start


@dataclass(frozen=True, slots=True)
class Line:
    """A line with its numbers on both sides; None on the side where it does not stand."""

    kind: Kind
    old: int | None
    new: int | None
    text: str
    unended: bool = False
    """No end of line follows it."""


@dataclass(frozen=True, slots=True)
class Hunk:
    """Lines that follow each other. `heading` is what git says of the place, such as the function."""

    old: int
    new: int
    heading: str
    lines: list[Line]


def changed_files(diff: str) -> list[ChangedFile]:
    """All files in the order of the diff; the time it takes grows with the text's length."""
    starts = [found.start() for found in _START.finditer(diff)]
    signature = _SIGNATURE.search(diff, max(0, len(diff) - 200))
    ends = [*starts[1:], signature.start() if signature else len(diff)]
    return [_file(diff, at, start, end) for at, (start, end) in enumerate(zip(starts, ends, strict=True))]


def _file(diff: str, number: int, start: int, end: int) -> ChangedFile:
    found = _BODY.search(diff, start, end)
    body = end if found is None else found.start()
    header = read_header(diff[start:body].split("\n"))
    binary = "Binary files " in header.lines or diff.startswith("GIT binary", body)
    return ChangedFile(
        number=number,
        path=header.new,
        old_path=header.old if header.old != header.new else None,
        status=header.status,
        added=0 if binary else diff.count("\n+", body, end),
        deleted=0 if binary else diff.count("\n-", body, end),
        binary=binary,
        generated=is_generated(header.new),
        old_mode=_mode(header, "old mode ", "deleted file mode "),
        new_mode=_mode(header, "new mode ", "new file mode "),
        start=end if binary else body,
        end=end,
    )


def _mode(header: Header, *names: str) -> str | None:
    return next((header.lines[name].strip() for name in names if name in header.lines), None)


def hunks(diff: str, file: ChangedFile) -> Iterator[Hunk]:
    """The hunks of one file, one after the other."""
    hunk: Hunk | None = None
    old = new = 0
    for raw in diff[file.start : file.end].removesuffix("\n").split("\n"):
        mark = raw[:1]
        if mark == "@" and (head := _HUNK.match(raw)) is not None:
            if hunk is not None:
                yield hunk
            old, new = int(head[1]), int(head[2])
            hunk = Hunk(old, new, head[3].strip(), [])
        elif hunk is None:
            continue
        elif mark == "\\":
            _unend(hunk)
        else:
            kind = _KINDS.get(mark, "kept")
            at_old, at_new = (None if kind == "added" else old), (None if kind == "deleted" else new)
            hunk.lines.append(Line(kind, at_old, at_new, raw[1:]))
            old, new = old + (at_old is not None), new + (at_new is not None)
    if hunk is not None:
        yield hunk


def _unend(hunk: Hunk) -> None:
    if hunk.lines:
        last = hunk.lines[-1]
        hunk.lines[-1] = Line(last.kind, last.old, last.new, last.text, unended=True)


def line_at(diff: str, path: str, side: Side, number: int) -> str | None:
    """What stands at a line that the diff shows, on one side of a file; None if it shows no such line."""
    for file in changed_files(diff):
        if path != (file.old_path or file.path if side == "old" else file.path):
            continue
        for hunk in hunks(diff, file):
            for line in hunk.lines:
                if number == (line.old if side == "old" else line.new):
                    return line.text
    return None

"""The audit log as a file: JSON Lines that can be verified elsewhere, and CSV for spreadsheets."""

import csv
import io
import json
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rookery.web.showing import harmless

MOST = 100_000
"""So many records a file has at most."""
CUT = "the file ends here; export older records with an earlier end of the time"
_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n")
Rows = Sequence[Sequence[Any]]
Found = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class FileKind:
    """How records are written. `cut` says what stands below the last of a file that is not complete."""

    media_type: str
    heads: bool
    lines: Callable[[Sequence[str], Rows], str]
    cut: str


async def file_of(kind: FileKind, first: Found, older: Callable[[str], Awaitable[Found]]) -> AsyncGenerator[str]:
    """The file, a part at a time: what was found first, and what `older` finds at the cursor of each part."""
    found, room = first, MOST
    if kind.heads:
        yield kind.lines((), [found["fields"]])
    while True:
        rows = found["records"]
        yield kind.lines(found["fields"], rows[:room])
        room -= len(rows)
        if room < 0 or (room == 0 and found["next_cursor"]):
            yield kind.cut
            return
        if found["next_cursor"] is None:
            return
        found = await older(found["next_cursor"])


def json_lines(fields: Sequence[str], rows: Rows) -> str:
    """Each record as an object on a line, all in ASCII, so that whoever prints the file sees what is in it."""
    lines = (json.dumps(dict(zip(fields, row, strict=True))) for row in rows)
    return "".join(f"{line}\n" for line in lines).replace("\x7f", "\\u007f")


def csv_lines(fields: Sequence[str], rows: Rows) -> str:
    """Each record as a row in which no cell is a formula, and nothing that does not print."""
    written = io.StringIO()
    csv.writer(written).writerows([_cell(value) for value in row] for row in rows)
    return written.getvalue()


def _cell(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    shown = harmless(value)
    return f"'{shown}" if shown.startswith(_FORMULA) else shown


KINDS: Mapping[str, FileKind] = {
    "jsonl": FileKind("application/x-ndjson", False, json_lines, json.dumps({"cut": CUT}) + "\n"),
    "csv": FileKind("text/csv", True, csv_lines, csv_lines((), [[CUT]])),
}

"""Counts notes (TODO, FIXME, HACK) and large files in a folder that agents write to. Blocks; for a thread."""

import os
import re
import stat
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from threading import Event

from pathspec import GitIgnoreSpec

from rookery.core.errors import RookeryError
from rookery.files.git import run_git
from rookery.files.tree_files import read_inside

MAX_FILES = 100_000
MAX_BYTES = 2_000_000
SAMPLES = 10
SAMPLE_CHARACTERS = 200
_LISTED_BYTES = 64_000_000
_NOTE = re.compile(rb"\b(TODO|FIXME|HACK)\b")
_SOURCE = (
    *(".py", ".pyi", ".pyx", ".js", ".jsx", ".mjs", ".cjs", ".ts", ".tsx", ".mts", ".cts", ".vue", ".svelte", ".go"),
    *(".rs", ".java", ".kt", ".kts", ".scala", ".groovy", ".c", ".h", ".cc", ".cpp", ".cxx", ".hpp", ".hh", ".cs"),
    *(".fs", ".vb", ".m", ".mm", ".swift", ".rb", ".php", ".pl", ".pm", ".lua", ".r", ".jl", ".ex", ".exs", ".erl"),
    *(".hs", ".ml", ".clj", ".dart", ".sh", ".bash", ".zsh", ".fish", ".ps1", ".sql", ".html", ".css", ".scss"),
    *(".sass", ".less", ".proto", ".tf", ".zig", ".nim"),
)
_WRITTEN_BY_TOOLS = (".min.js", ".min.css", "_pb2.py", "_pb2.pyi", "_pb2_grpc.py", ".pb.go", ".g.dart")
_LEFT_OUT = frozenset({"node_modules", "__pycache__", "site-packages", "dist", "build", "vendor", "target", "venv"})


class Stopped(Exception):
    """Nobody waits for the counts any more."""


@dataclass(slots=True)
class Scanned:
    """What was counted in how many files. `whole` is False if there are more files than are ever read."""

    files: int = 0
    large: int = 0
    notes: dict[bytes, int] = field(default_factory=lambda: dict.fromkeys((b"TODO", b"FIXME", b"HACK"), 0))
    samples: list[str] = field(default_factory=list[str])
    whole: bool = True


def scan(root: str, exclude: Sequence[str], large_lines: int, stop: Event) -> Scanned:
    """Count in the source files of `root`. What git ignores does not count, no link is followed.

    Raises Stopped as soon as `stop` is set, and OSError if the folder itself cannot be read.
    """
    found = Scanned()
    root = os.path.realpath(root)
    excluded = GitIgnoreSpec.from_lines(exclude)
    for path in _files(root):
        if stop.is_set():
            raise Stopped
        if not is_source(path) or excluded.match_file(path):
            continue
        if found.files == MAX_FILES:
            found.whole = False
            break
        _count(root, path, large_lines, found)
    return found


def is_source(path: str) -> bool:
    """Whether people write such files, as far as their names tell."""
    name = path.lower()
    return name.endswith(_SOURCE) and not name.endswith(_WRITTEN_BY_TOOLS)


def _files(root: str) -> Iterable[str]:
    """The files of a working tree that git does not ignore, or those of a plain folder; with / from the root on."""
    os.listdir(root)
    try:
        words = ("ls-files", "-z", "--cached", "--others", "--exclude-standard")
        listed = run_git(words, {}, root, limit=_LISTED_BYTES)
    except RookeryError:
        return _walked(root)
    names = (os.fsdecode(name) for name in listed.split(b"\0") if name)
    # A file in conflict is listed once for each side. A folder that a repository around it ignores has none at all.
    return dict.fromkeys(name for name in names if _stays_inside(name)) or _walked(root)


def _stays_inside(name: str) -> bool:
    """Whether a name leads nowhere else. Git shows whatever stands in its index, and agents can write that."""
    return not name.startswith("/") and ".." not in name.split("/")


def _walked(root: str) -> Iterator[str]:
    for folder, inner, names in os.walk(root):
        inner[:] = sorted(name for name in inner if not name.startswith(".") and name not in _LEFT_OUT)
        below = os.path.relpath(folder, root)
        for name in sorted(names):
            yield name if below == "." else f"{below}/{name}"


def _count(root: str, path: str, large_lines: int, found: Scanned) -> None:
    place = os.path.join(root, path)
    try:
        known = os.lstat(place)
        if not stat.S_ISREG(known.st_mode):
            return
        if known.st_size > MAX_BYTES:
            if os.path.realpath(place) != os.path.normpath(place):
                return
            found.files += 1
            found.large += 1
            return
        content = read_inside(root, place, MAX_BYTES, path)
    except (OSError, RookeryError):
        # Gone or changed meanwhile, or not ours to read.
        return
    if content is None or b"\0" in content[:8192]:
        return
    found.files += 1
    found.large += content.count(b"\n") + (not content.endswith(b"\n") and content != b"") > large_lines
    # Ten times as fast as the pattern, and most files have none.
    if any(word in content for word in found.notes):
        _count_notes(path, content, found)


def _count_notes(path: str, content: bytes, found: Scanned) -> None:
    counted: dict[int, set[bytes]] = {}
    number, at = 1, 0
    for note in _NOTE.finditer(content):
        number += content.count(b"\n", at, note.start())
        at = note.start()
        kinds = counted.setdefault(number, set())
        if not kinds and len(found.samples) < SAMPLES:
            found.samples.append(_sample(path, number, content, at))
        if note[1] not in kinds:
            kinds.add(note[1])
            found.notes[note[1]] += 1


def _sample(path: str, number: int, content: bytes, at: int) -> str:
    """The line around a place, as far as it can be shown and stored."""
    begin = content.rfind(b"\n", 0, at) + 1
    line = content[begin : begin + 4 * SAMPLE_CHARACTERS].partition(b"\n")[0].decode(errors="replace").strip()
    text = f"{path}:{number}: {line}".encode("utf-8", "replace").decode()
    return "".join(letter if letter.isprintable() else " " for letter in text)[:SAMPLE_CHARACTERS]

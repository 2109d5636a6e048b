"""The files in which Claude Code keeps its sessions: finding them, and reading parts of them. Nothing is written.

Whoever can write there can write anything, so nothing is taken for granted: links are not followed, a line that is
too long is passed over without being held, and a file that is being written ends with its last whole line.
"""

import json
import os
import re
import stat
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from rookery.files.tree_files import open_inside

Json = dict[str, Any]
ENDING = ".jsonl"
LONGEST_SLUG = 200
MAX_LINE = 4 << 20
CHUNK = 1 << 18
DEEPEST = 100
SUBAGENT = "agent-"
_ID = re.compile(r"[A-Za-z0-9_-]{1,128}")
_NOT_IN_SLUG = re.compile(r"[^A-Za-z0-9-]")


def projects_folder(environment: Mapping[str, str]) -> Path:
    """Where Claude Code keeps the transcripts of all projects of this user."""
    chosen = environment.get("CLAUDE_CONFIG_DIR")
    return (Path(chosen) if chosen else Path.home() / ".claude") / "projects"


def slug_of(cwd: str) -> str:
    """What the folder of the sessions is called that ran in `cwd`; of a long path only the beginning."""
    return _NOT_IN_SLUG.sub("-", cwd)[:LONGEST_SLUG]


@dataclass(frozen=True, slots=True)
class TranscriptFile:
    """One file, as it was when it was looked at."""

    id: str
    project: str
    mtime_ns: int
    size: int

    @property
    def etag(self) -> str:
        """The same as long as nobody has written to the file."""
        return f"{self.mtime_ns:x}-{self.size:x}"

    @property
    def parts(self) -> tuple[str, str]:
        return self.project, f"{self.id}{ENDING}"


@dataclass(frozen=True, slots=True)
class Lines:
    """What stands in some whole lines of a file, and where the next ones begin.

    `unread` counts those that were too long, or no JSON objects.
    """

    lines: list[Json]
    next_offset: int
    unread: int


def find_files(root: Path, cwd: str | None = None) -> list[TranscriptFile]:
    """All transcripts, or those of sessions that ran in `cwd`, newest first. What cannot be read is not there."""
    found: list[TranscriptFile] = []
    for project in _folders(root):
        if cwd is None or _is_of(project, cwd):
            found += _in_folder(root, project)
    return sorted(found, key=lambda each: (-each.mtime_ns, each.id))


def _is_of(project: str, cwd: str) -> bool:
    slug = slug_of(cwd)
    # A long path is cut, and a hash of it is put behind.
    return project == slug or (len(slug) == LONGEST_SLUG and project.startswith(f"{slug}-"))


def _folders(root: Path) -> list[str]:
    with suppress(OSError), os.scandir(root) as entries:
        return [entry.name for entry in entries if entry.is_dir(follow_symlinks=False)]
    return []


def _in_folder(root: Path, project: str) -> list[TranscriptFile]:
    found: list[TranscriptFile] = []
    with suppress(OSError), os.scandir(root / project) as entries:
        for entry in entries:
            # What an agent of the session did for it stands in files of their own, which are no sessions.
            if entry.name.endswith(ENDING) and not entry.name.startswith(SUBAGENT):
                with suppress(OSError):
                    found += _looked_at(entry, project)
    return found


def _looked_at(entry: "os.DirEntry[str]", project: str) -> list[TranscriptFile]:
    name, facts = entry.name.removesuffix(ENDING), entry.stat(follow_symlinks=False)
    if not stat.S_ISREG(facts.st_mode) or not _ID.fullmatch(name):
        return []
    return [TranscriptFile(name, project, facts.st_mtime_ns, facts.st_size)]


def read_head(root: Path, file: TranscriptFile, size: int) -> bytes:
    """Its first bytes. OSError if it is gone or no plain file."""
    return _read_at(root, file, 0, size)


def read_tail(root: Path, file: TranscriptFile, size: int) -> bytes:
    """Its last bytes, without the beginning of a line that is cut."""
    start = max(0, file.size - size)
    tail = _read_at(root, file, start, size)
    return tail if start == 0 else tail.partition(b"\n")[2]


def _read_at(root: Path, file: TranscriptFile, offset: int, size: int) -> bytes:
    opened = _open(root, file)
    try:
        return os.pread(opened, size, offset)
    finally:
        os.close(opened)


def read_lines(root: Path, file: TranscriptFile, offset: int, room: int) -> Lines:
    """What stands in the lines from `offset` on, until about `room` bytes were read, but always one line.

    An offset in the middle of a line begins after that line. A last line that has no end yet is read only if it is
    whole. OSError if the file is gone or no plain file.
    """
    opened = _open(root, file)
    try:
        return _Reader(opened, offset).read(offset + room)
    finally:
        os.close(opened)


class _Reader:
    """Takes a file apart into lines, chunk by chunk, and never holds a line that is too long."""

    def __init__(self, opened: int, offset: int) -> None:
        self._opened = opened
        self._offset = self._at = self._next = offset
        self._held = b""
        self._passing = offset > 0 and os.pread(opened, 1, offset - 1) != b"\n"
        self._lines: list[Json] = []
        self._unread = 0

    def read(self, until: int) -> Lines:
        while self._at < until or self._next == self._offset:
            room = until - self._at
            chunk = os.pread(self._opened, min(room, CHUNK) if room > 0 else CHUNK, self._at)
            if not chunk:
                self._end_of_file()
                break
            self._at += len(chunk)
            self._take(chunk)
        return Lines(self._lines, self._next, self._unread)

    def _take(self, chunk: bytes) -> None:
        *whole, rest = chunk.split(b"\n")
        for line in whole:
            if not self._passing:
                self._keep(self._held + line)
            self._held, self._passing = b"", False
        if not self._passing:
            self._held += rest
        if len(self._held) > MAX_LINE:
            self._held, self._passing = b"", True
            self._unread += 1
        self._next = self._at - len(self._held)

    def _keep(self, line: bytes) -> None:
        if not line.strip():
            return
        found = object_in(line)
        if found is None:
            self._unread += 1
        else:
            self._lines.append(found)

    def _end_of_file(self) -> None:
        found = object_in(self._held)
        if found is not None:
            self._lines.append(found)
            self._next = self._at


def object_in(line: bytes) -> Json | None:
    """The JSON object that stands in a line; None if there is none."""
    try:
        value = json.loads(line.decode(errors="replace"), parse_constant=lambda _: None)
        if b"\\ud" in line.lower():
            # Half of a surrogate pair could be sent to nobody.
            value = json.loads(json.dumps(value, ensure_ascii=False).encode(errors="replace"))
    except (ValueError, RecursionError):
        return None
    if not isinstance(value, dict) or (line.count(b"{") + line.count(b"[") > DEEPEST and _is_deep(value)):
        return None
    return cast(Json, value)


def _is_deep(value: Any) -> bool:
    """Whether it is nested so deeply that whoever passes it on may not be able to."""
    level: list[Any] = [value]
    for _ in range(DEEPEST):
        level = [inner for outer in level for inner in _inside(outer)]
        if not level:
            return False
    return True


def _inside(value: Any) -> list[Any]:
    inner = cast("dict[str, Any]", value).values() if isinstance(value, dict) else cast("list[Any]", value)
    return [each for each in inner if isinstance(each, dict | list)]


def _open(root: Path, file: TranscriptFile) -> int:
    opened = open_inside(str(root), file.parts)
    if not stat.S_ISREG(os.fstat(opened).st_mode):
        os.close(opened)
        raise OSError(f"{file.id} is not a plain file")
    return opened

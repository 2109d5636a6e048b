"""What a diff of git changes, file by file. Pure; the time it takes grows with the text's length and no faster.

Hunks are read and their counts checked by unidiff. What it gets wrong in git's own output is read here: names with
spaces, quotes or other alphabets, and everything that has no hunks.
"""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from unidiff.errors import UnidiffParseError
from unidiff.patch import PatchSet

from rookery.core.errors import ValidationFailed
from rookery.domains.tracker.file_kinds import is_generated, is_source, is_test

MAX_DIFF_BYTES = 5_000_000
MAX_FILES = 10_000
MAX_PATH_BYTES = 4096
MAX_NAME_BYTES = 255
HINT = "pass the whole output of git diff --no-color --submodule=short <base>...<branch>, unchanged"

Status = Literal["added", "modified", "deleted", "renamed", "copied"]


@dataclass(frozen=True, slots=True)
class FileStat:
    """One changed file. `old_path` is set for what was renamed or copied; a binary file has no lines."""

    path: str
    old_path: str | None
    status: Status
    added: int
    deleted: int
    binary: bool
    test: bool
    generated: bool

    @property
    def changed_lines(self) -> int:
        return self.added + self.deleted

    @property
    def source(self) -> bool:
        """Whether it is code that a test could cover: no test, nothing generated, no prose, nothing binary."""
        return not (self.test or self.generated or self.binary) and is_source(self.path)


@dataclass(frozen=True, slots=True)
class DiffStats:
    """A whole diff. Every path stands once in `files`."""

    files: tuple[FileStat, ...]
    added: int
    deleted: int

    @property
    def changed_lines(self) -> int:
        """Added and deleted lines, without lock files and generated ones."""
        return sum(file.changed_lines for file in self.files if not file.generated)

    @property
    def source_lines(self) -> int:
        """Added and deleted lines of code, tests not counted."""
        return sum(file.changed_lines for file in self.files if file.source)

    @property
    def source_without_tests(self) -> bool:
        """Whether code changed and no test did."""
        return any(file.source for file in self.files) and not any(file.test for file in self.files)

    def as_json(self, most: int = 1000) -> dict[str, Any]:
        """What is kept of it: the sums, and the first `most` files as path, status, added, deleted."""
        files = [
            {"path": file.path, "status": file.status, "added": file.added, "deleted": file.deleted}
            | ({"old_path": file.old_path} if file.old_path else {})
            | {flag: True for flag in ("binary", "test", "generated") if getattr(file, flag)}
            for file in self.files[:most]
        ]
        return {"added": self.added, "deleted": self.deleted, "changed_files": len(self.files), "files": files}


def parse_diff(text: str) -> DiffStats:
    """The statistics of git's diff, or ValidationFailed: nothing in it, no diff, cut short, or hunks that lie."""
    lines = _lines(text)
    files: dict[str, FileStat] = {}
    for section in _sections(lines):
        file = _file(section)
        files[file.path] = _merged(files.get(file.path), file)
    found = tuple(files.values())
    return DiffStats(found, sum(file.added for file in found), sum(file.deleted for file in found))


def _refuse(message: str) -> ValidationFailed:
    return ValidationFailed(message if len(message) <= 500 else message[:499] + "…", hint=HINT)


def _lines(text: str) -> list[str]:
    """The lines. Only `\\n` ends one: files may hold all else that Python takes for the end of a line."""
    if not text.strip():
        raise _refuse("the diff is empty")
    try:
        size = len(text) if len(text) > MAX_DIFF_BYTES else len(text.encode())
    except UnicodeEncodeError:
        raise _refuse("the diff holds half a character, which is no UTF-8") from None
    if size > MAX_DIFF_BYTES:
        raise ValidationFailed(
            f"the diff has {size} bytes, more than {MAX_DIFF_BYTES}",
            hint="split the issue, or leave out generated files",
        )
    if "\0" in text:
        raise _refuse("the diff holds a NUL byte: git was told to treat a binary file as text")
    lines = text.split("\n")
    return lines[: _signature(lines)]


def _signature(lines: Sequence[str]) -> int:
    """Where the diff ends before the signature of `git format-patch`, if there is one."""
    end = len(lines)
    while end and not lines[end - 1].strip():
        end -= 1
    signed = end >= 2 and lines[end - 2].rstrip() == "--" and lines[end - 1][:1].isdigit()
    return end - 2 if signed else len(lines)


def _sections(lines: Sequence[str]) -> Iterator[Sequence[str]]:
    """The lines of each file, from its `diff --git` on. What stands before the first may be a message."""
    starts = [at for at, line in enumerate(lines) if line.startswith("diff --git ")]
    before = lines[: starts[0]] if starts else lines
    if any(line.startswith(("@@", "--- ", "+++ ", "diff ")) for line in before):
        raise _refuse("there are changes under no line 'diff --git': a plain or a combined diff")
    if not starts:
        raise _refuse("this is no diff: no line starts with 'diff --git'")
    if len(starts) > MAX_FILES:
        raise _refuse(f"the diff changes {len(starts)} files, more than {MAX_FILES}")
    for start, end in zip(starts, [*starts[1:], len(lines)], strict=True):
        yield lines[start:end]


_HEAD = (
    "old mode ",
    "new mode ",
    "new file mode ",
    "deleted file mode ",
    "similarity index ",
    "dissimilarity index ",
    "rename from ",
    "rename to ",
    "copy from ",
    "copy to ",
    "index ",
    "--- ",
    "+++ ",
    "Binary files ",
)
_SAYS_ENOUGH = {"new mode ", "new file mode ", "deleted file mode ", "rename to ", "copy to ", "Binary files "}
"""Heads that make a change of themselves, without a hunk."""
_BINARY_PATCH = re.compile(r"GIT binary patch|(?:literal|delta) \d+|[A-Za-z][0-9A-Za-z!#$%&()*+;<=>?@^_`{|}~-]+|")


class Header(NamedTuple):
    """What stands before the first hunk of a file: what happened to it, its paths, and the lines by how they start."""

    status: Status
    old: str
    new: str
    lines: dict[str, str]


def read_header(lines: Sequence[str]) -> Header:
    """The header of one file, from its `diff --git` to before its first hunk, or ValidationFailed."""
    head = _head(lines)
    return Header(*_change(lines[0].rstrip("\r"), head), head)


def _file(section: Sequence[str]) -> FileStat:
    at = (at for at, line in enumerate(section) if line.startswith(("@@", "GIT binary patch")))
    end = next(at, len(section))
    (status, old, new, head), body = read_header(section[:end]), section[end:]
    _check_sides(head, status, old, new)
    binary = "Binary files " in head or (bool(body) and body[0].startswith("GIT"))
    added = deleted = 0
    if binary:
        _check_binary(body, new)
    elif body:
        added, deleted = _count(body, new)
    elif not head.keys() & _SAYS_ENOUGH or "--- " in head:
        raise _refuse(f"{new}: there is a header and no change under it")
    if (added and status == "deleted") or (deleted and status == "added"):
        raise _refuse(f"{new}: a file that is {status} cannot have {added} added and {deleted} deleted lines")
    moved = old if old != new else None
    return FileStat(new, moved, status, added, deleted, binary, test=is_test(new), generated=is_generated(new))


def _head(lines: Sequence[str]) -> dict[str, str]:
    """The lines between `diff --git` and the first hunk, by how they start."""
    head: dict[str, str] = {}
    for line in lines[1:]:
        if not line.strip():
            continue
        key = next((key for key in _HEAD if line.startswith(key)), None)
        if key is None or key in head:
            raise _refuse(f"{lines[0]}: no file's header has the line {line[:100]!r}")
        head[key] = line[len(key) :].rstrip("\r")
    return head


def _change(first: str, head: dict[str, str]) -> tuple[Status, str, str]:
    """What happened to the file, its old and its new path."""
    moves: tuple[tuple[str, Status], ...] = (("rename", "renamed"), ("copy", "copied"))
    for verb, status in moves:
        old, new = head.get(f"{verb} from "), head.get(f"{verb} to ")
        if old is not None and new is not None:
            return status, _path(_unquoted(old)), _path(_unquoted(new))
        if old is not None or new is not None:
            raise _refuse(f"{first}: half of a {verb}")
    path = _path(_same(first))
    if "new file mode " in head:
        return "added", path, path
    return "deleted" if "deleted file mode " in head else "modified", path, path


def _same(first: str) -> str:
    """The path that `diff --git a/path b/path` names twice. Both halves are equally long, so spaces do no harm."""
    both = first.removeprefix("diff --git ")
    middle = len(both) // 2
    left, right = _unquoted(both[:middle]), _unquoted(both[middle + 1 :])
    if both[middle : middle + 1] != " " or (left != right and _bare(left) != _bare(right)):
        raise _refuse(f"{first}: the line does not name one file twice")
    return left if left == right else _bare(left)


def _bare(path: str) -> str:
    """The path without the letter before it: a/ and b/, or those of diff.mnemonicPrefix."""
    return path[2:] if path[1:2] == "/" and path[0] in "abciow12" else path


def _check_sides(head: dict[str, str], status: Status, old: str, new: str) -> None:
    """Refuse `---` and `+++` that name other files than the rest of the header."""
    for key, path, empty in (("--- ", old, "added"), ("+++ ", new, "deleted")):
        if key not in head:
            continue
        # git ends a name with spaces in it with a tab.
        given = _unquoted(head[key].removesuffix("\t"))
        expected = given == "/dev/null" if status == empty else path in (given, _bare(given))
        if not expected:
            raise _refuse(f"{new}: its line {key}{given[:200]} names another file")


_ESCAPED = re.compile(rb'\\([0-7]{3}|[abtnvfr"\\])')
_LETTERS = {b"a": 7, b"b": 8, b"t": 9, b"n": 10, b"v": 11, b"f": 12, b"r": 13, b'"': 34, b"\\": 92}


def _unquoted(path: str) -> str:
    """A path as it is in the tree; git quotes what has control characters, quotes or other alphabets in it."""
    if len(path) < 2 or path[0] != '"' or path[-1] != '"':
        return path

    def one(found: re.Match[bytes]) -> bytes:
        return bytes([_LETTERS[found[1]] if found[1] in _LETTERS else int(found[1], 8) & 255])

    return _ESCAPED.sub(one, path[1:-1].encode()).decode("utf-8", "backslashreplace")


def _path(path: str) -> str:
    """The path, unless no repository can have it."""
    parts = path.split("/")
    size = len(path.encode())
    if "\0" in path or size > MAX_PATH_BYTES or any(part in ("", ".", "..") for part in parts):
        raise _refuse(f"{path[:100]!r} is no path inside a repository")
    if size > MAX_NAME_BYTES and any(len(part.encode()) > MAX_NAME_BYTES for part in parts):
        raise _refuse(f"{path[:100]!r}: a part of the path has more than {MAX_NAME_BYTES} bytes")
    return path


def _check_binary(body: Sequence[str], path: str) -> None:
    for line in body:
        if not _BINARY_PATCH.fullmatch(line.rstrip("\r")):
            raise _refuse(f"{path}: a binary patch has no line {line[:100]!r}")


def _count(body: Sequence[str], path: str) -> tuple[int, int]:
    """Added and deleted lines, if the hunks hold exactly the lines that they announce and none stands outside."""
    marks = Counter(line[:1] for line in body)
    # Only such lines reach the library: it looks at others with expressions that take quadratic time.
    if strange := marks.keys() - {"+", "-", " ", "\\", "@", "", "\r"}:
        line = next(line for line in body if line[:1] in strange)
        raise _refuse(f"{path}: no hunk has a line like {line[:100]!r}")
    try:
        patch = PatchSet("--- a/f\n+++ b/f\n" + "\n".join(body), metadata_only=True)
    except (UnidiffParseError, ValueError) as error:
        raise _refuse(f"{path}: {str(error).strip()[:200]}") from None
    hunks = [hunk for file in patch for hunk in file]
    added, deleted = sum(hunk.added for hunk in hunks), sum(hunk.removed for hunk in hunks)
    kept = sum(hunk.source_length for hunk in hunks) - deleted
    counted = (added, deleted, len(hunks)) == (marks["+"], marks["-"], marks["@"])
    # A mailer may have taken the space of an empty line that was kept, so empty lines may be either.
    if not counted or not marks[" "] <= kept <= marks[" "] + marks[""] + marks["\r"]:
        raise _refuse(f"{path}: lines stand outside of the hunks, or a hunk announces fewer than it has")
    return added, deleted


def _merged(before: FileStat | None, file: FileStat) -> FileStat:
    """A file that became a link is deleted and added again in one diff; any other repetition is refused."""
    if before is None:
        return file
    if (before.status, file.status) != ("deleted", "added"):
        raise _refuse(f"{file.path} stands in the diff twice, as in the patches of several commits")
    return FileStat(
        file.path, None, "modified", file.added, before.deleted, before.binary or file.binary, file.test, file.generated
    )

"""What a diff page shows of a pull request's files: which stand on it, which of them open, and the tree. Pure."""

from collections import OrderedDict
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from itertools import groupby

from rookery.domains.tracker.diff_files import ChangedFile, changed_files
from rookery.web.hidden_marks import deceiving

FILES_ON_A_PAGE = 200
OPEN_LINES = 3_000
"""Changed lines that are open when the page comes; the other files are fetched when they are wanted."""
OPEN_FILE = 600
KEPT = 32
_LINES_AROUND = 8
_MODES = {"120000": "symbolic link", "160000": "submodule", "100755": "executable", "100644": "plain file"}


@dataclass(frozen=True, slots=True)
class Outline:
    """The files of a diff. `deceiving` counts the characters in each that hide or turn text around."""

    files: Sequence[ChangedFile]
    deceiving: Sequence[int]
    added: int
    deleted: int


@dataclass(frozen=True, slots=True)
class FilePage:
    """The files of one page: those that match what is looked for."""

    files: Sequence[ChangedFile]
    found: int
    page: int
    pages: int


_seen: OrderedDict[str, Outline] = OrderedDict()


def outline_of(pr_id: str, diff: str) -> Outline:
    """The outline of a revision, whose diff never changes. The last few are kept."""
    found = _seen.get(pr_id)
    if found is None:
        files = changed_files(diff)
        hidden = [deceiving(diff, file.start, file.end) + deceiving(file.path) for file in files]
        found = Outline(files, hidden, sum(file.added for file in files), sum(file.deleted for file in files))
        _seen[pr_id] = found
        while len(_seen) > KEPT:
            _seen.popitem(last=False)
    return found


def file_page(files: Sequence[ChangedFile], wanted: str, page: int) -> FilePage:
    """One page of the files whose path holds what is wanted."""
    looked_for = wanted.casefold()
    found = [file for file in files if looked_for in file.path.casefold()] if looked_for else files
    pages = max(1, -(-len(found) // FILES_ON_A_PAGE))
    page = min(max(1, page), pages)
    first = (page - 1) * FILES_ON_A_PAGE
    return FilePage(found[first : first + FILES_ON_A_PAGE], len(found), page, pages)


def opened(files: Sequence[ChangedFile], commented: Collection[str]) -> set[int]:
    """The numbers of the files that are open at once: those with comments, then the others as long as there is room."""
    room = OPEN_LINES
    chosen: set[int] = set()
    for file in sorted(files, key=lambda each: each.path not in commented):
        small = file.changed_lines <= OPEN_FILE and file.size <= OPEN_FILE * 200 and not file.generated
        if file.binary or not file.size or (not small and file.path not in commented):
            continue
        if room <= 0:
            break
        room -= file.changed_lines + _LINES_AROUND
        chosen.add(file.number)
    return chosen


def what_happened(file: ChangedFile) -> str:
    """What became of the file besides its lines, in words; empty if it was only edited."""
    said = {"added": "new file", "deleted": "deleted", "renamed": "renamed", "copied": "copied", "modified": ""}
    words = [said[file.status]] if said[file.status] else []
    if file.binary:
        words.append("binary")
    if file.status == "modified" and file.old_mode and file.new_mode:
        words.append(f"{_mode(file.old_mode)} to {_mode(file.new_mode)}")
    elif (file.new_mode or file.old_mode) not in (None, "100644"):
        words.append(_mode(file.new_mode or file.old_mode or ""))
    return ", ".join(words)


def _mode(mode: str) -> str:
    return f"{_MODES[mode]} ({mode})" if mode in _MODES else f"mode {mode}"


def folders(files: Sequence[ChangedFile]) -> list[tuple[str, list[ChangedFile]]]:
    """The files by folder, in the order of the diff."""

    def folder(file: ChangedFile) -> str:
        return file.path.rpartition("/")[0]

    return [(name, list(group)) for name, group in groupby(sorted(files, key=folder), key=folder)]

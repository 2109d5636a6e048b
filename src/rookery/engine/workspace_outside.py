"""Whether anything in a project's own checkout changed while an agent worked elsewhere. Reads only, and blocks."""

import os
from dataclasses import dataclass, field

from rookery.core.errors import RookeryError, ValidationFailed
from rookery.engine.workspace_names import Site
from rookery.files.git import Repository, borrowed, head, open_repository

_CHANGES_BYTES = 8_000_000
_LOG_BYTES = 1_000_000
# The ways in which a checkout is brought forward; what they bring was committed elsewhere.
_BROUGHT = ("merge ", "pull", "checkout: ")


@dataclass(frozen=True, slots=True)
class Marks:
    """How a checkout stood: its files that are not as committed, each with a stamp, and how long its history was."""

    files: dict[str, str] = field(default_factory=dict[str, str])
    history: int = 0
    known: bool = True


def marks_outside(site: Site) -> Marks:
    """How the project's own checkout stands now. Nothing is known of one that git cannot read."""
    try:
        repository = open_repository(site.repository)
        return Marks(_files(repository), _history_size(repository))
    except (RookeryError, OSError):
        return Marks(known=False)


def changed_outside(site: Site, before: Marks) -> list[str]:
    """What changed there since: files by path, and commits that were made there. By whom is not known.

    If it is not known how the checkout stood before, nothing is said of it.
    """
    if not before.known:
        return []
    try:
        repository = open_repository(site.repository)
        now = _files(repository)
        made = _commits_since(repository, before.history)
    except (RookeryError, OSError):
        return []
    return [*made, *sorted({path for path, _ in before.files.items() ^ now.items()})]


def _files(repository: Repository) -> dict[str, str]:
    with borrowed(repository, head(repository)) as git:
        words = ("status", "--porcelain", "-z", "--ignore-submodules=dirty", "--no-renames")
        try:
            said = git.working_tree(*words, "--untracked-files=all", limit=_CHANGES_BYTES)
        except ValidationFailed:
            said = git.working_tree(*words, "--untracked-files=normal", limit=_CHANGES_BYTES)
    lines = (line for line in said.split(b"\0") if line)
    return {os.fsdecode(line[3:]): f"{line[:2].decode()} {_stamp(repository, line[3:])}" for line in lines}


def _stamp(repository: Repository, path: bytes) -> str:
    try:
        found = os.lstat(os.path.join(os.fsencode(repository.folder), path))
    except OSError:
        return "gone"
    return f"{found.st_size} {found.st_mtime_ns} {found.st_ino}"


def _history_size(repository: Repository) -> int:
    log = os.path.join(repository.git_dir, "logs", "HEAD")
    return os.path.getsize(log) if os.path.isfile(log) else 0


def _commits_since(repository: Repository, start: int) -> list[str]:
    log = os.path.join(repository.git_dir, "logs", "HEAD")
    if _history_size(repository) <= start:
        return []
    with open(log, "rb") as file:
        file.seek(start)
        lines = file.read(_LOG_BYTES).decode(errors="replace").splitlines()
    said = [line.partition("\t")[2] for line in lines]
    return [f"HEAD: {words[:200]}" for words in said if words and not words.startswith(_BROUGHT)]

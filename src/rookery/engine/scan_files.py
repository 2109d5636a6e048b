"""Which files of a project can be scanned, and whether its base branch has moved since somebody looked."""

import os
from collections.abc import Sequence
from dataclasses import dataclass

from rookery.core.errors import ValidationFailed
from rookery.domains.tracker.coverage_tools import plain_path
from rookery.domains.tracker.file_kinds import is_generated
from rookery.domains.tracker.risk import matching
from rookery.files.git import Repository, open_repository, resolve, small_text
from rookery.files.git_trees import TreeFile, tree_files

MAX_BYTES = 500_000
"""What is longer is data, and more than an agent can read."""
_PLACES = ("refs/heads", "refs/remotes", "refs/remotes/origin", "refs/tags")
_LISTS = ("packed-refs", "reftable/tables.list")
Marks = tuple[object, ...]


@dataclass(frozen=True, slots=True)
class Scannable:
    """The files of one commit that a scanner may be given, by path."""

    repository: Repository
    commit: str
    files: Sequence[TreeFile]


def scannable(folder: str, base_branch: str, patterns: Sequence[str]) -> Scannable:
    """The files of the base branch that the patterns name, as in .gitignore.

    What a tool writes, what is empty or too long to be read, and what `record_coverage` could not name is left out;
    whether a file is binary is not looked at. ValidationFailed: no repository, no such branch, or no pattern.
    """
    repository = open_repository(folder)
    commit = resolve(repository, base_branch)
    found = [file for file in tree_files(repository, commit) if 0 < file.size <= MAX_BYTES and _can_be_named(file.path)]
    written = [file for file in found if not is_generated(file.path)]
    named = matching(patterns, (file.path for file in written))
    return Scannable(repository, commit, [file for file in written if file.path in named])


def branch_marks(folder: str, base_branch: str) -> Marks:
    """What is different once the branch has moved. Told from a few small files, without asking git."""
    repository = open_repository(folder)
    common = repository.common_dir
    loose = (small_text(os.path.join(common, place, base_branch)) for place in _PLACES)
    return (common, base_branch, *loose, *(_stamp(os.path.join(common, name)) for name in _LISTS))


def _stamp(path: str) -> tuple[int, int, int] | None:
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_mtime_ns, found.st_ino, found.st_size


def _can_be_named(path: str) -> bool:
    try:
        return plain_path(path) == path and len(path) <= 1_000
    except ValidationFailed:
        return False

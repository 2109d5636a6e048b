"""What would be lost with a working tree: changes that are on no commit, and commits that are on no branch.

Reads only, and runs nothing that was prepared there. Whatever cannot be found out counts as work. Blocks; for a thread.
"""

import os
import re
from collections.abc import Iterator, Sequence

from rookery.core.errors import ValidationFailed
from rookery.domains.tracker.worktree import MARKER
from rookery.files.git import Repository, borrowed, head, is_hash, open_repository, run_git, small_text

_LISTED_BYTES = 256_000_000
_CHANGES_BYTES = 8_000_000
_LOG_BYTES = 16_000_000
_SHOWN = 5
_AT_ONCE = 200
# HEAD was at no branch when it was moved: what had been committed there is named here and perhaps nowhere else.
_LEFT = re.compile(r"^([0-9a-f]{40,64}) [0-9a-f]{40,64} [^\t]*\tcheckout: moving from [0-9a-f]{40,64} to ")
_UNDER_WAY = {
    "rebase-merge": "a rebase",
    "rebase-apply": "a rebase",
    "MERGE_HEAD": "a merge",
    "CHERRY_PICK_HEAD": "a cherry-pick",
    "REVERT_HEAD": "a revert",
    "sequencer": "a cherry-pick",
    "BISECT_LOG": "a bisection",
    "index.lock": "a git command",
}
_ELSEWHERE = ("--branches", "--tags", "--remotes")
"""Where the commits of a worktree can be kept: its repository stays."""
_PUSHED = ("--remotes",)
"""Where those of a submodule can be: its own branches go with the worktree."""


def unsaved(folder: str) -> str | None:
    """What in a worktree is saved nowhere else, in a few words; None if it can be removed without any loss."""
    try:
        return next(_losses(open_repository(folder), _ELSEWHERE), None)
    except (ValidationFailed, OSError) as error:
        return str(error)


def _losses(repository: Repository, kept: Sequence[str]) -> Iterator[str]:
    for name, what in _UNDER_WAY.items():
        if os.path.lexists(os.path.join(repository.git_dir, name)):
            yield f"{what} is under way in {repository.folder}"
    yield from _changes(repository)
    tips = [head(repository), *_left_behind(repository), *_own_refs(repository)]
    yield from _loose(repository, tips, kept)
    yield from _below(repository)


def _changes(repository: Repository) -> Iterator[str]:
    """Files that differ from what is committed, and those that git does not know and does not ignore."""
    with borrowed(repository, head(repository)) as git:
        said = git.working_tree(
            *("status", "--porcelain", "-z", "--untracked-files=normal", "--ignore-submodules=dirty"),
            *("--no-renames", "--", ".", f":(exclude,top){MARKER}"),
            limit=_CHANGES_BYTES,
        )
    lines = [line for line in said.decode(errors="replace").split("\0") if line]
    known = [line[3:] for line in lines if not line.startswith("??")]
    if known:
        yield f"changes that are not committed: {_some(known)}"
    if lines:
        yield f"files that are not committed: {_some([line[3:] for line in lines])}"


def _below(repository: Repository) -> Iterator[str]:
    """Files that git was told to overlook, and repositories in the working tree."""
    seen: set[str] = set()
    for tag, mode, path in _index(repository):
        there = os.path.join(repository.folder, path)
        # A file that is left out of a sparse checkout is told to be overlooked as well, and is not there.
        overlooked = tag.islower() or (tag == "S" and os.path.lexists(there))
        if overlooked and path != MARKER:
            yield f"a file that git was told to overlook: {_some([path])}"
        if mode == "160000" and os.path.lexists(os.path.join(there, ".git")):
            inner = open_repository(there)
            seen.add(inner.git_dir)
            yield from (f"in the submodule {_some([path])}, {loss}" for loss in _losses(inner, _PUSHED))
            yield from _local_commits(inner)
    for folder, folders, files in os.walk(os.path.join(repository.git_dir, "modules")):
        if "HEAD" in files and "objects" in folders:
            folders[:] = [name for name in folders if name == "modules"]
            if os.path.realpath(folder) not in seen:
                yield from _local_commits(Repository(folder, folder, folder))


def _index(repository: Repository) -> Iterator[tuple[str, str, str]]:
    where = {"GIT_DIR": repository.git_dir, "GIT_WORK_TREE": repository.folder}
    said = run_git(("ls-files", "-v", "--stage", "-z"), where, repository.folder, limit=_LISTED_BYTES)
    for entry in said.split(b"\0"):
        if entry:
            about, _, path = entry.partition(b"\t")
            tag, mode, *_ = about.decode().split(" ")
            yield tag, mode, os.fsdecode(path)


def _left_behind(repository: Repository) -> Iterator[str]:
    """Commits that were made at no branch and then left."""
    log = os.path.join(repository.git_dir, "logs", "HEAD")
    if not os.path.isfile(log):
        return
    if os.path.getsize(log) > _LOG_BYTES:
        raise ValidationFailed(f"the history of {repository.folder} is too long to look through")
    with open(log, encoding="utf-8", errors="replace") as lines:
        yield from (found[1] for found in map(_LEFT.match, lines) if found)


def _own_refs(repository: Repository) -> Iterator[str]:
    """What only this working tree has, such as `refs/worktree/…`."""
    if repository.git_dir == repository.common_dir:
        return
    for folder, _, files in os.walk(os.path.join(repository.git_dir, "refs")):
        yield from (small_text(os.path.join(folder, name)).strip() for name in files)


def _local_commits(repository: Repository) -> Iterator[str]:
    """Commits of a submodule that no remote has been seen to have."""
    yield from _found(repository, ("--branches", "--tags", "--glob=refs/stash"), _PUSHED)


def _loose(repository: Repository, tips: Sequence[str], kept: Sequence[str]) -> Iterator[str]:
    # What an agent wrote where a hash should be is no option of a command.
    wanted = list(dict.fromkeys(tip for tip in tips if is_hash(tip)))
    for at in range(0, len(wanted), _AT_ONCE):
        yield from _found(repository, wanted[at : at + _AT_ONCE], kept)


def _found(repository: Repository, wanted: Sequence[str], kept: Sequence[str]) -> Iterator[str]:
    # Where the files of a submodule would be does not matter, and they may be gone.
    where = {"GIT_DIR": repository.common_dir, "GIT_WORK_TREE": repository.common_dir}
    words = ("rev-list", "--max-count=1", "--ignore-missing", *wanted, "--not", *kept, "--")
    if found := run_git(words, where, repository.common_dir).decode().strip():
        yield f"commits that are on no branch{'' if kept == _ELSEWHERE else ' of a remote'}: {found[:12]}"


def _some(paths: Sequence[str]) -> str:
    shown = ", ".join(repr(path)[1:-1] for path in paths[:_SHOWN])
    return shown if len(paths) <= _SHOWN else f"{shown} and {len(paths) - _SHOWN} more"

"""What stands in the way of a merge in a checkout, and what an interrupted merge has left there. Blocks; for a thread.

Git writes files before it moves the branch. If the disk is full or the process dies in between, what it wrote looks
like somebody's own changes. It is told from these by what is in it: nothing but what the merged commit has.
"""

import contextlib
import os
import stat
from collections.abc import Mapping, Sequence

from rookery.core.errors import ValidationFailed
from rookery.files.git import Borrowed, Repository, as_environment, borrowed, run_git, without_filters

_STATUS_BYTES = 10_000_000
_FILE_BYTES = 64_000_000
_AT_ONCE = 200
_UNKNOWN = b"??"
# Of the two letters of a state the first is about the index, in which an interrupted merge has changed nothing.
_UNSTAGED = (_UNKNOWN, b" M", b" D", b" T")


def in_the_way(place: Repository, tip: str, commit: str) -> dict[bytes, bytes]:
    """The files that differ between two commits and are not as committed in the checkout, each with git's two letters
    for its state."""
    with borrowed(place, tip) as git:
        changed = git.objects("diff-tree", "-r", "-z", "--name-only", tip, commit, limit=_STATUS_BYTES).split(b"\0")
        words = ("status", "--porcelain", "-z", "--no-renames", "--untracked-files=all")
        states = {line[3:]: line[:2] for line in git.working_tree(*words, limit=_STATUS_BYTES).split(b"\0") if line}
    return {path: states[path] for path in changed if path in states}


def put_back(place: Repository, commit: str, files: Mapping[bytes, bytes], *, cut_off: bool) -> bool:
    """Make those files again what the index has, if each is what `commit` has.

    `cut_off`: git has just said that it could not write one of them, so that may be gone or end too early.
    """
    if not all(state in _UNSTAGED for state in files.values()):
        return False
    with borrowed(place, commit) as git:
        if not all(_is_of(git, place, commit, path, cut_off=cut_off) for path in files):
            return False
    for path in (path for path, state in files.items() if state == _UNKNOWN):
        with contextlib.suppress(FileNotFoundError):
            os.unlink(_full(place, path))
        with contextlib.suppress(OSError):
            os.removedirs(os.path.dirname(_full(place, path)))
    _check_out(place, [os.fsdecode(path) for path, state in files.items() if state != _UNKNOWN])
    return True


def _check_out(place: Repository, paths: Sequence[str]) -> None:
    where = {"GIT_DIR": place.git_dir, "GIT_WORK_TREE": place.folder}
    there = {**where, **as_environment(without_filters(place))}
    for at in range(0, len(paths), _AT_ONCE):
        words = ("checkout-index", "--force", "--quiet", "--", *paths[at : at + _AT_ONCE])
        run_git(words, there, place.folder)


def _is_of(git: Borrowed, place: Repository, commit: str, path: bytes, *, cut_off: bool) -> bool:
    try:
        found, wanted = _content(_full(place, path)), _blob(git, commit, path)
    except (ValidationFailed, OSError):
        return False
    return found == wanted or (cut_off and (wanted or b"").startswith(found or b""))


def _blob(git: Borrowed, commit: str, path: bytes) -> bytes | None:
    there = git.objects("ls-tree", "-z", "--full-tree", "--name-only", commit, "--", os.fsdecode(path))
    return git.objects("cat-file", "blob", f"{commit}:{os.fsdecode(path)}", limit=_FILE_BYTES) if there else None


def _content(path: bytes) -> bytes | None:
    try:
        kind = os.lstat(path)
    except FileNotFoundError:
        return None
    if stat.S_ISLNK(kind.st_mode):
        return os.readlink(path)
    if not stat.S_ISREG(kind.st_mode) or kind.st_size > _FILE_BYTES:
        raise OSError("it is no file that a merge wrote")
    with open(path, "rb") as file:
        return file.read()


def _full(place: Repository, path: bytes) -> bytes:
    return os.path.join(os.fsencode(place.folder), path)

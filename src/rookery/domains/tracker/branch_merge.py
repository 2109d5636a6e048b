"""Brings a reviewed commit into the base branch of a repository. Blocks; for a thread.

The result is prepared without a working tree, so nothing is half done when a conflict shows. Then the base branch moves
in one step, from the commit that was looked at: in the working tree that has it checked out, else by its name alone.
Nothing that is not committed is ever lost.
"""

import os
import re
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple, TypeVar

from rookery.core.errors import ConfigurationError, Conflict, ServiceUnavailable, ValidationFailed
from rookery.domains.tracker.merge_leftovers import in_the_way, put_back
from rookery.domains.tracker.pr_store import Standing, hash_of
from rookery.domains.tracker.worktree import diff_between
from rookery.files.git import (
    LOCKED,
    UNWRITTEN,
    Borrowed,
    Repository,
    as_environment,
    ask,
    borrowed,
    open_repository,
    run_git,
    small_text,
    without_filters,
)

T = TypeVar("T")
Method = Literal["ff", "merge"]
OLDEST_GIT = (2, 38)
"""The first that merges without a working tree."""
TRIES = 5
BUSY_S = 10.0
_LOOK_AGAIN_S = 0.2
SHOWN_FILES = 20
_STATUS_BYTES = 10_000_000
_CHECKOUT_S = 600.0
_NO_SUBMODULES = ("-c", "submodule.recurse=false")
_REFUSED = ": Aborting"
"""How git ends when it would have to overwrite something, and has changed nothing."""
_NOT_AHEAD = ("Not possible to fast-forward", "but expected", "reference already exists")


class Identity(NamedTuple):
    """Who a commit is signed by."""

    name: str
    email: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """A reviewed branch that is to be in `base`, in the repository at `folder`."""

    folder: str
    base: str
    branch: str
    standing: Standing
    method: Method
    message: str
    by: Identity


@dataclass(frozen=True, slots=True)
class Merged:
    """The commit of the base branch that has it; `already`: it was there before."""

    commit: str
    already: bool


@dataclass(frozen=True, slots=True)
class Stale:
    """Why what is there is not what was reviewed."""

    why: str


def merge_branch(wanted: Wanted) -> Merged | Stale:
    """Merge, unless the branch is not what was reviewed. Asked again after a crash it finds what was done.

    Conflict if the two sides change the same lines, or the base branch cannot be moved; ServiceUnavailable if another
    process is at the repository for too long.
    """
    _check_version()
    repository = open_repository(wanted.folder)
    wanted = replace(wanted, base=_meant(repository, wanted.base))
    for _ in range(TRIES):
        tip = tip_of(repository, wanted.base)
        if tip is None:
            raise Conflict(
                f"there is no branch {wanted.base} in {repository.folder}", hint="make it, or set another base branch"
            )
        with borrowed(repository, tip) as git:
            if contains(git, tip, wanted.standing.head):
                return Merged(tip, already=True)
            stale = _stale(repository, git, wanted, tip)
            if stale is not None:
                return stale
            commit = _prepare(git, wanted, tip)
        if _patiently(lambda at=tip, to=commit: _move(repository, wanted, at, to)):
            return Merged(commit, already=False)
    raise Conflict(f"{wanted.base} was moved by others each time", hint="merge again when it is quiet")


def tip_of(repository: Repository, branch: str) -> str | None:
    """The commit that a local branch is at."""
    return ask(repository, "rev-parse", "--verify", "--quiet", "--end-of-options", f"refs/heads/{branch}") or None


def _meant(repository: Repository, branch: str) -> str:
    """The branch itself, or the one that it is another name of."""
    ref = ask(repository, "symbolic-ref", "--quiet", f"refs/heads/{branch}")
    return ref.removeprefix("refs/heads/") if ref.startswith("refs/heads/") else branch


def _check_version() -> None:
    said = run_git(("version",), {}, os.path.sep).decode(errors="replace")
    found = re.search(r"(\d+)\.(\d+)", said)
    if found is None or (int(found[1]), int(found[2])) < OLDEST_GIT:
        oldest = ".".join(map(str, OLDEST_GIT))
        raise ConfigurationError(
            f"merging needs git {oldest} or newer, and here is {said.strip()[:100]}",
            hint="install a newer git, or merge by hand: what is in the base branch is recorded at the next call",
        )


def contains(git: Borrowed, tip: str, commit: str) -> bool:
    """Whether `commit` is `tip` or an ancestor of it. One that does not exist is not."""
    there = git.objects("rev-parse", "--verify", "--quiet", f"{commit}^{{commit}}", accept=(0, 1, 128)).strip()
    return bool(there) and git.objects("merge-base", tip, commit, accept=(0, 1)).decode().strip() == commit


def _stale(repository: Repository, git: Borrowed, wanted: Wanted, tip: str) -> Stale | None:
    head = tip_of(repository, wanted.branch)
    if head is None:
        return Stale(f"the branch {wanted.branch} is gone")
    if head != wanted.standing.head:
        return Stale(f"{wanted.branch} is at {head[:12]}, and {wanted.standing.head[:12]} was reviewed")
    if hash_of(diff_between(git, repository, tip, head)) != wanted.standing.diff_hash:
        return Stale(f"{wanted.base} was taken back, so that {wanted.branch} changes more than was reviewed")
    return None


def _prepare(git: Borrowed, wanted: Wanted, tip: str) -> str:
    """The commit that the base branch is to be at."""
    head = wanted.standing.head
    if wanted.method == "ff":
        if contains(git, head, tip):
            return head
        raise Conflict(
            f"{wanted.base} has commits that {wanted.branch} lacks, so it cannot be fast-forwarded",
            hint="merge with a merge commit, or have the branch brought up to date and reviewed again",
        )
    words = ("merge-tree", "--write-tree", "--name-only", "-z", "--no-messages", tip, head)
    try:
        tree = git.objects(*words).decode().strip("\0\n")
    except ValidationFailed:
        # It says no more than that it failed; for conflicts alone it ends with 1.
        answer = git.objects(*words, accept=(0, 1), limit=_STATUS_BYTES).decode(errors="replace")
        files = sorted(set(filter(None, answer.split("\0")[1:])))
        raise Conflict(
            f"{wanted.branch} and {wanted.base} changed the same lines of {_some(files) or 'some files'}",
            hint=f"bring {wanted.base} into the branch, solve the conflicts there, and have it reviewed again",
        ) from None
    who = {"NAME": wanted.by.name, "EMAIL": wanted.by.email}
    signed = {f"GIT_{role}_{what}": value for role in ("AUTHOR", "COMMITTER") for what, value in who.items()}
    made = git.objects("commit-tree", tree, "-p", tip, "-p", head, "-m", wanted.message, environment=signed)
    return made.decode().strip()


def _move(repository: Repository, wanted: Wanted, tip: str, commit: str) -> bool:
    """Move the base branch from `tip` to `commit`; False if it is not at `tip` any more."""
    place = _checked_out(repository, wanted.base)
    who = {"GIT_COMMITTER_NAME": wanted.by.name, "GIT_COMMITTER_EMAIL": wanted.by.email}
    why = f"merge {wanted.branch} by rookery"
    signed = {"GIT_REFLOG_ACTION": why, **who}
    try:
        if place is None:
            ref = f"refs/heads/{wanted.base}"
            words = ("update-ref", "-m", why, ref, commit, tip)
            run_git(words, {"GIT_DIR": repository.git_dir, **signed}, repository.git_dir)
        else:
            _fast_forward(place, wanted.base, commit, signed)
    except ValidationFailed as error:
        busy, moved = LOCKED in error.message, any(sign in error.message for sign in _NOT_AHEAD)
        if place is not None and (busy or moved):
            _take_back(place, commit, tip)
        if busy:
            raise
        if moved:
            return False
        if place is None:
            raise _not_moved(repository, wanted, error) from None
        both = in_the_way(place, tip, commit)
        if both and put_back(place, commit, both, cut_off=any(sign in error.message for sign in UNWRITTEN)):
            # What an earlier attempt had left is gone; what this one left, too, and it says why.
            if error.message.endswith(_REFUSED):
                return False
            both = {}
        raise _refused(place, wanted, both, error) from None
    # Somebody may have checked out another branch in the moment before: then that one has been moved, or nothing.
    return tip_of(repository, wanted.base) == commit


def _fast_forward(place: Repository, base: str, commit: str, environment: dict[str, str]) -> None:
    # Whatever the repository is set to: nothing but this, and what is not committed stays where it is.
    only = ("--no-squash", "--no-autostash", "--no-verify-signatures", "--no-overwrite-ignore")
    words = (*_NO_SUBMODULES, "merge", "--ff-only", "--quiet", "--no-stat", *only, commit)
    mere = as_environment([*without_filters(place), (f"branch.{base}.mergeOptions", "")])
    run_git(words, {**_at(place), **environment, **mere}, place.folder, limit_s=_CHECKOUT_S)


def _take_back(place: Repository, commit: str, tip: str) -> None:
    """Git changes the files before it moves the branch; if it could not, they become again what the branch has."""
    if ask(place, "rev-parse", "--verify", "--quiet", "HEAD") == tip:
        words = (*_NO_SUBMODULES, "read-tree", "-m", "-u", commit, tip)
        there = {**_at(place), **as_environment(without_filters(place))}
        # 128: the index itself is locked, so nothing was changed.
        run_git(words, there, place.folder, accept=(0, 128), limit_s=_CHECKOUT_S)


def _at(place: Repository) -> dict[str, str]:
    # Named here, so that what the repository's config says of its working tree does not count.
    return {"GIT_DIR": place.git_dir, "GIT_WORK_TREE": place.folder}


def _checked_out(repository: Repository, branch: str) -> Repository | None:
    """The working tree that has the branch checked out."""
    if _has(repository, branch):
        return repository
    told = run_git(("worktree", "list", "--porcelain", "-z"), {"GIT_DIR": repository.git_dir}, repository.git_dir)
    for entry in told.decode(errors="surrogateescape").split("\0\0"):
        parts = (line.partition(" ") for line in entry.strip("\0").split("\0"))
        lines = {name: value for name, _, value in parts}
        if lines.get("branch") == f"refs/heads/{branch}" and os.path.isdir(lines.get("worktree", "")):
            place = open_repository(lines["worktree"])
            # Where a working tree was there may be another repository by now.
            if place.common_dir == repository.common_dir and _has(place, branch):
                return place
    _check_rebase(repository, branch)
    return None


def _has(place: Repository, branch: str) -> bool:
    return ask(place, "symbolic-ref", "--quiet", "HEAD") == f"refs/heads/{branch}"


def _check_rebase(repository: Repository, branch: str) -> None:
    """A branch that is being rebased is checked out nowhere, and yet somebody is about to move it."""
    worktrees = os.path.join(repository.common_dir, "worktrees")
    names = os.listdir(worktrees) if os.path.isdir(worktrees) else []
    for git_dir in (repository.common_dir, *(os.path.join(worktrees, name) for name in names)):
        for kind in ("rebase-merge", "rebase-apply"):
            if small_text(os.path.join(git_dir, kind, "head-name")).strip() == f"refs/heads/{branch}":
                raise Conflict(f"a rebase of {branch} is under way ({git_dir})", hint="end it there, then merge again")


def _refused(place: Repository, wanted: Wanted, both: Iterable[bytes], error: ValidationFailed) -> Conflict:
    if names := sorted(path.decode(errors="replace") for path in both):
        return Conflict(
            f"in {place.folder} {wanted.base} is checked out with changes of {_some(names)} that are not committed, "
            f"and {wanted.branch} changes the same",
            hint="commit or stash them there, then merge again",
        )
    return _not_moved(place, wanted, error)


def _not_moved(place: Repository, wanted: Wanted, error: ValidationFailed) -> Conflict:
    return Conflict(f"{wanted.base} in {place.folder} was not moved: {error.message}", hint="see what git says there")


def _patiently(work: Callable[[], T]) -> T:
    """Do it as soon as no other process is at the repository."""
    until = time.monotonic() + BUSY_S
    while True:
        try:
            return work()
        except ValidationFailed as error:
            if LOCKED not in error.message:
                raise
            if time.monotonic() >= until:
                raise ServiceUnavailable(
                    "another process is at work in the repository",
                    hint="try again; if none is, remove the .lock file that it left in .git",
                ) from None
        time.sleep(_LOOK_AGAIN_S)


def _some(names: Sequence[str]) -> str:
    shown = ", ".join(name[:200] for name in names[:SHOWN_FILES])
    return shown if len(names) <= SHOWN_FILES else f"{shown} and {len(names) - SHOWN_FILES} more"

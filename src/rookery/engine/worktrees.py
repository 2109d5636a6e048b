"""What git knows of a repository's working trees and branches. Blocks; for a thread.

Hooks of the repository never run in these commands, and no command of ours takes a name for an option.
"""

import contextlib
import os
import re
import secrets
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from rookery.core.errors import Conflict, ServiceUnavailable, ValidationFailed
from rookery.files.git import (
    ANSWER_BYTES,
    LOCKED,
    TIMEOUT_S,
    Repository,
    as_environment,
    is_hash,
    open_repository,
    resolve,
    run_git,
    small_text,
    without_filters,
)

BUSY_S = 10.0
"""How long we wait for another git to let go of what it has locked."""
STALE_S = 30.0
"""When a lock in a workspace that nobody works in is taken for that of a git that died."""
CHECKOUT_S = 900.0
_LOOK_AGAIN_S = 0.1
# The second: another git is about to make a working tree, and has not written where its repository is.
_PASSING = re.compile(rf"{re.escape(LOCKED)}|failed to read .*/commondir: Success$")
_NAMES_BYTES = 64_000_000


@dataclass(frozen=True, slots=True)
class Listed:
    """A working tree in git's list. `branch` is None when HEAD is detached."""

    path: str
    branch: str | None = None
    locked: str | None = None


def open_project(folder: str) -> Repository:
    """The repository of a project's folder, or why it is none."""
    if not os.path.isdir(folder):
        raise ValidationFailed(
            f"the project's folder {folder} does not exist", hint="rookery projects folder gives it another one"
        )
    try:
        return open_repository(folder)
    except ValidationFailed:
        pass
    if os.path.isfile(os.path.join(folder, "HEAD")) and os.path.isdir(os.path.join(folder, "objects")):
        raise ValidationFailed(
            f"the project's folder {folder} is a bare repository, in which nothing is checked out",
            hint="clone it, and give the project the clone's folder",
        )
    around = next((path for path in _parents(folder) if os.path.lexists(os.path.join(path, ".git"))), None)
    if around is not None:
        raise ValidationFailed(
            f"the project's folder {folder} is a part of the repository {around}",
            hint=f"give the project the folder {around}, and say in its issues which part is meant",
        )
    raise ValidationFailed(
        f"the project's folder {folder} is not the root of a git repository",
        hint="give the project the folder of a clone, or run git init there and commit",
    )


def _parents(folder: str) -> Iterator[str]:
    while (above := os.path.dirname(folder)) != folder:
        yield above
        folder = above


class Worktrees:
    """The working trees of one repository. `holding` is a lock that git keeps for as long as it runs."""

    def __init__(self, repository: Repository, holding: tuple[int, ...] = ()) -> None:
        self.repository = repository
        self._holding = holding

    def git(
        self,
        *arguments: str,
        accept: tuple[int, ...] = (0,),
        limit: int = ANSWER_BYTES,
        limit_s: float = TIMEOUT_S,
        place: Repository | None = None,
        settings: Mapping[str, str] | None = None,
    ) -> str:
        """What git says, of the repository or in one `place`. Waits a while for other gits; then ServiceUnavailable,
        which is worth another try."""
        where = self.repository.common_dir if place is None else place.folder
        there = {"GIT_DIR": where} if place is None else {"GIT_DIR": place.git_dir, "GIT_WORK_TREE": place.folder}
        until = time.monotonic() + BUSY_S
        while True:
            try:
                answer = run_git(
                    arguments,
                    {**there, **(settings or {})},
                    where,
                    limit=limit,
                    accept=accept,
                    limit_s=limit_s,
                    holding=self._holding,
                )
                return answer.decode(errors="surrogateescape")
            except ValidationFailed as error:
                if not _PASSING.search(error.message):
                    raise
                if time.monotonic() >= until:
                    raise busy(error.message) from None
            time.sleep(_LOOK_AGAIN_S)

    def listed(self) -> list[Listed]:
        """Every working tree, that of the repository first. Some of them may be gone."""
        said = self.git("worktree", "list", "--porcelain", "-z", limit=_NAMES_BYTES)
        return [_listed(block.split("\0")) for block in said.split("\0\0") if block]

    def at(self, folder: str) -> Listed | None:
        """What git's list says of a folder."""
        return next((each for each in self.listed() if each.path == folder), None)

    def healthy(self, folder: str) -> bool:
        """Whether the folder is a working tree of the repository, and not the repository's own."""
        if os.path.islink(folder) or not os.path.isdir(folder):
            return False
        try:
            there = open_repository(folder)
        except ValidationFailed:
            return False
        back = os.path.join(there.git_dir, small_text(os.path.join(there.git_dir, "gitdir")).strip())
        ours = there.common_dir == self.repository.common_dir != there.git_dir
        return ours and os.path.realpath(back) == os.path.join(there.folder, ".git")

    def points_here(self, folder: str) -> bool:
        """Whether the folder was begun as a working tree of the repository, whatever became of it."""
        said = small_text(os.path.join(folder, ".git")).removeprefix("gitdir: ").strip()
        pointer = os.path.realpath(os.path.join(folder, said))
        ours = os.path.join(self.repository.common_dir, "worktrees")
        return os.path.dirname(pointer) == ours and os.path.isdir(pointer)

    def repair(self, folder: str) -> bool:
        """Mend a working tree whose `.git` is gone or wrong; whether it is one now.

        Not by `git worktree repair`, which follows `.git`: an agent could have it lead to another working tree, whose
        place git would then forget.
        """
        dot_git, own = os.path.join(folder, ".git"), self._kept_for(folder)
        if own is None or (os.path.isdir(dot_git) and not os.path.islink(dot_git)):
            return False
        temporary = f"{dot_git}.{secrets.token_hex(8)}"
        with open(temporary, "x", encoding="utf-8", errors="surrogateescape") as file:
            file.write(f"gitdir: {own}\n")
        os.replace(temporary, dot_git)
        return self.healthy(folder)

    def _kept_for(self, folder: str) -> str | None:
        """Where git keeps what belongs to the working tree at that folder."""
        kept = os.path.join(self.repository.common_dir, "worktrees")
        for name in os.listdir(kept) if os.path.isdir(kept) else ():
            own = os.path.join(kept, name)
            there = os.path.join(own, small_text(os.path.join(own, "gitdir")).strip())
            if os.path.basename(there) == ".git" and os.path.realpath(os.path.dirname(there)) == folder:
                return own
        return None

    def add(self, folder: str, *what: str) -> None:
        """Make a working tree. `what` is a branch, or `--detach` and a commit."""
        options, name = what[:-1], what[-1]
        self.git("worktree", "add", "--quiet", "--no-checkout", *options, folder, name)
        if not self.healthy(folder):
            raise ValidationFailed(f"{folder} has not become a working tree", hint="look at the folder and its owner")
        place = open_repository(folder)
        # Which filters are set can depend on the working tree, so it is asked there.
        settings = as_environment(without_filters(place))
        words = ("reset", "--hard", "--quiet", "--no-recurse-submodules")
        self.git(*words, place=place, settings=settings, limit_s=CHECKOUT_S)

    def drop(self, folder: str) -> None:
        """Have git forget a working tree whose folder is gone."""
        os.makedirs(os.path.dirname(folder), mode=0o700, exist_ok=True)
        # Twice forced: also what an interrupted `worktree add` has locked. 128: git does not know it.
        self.git("worktree", "remove", "--force", "--force", folder, accept=(0, 128))

    def branches(self) -> tuple[set[str], set[str]]:
        """The names of the branches here, and of those that remotes have."""
        names = self.git("for-each-ref", "--format=%(refname)", "refs/heads", "refs/remotes", limit=_NAMES_BYTES)
        here, there = set[str](), set[str]()
        for name in names.split("\n"):
            if name.startswith("refs/heads/"):
                here.add(name.removeprefix("refs/heads/"))
            elif name:
                there.add(name.split("/", 3)[-1])
        return here, there

    def tip(self, branch: str) -> str | None:
        """The commit of a branch; None if there is none of that name."""
        found = self.git("rev-parse", "--verify", "--quiet", f"refs/heads/{branch}", accept=(0, 1, 128)).strip()
        return found or None

    def commit(self, name: str) -> str:
        """The commit that a branch here or at origin, a tag or a hash stands for."""
        found = resolve(self.repository, name)
        words = ("rev-parse", "--verify", "--quiet", "--end-of-options", f"{found}^{{commit}}")
        lines = self.git(*words, accept=(0, 1, 128)).split()
        if not lines or not is_hash(lines[-1]):
            raise ValidationFailed(f"there is no commit {name[:100]} in {self.repository.folder}")
        return lines[-1]

    def base(self, name: str) -> str:
        """The commit that work begins at."""
        try:
            return self.commit(name)
        except ValidationFailed:
            here, there = self.branches()
        if not here and not there:
            raise ValidationFailed(
                f"the repository {self.repository.folder} has no commit yet", hint=f"commit something to {name}"
            )
        raise ValidationFailed(
            f"the base branch {name[:100]!r} is not in {self.repository.folder}, nor at its origin",
            hint="create it, or set another base_branch with configure_project",
        )

    def make_branch(self, branch: str, start: str) -> None:
        """Create a branch; a Conflict if somebody was faster."""
        try:
            self.git("update-ref", f"refs/heads/{branch}", start, "0" * len(start))
        except ValidationFailed as error:
            raise Conflict(f"the branch {branch} cannot be made: {error.message}") from None

    def delete_branch(self, branch: str, tip: str) -> None:
        """Delete a branch if it is still at `tip`, with what was set for it."""
        self.git("update-ref", "-d", f"refs/heads/{branch}", tip)
        # Often there is nothing set, and whoever holds the file is not waited for.
        with contextlib.suppress(ValidationFailed):
            self.git("config", "--local", "--remove-section", f"branch.{branch}")

    def contains(self, whole: str, part: str) -> bool:
        """Whether the commit `part` is in the history of the commit `whole`."""
        counted = self.git("rev-list", "--count", "--max-count=1", part, "--not", whole, "--")
        return counted.strip() == "0"

    def common_start(self, one: str, other: str) -> str | None:
        """The newest commit that both have; None if there is none."""
        return self.git("merge-base", one, other, accept=(0, 1)).strip() or None


def _listed(lines: Sequence[str]) -> Listed:
    facts: dict[str, str] = {}
    for line in lines:
        name, _, value = line.partition(" ")
        facts[name] = value
    branch = facts["branch"].removeprefix("refs/heads/") if "branch" in facts else None
    return Listed(facts["worktree"], branch, facts.get("locked"))


def busy(why: str) -> ServiceUnavailable:
    return ServiceUnavailable(
        f"the repository is busy: {why}", hint="it is tried again; if no git runs there, remove the lock by hand"
    )


def wait_for_locks(paths: Iterable[str]) -> None:
    """Wait for gits in a workspace that nobody works in any more. A lock that stays is that of one that died."""
    until = time.monotonic() + BUSY_S
    left = list(paths)
    while left:
        left = [path for path in left if _young(path)]
        if left and time.monotonic() >= until:
            raise busy(f"{left[0]} is there")
        if left:
            time.sleep(_LOOK_AGAIN_S)


def _young(lock: str) -> bool:
    try:
        if time.time() - os.lstat(lock).st_mtime < STALE_S:
            return True
        os.unlink(lock)
    except FileNotFoundError:
        pass
    return False

"""Where the branches of pull requests stand, for all of a project at once. Blocks; for a thread."""

from collections.abc import Sequence
from dataclasses import dataclass

from rookery.core.errors import ValidationFailed
from rookery.domains.tracker.branch_merge import contains, tip_of
from rookery.files.git import Repository, borrowed, open_repository, run_git

_AT_ONCE = 200
_BYTES = 10_000_000


@dataclass(frozen=True, slots=True)
class Sight:
    """The commits that the branches are at, and which commits the base branch has, itself being at `base`."""

    base: str
    tips: dict[str, str]
    merged: frozenset[str]

    def has(self, commit: str) -> bool:
        """Whether the commit, the head of one of the branches that were asked for, is in the base branch."""
        return commit in self.merged


def see(folder: str, base: str, heads: dict[str, str]) -> Sight:
    """Look at the branches, each given with the commit that was reviewed."""
    repository = open_repository(folder)
    tip = tip_of(repository, base)
    if tip is None:
        raise ValidationFailed(f"there is no branch {base} in {repository.folder}", hint="set another base branch")
    tips, merged = dict[str, str](), set[str]()
    names = sorted(heads)
    for at in range(0, len(names), _AT_ONCE):
        some = names[at : at + _AT_ONCE]
        tips |= _refs(repository, some)
        merged |= set(_refs(repository, some, f"--merged={tip}").values())
    # A branch that is gone, or was moved, says nothing of the commit that was reviewed.
    with borrowed(repository, tip) as git:
        merged |= {head for name, head in heads.items() if tips.get(name) != head and contains(git, tip, head)}
    return Sight(tip, tips, frozenset(merged))


def _refs(repository: Repository, branches: Sequence[str], *only: str) -> dict[str, str]:
    wanted = [f"refs/heads/{name}" for name in branches]
    words = ("for-each-ref", "--format=%(refname)%00%(objectname)", *only, *wanted)
    told = run_git(words, {"GIT_DIR": repository.git_dir}, repository.git_dir, limit=_BYTES).decode(errors="replace")
    lines = (line.partition("\0") for line in told.splitlines())
    found = {name.removeprefix("refs/heads/"): commit for name, _, commit in lines}
    return {name: commit for name, commit in found.items() if name in branches}

"""What really happened outside of the database: what agents wrote, meant and spent. Invariants are held against it."""

import hashlib
import os
from dataclasses import dataclass, field

GOOD, BAD = "quality: good", "quality: bad"


@dataclass(slots=True)
class Truth:
    """Kept by agents and people as they act."""

    good_artifacts: set[str] = field(default_factory=set[str])
    """Hashes of texts that a judge who reads them approves."""
    good_commits: set[str] = field(default_factory=set[str])
    unsaved: dict[str, str] = field(default_factory=dict[str, str])
    """Files that an agent wrote in a worktree and nobody has committed since: the path, and the content."""
    commits: set[str] = field(default_factory=set[str])
    """The commits that agents made."""
    left_behind: set[str] = field(default_factory=set[str])
    """Commits that were approved when their branch had moved on already."""
    spent_micros: dict[str, int] = field(default_factory=dict[str, int])
    """What the agent of a run said that it has cost."""
    by_person: set[tuple[str, str]] = field(default_factory=set[tuple[str, str]])
    """Issue and phase into which a person has put it."""
    started: int = 0

    def wrote(self, path: str, content: str) -> None:
        self.unsaved[os.path.realpath(path)] = content

    def committed(self, folder: str, head: str) -> None:
        """Everything below the folder is in a commit."""
        root = os.path.realpath(folder) + os.sep
        self.unsaved = {path: text for path, text in self.unsaved.items() if not path.startswith(root)}
        self.commits.add(head)


def sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()

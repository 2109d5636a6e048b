"""Where the work on an issue happens, and what its branch is called. Pure.

Folders and branches carry a part of a digest of the issue's id, so that nothing else can have the same, however
identifiers are spelled and whoever else uses the repository.
"""

import hashlib
import os
import re
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass, field

from rookery.engine.project_settings import Hooks

READABLE_CHARACTERS = 40
BRANCHES = "rookery"
READING = ".reading"
REMOVED = ".removed"
"""What is moved here is deleted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Site:
    """Where a project's issues are worked on: its repository's folder, and the folder that workspaces are made in."""

    project_id: str
    slug: str
    repository: str
    base_branch: str
    root: str
    hooks: Hooks = field(default_factory=Hooks)

    @property
    def folder(self) -> str:
        return os.path.join(self.root, readable(self.slug) or "project")

    @property
    def reading(self) -> str:
        """Below it are the copies that are thrown away."""
        return os.path.join(self.folder, READING)

    def workspace(self, issue_id: str, identifier: str) -> str:
        return os.path.join(self.folder, folder_name(identifier, issue_id))

    def copy(self, name: str) -> str:
        return os.path.join(self.reading, folder_name(name, name))


@dataclass(frozen=True, slots=True)
class Workspace:
    """The worktree of an issue. `base` is the commit that its branch began at; `created`: this call has made it."""

    path: str
    branch: str
    base: str
    created: bool


def digest(text: str) -> str:
    """64 bits of it, in letters that no file system takes for others."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def readable(text: str, limit: int = READABLE_CHARACTERS) -> str:
    """The plain letters and digits of a text with single dashes between them; empty if it has none."""
    plain = unicodedata.normalize("NFKD", text)
    plain = "".join(character for character in plain if not unicodedata.combining(character))
    return re.sub(r"[^A-Za-z0-9]+", "-", plain).strip("-")[:limit].rstrip("-")


def folder_name(label: str, about: str) -> str:
    """Such as `SYM-12-3f9c1a2b4d5e6f70`: readable, and no other's than that of `about`."""
    return f"{readable(label) or 'x'}-{digest(about)}"


def is_folder_name(name: str) -> bool:
    """Whether it can be a name that `folder_name` gave."""
    return re.fullmatch(r"[A-Za-z0-9]+(?:-[A-Za-z0-9]+)*-[0-9a-f]{16}", name) is not None


def branch_names(identifier: str, issue_id: str) -> tuple[str, str, str]:
    """What the branch could be called, best first. Only the first could be somebody else's."""
    own = folder_name(identifier, issue_id)
    return f"{BRANCHES}/{readable(identifier) or own}", f"{BRANCHES}/{own}", f"{BRANCHES}-{own}"


def is_ours(branch: str) -> bool:
    """Whether it can be a name that `branch_names` gave."""
    return re.fullmatch(rf"{BRANCHES}[/-][A-Za-z0-9]+(?:-[A-Za-z0-9]+)*", branch) is not None


def free(branch: str, taken: Iterable[str]) -> bool:
    """Whether git can keep the branch beside those, also where upper and lower case are the same."""
    wanted = branch.casefold()
    return not any(
        wanted == other or wanted.startswith(f"{other}/") or other.startswith(f"{wanted}/")
        for other in map(str.casefold, taken)
    )


def inside(path: str, folder: str) -> bool:
    """Whether a path is below a folder, or the folder itself. Both are absolute."""
    return os.path.commonpath([path, folder]) == folder

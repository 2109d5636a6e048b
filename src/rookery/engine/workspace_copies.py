"""Copies of a repository for reading, at one commit. Whatever happens in them is thrown away. Blocks; for a thread."""

import contextlib
import os
import time

from rookery.core.errors import ValidationFailed
from rookery.engine.workspace_making import clear_errors, own_folder, put_away
from rookery.engine.workspace_names import Site, inside, is_folder_name
from rookery.engine.worktrees import Worktrees

KEPT_S = 3 * 86_400
"""How long a copy can be in use; older ones were left by somebody who died."""


def make_copy(trees: Worktrees, site: Site, name: str, commit: str | None) -> str:
    """A fresh copy of that name, at a commit or at the base branch, whatever was there before."""
    folder = site.copy(name)
    with clear_errors(site):
        at = trees.base(site.base_branch) if commit is None else trees.commit(commit)
        own_folder(site, site.reading)
        for old in (*_left_behind(site), folder):
            throw_away(trees, site, old)
        trees.add(folder, "--detach", at)
    return folder


def throw_away(trees: Worktrees | None, site: Site, folder: str) -> None:
    """Remove a copy, with all that is in it. Without a repository only the folder is left to remove."""
    # The name itself is not followed: a link that somebody put in its place goes, and what it leads to stays.
    parent, root = os.path.realpath(os.path.dirname(folder)), os.path.realpath(site.root)
    ours = parent == os.path.realpath(site.reading) and inside(parent, root)
    if not ours or not is_folder_name(os.path.basename(folder)):
        raise ValidationFailed(f"{folder} is no copy for reading of {site.slug}", hint="only those are thrown away")
    with clear_errors(site):
        if os.path.lexists(folder):
            put_away(folder)
        if trees is not None:
            trees.drop(folder)


def _left_behind(site: Site) -> list[str]:
    old: list[str] = []
    for name in filter(is_folder_name, os.listdir(site.reading)):
        folder = os.path.join(site.reading, name)
        with contextlib.suppress(OSError):
            # Written when the copy was made, and not since.
            if time.time() - os.lstat(os.path.join(folder, ".git")).st_mtime > KEPT_S:
                old.append(folder)
    return old

"""Removes the worktree of an issue, unless anything would be lost with it. Blocks; for a thread."""

import os
from typing import Any

import sqlalchemy as sa

from rookery.core.errors import ValidationFailed
from rookery.engine.unsaved_work import unsaved
from rookery.engine.workspace_making import clear_errors, put_away
from rookery.engine.workspace_names import Site, is_ours
from rookery.engine.workspace_records import forget_record
from rookery.engine.worktrees import Worktrees
from rookery.files.git import ask, open_repository

Row = sa.Row[Any]


def why_kept(trees: Worktrees, row: Row) -> str | None:
    """Why the workspace cannot be removed, in a few words; None if it can, or is gone."""
    if not os.path.lexists(row.path):
        return None
    if not trees.healthy(row.path) and not (os.path.isdir(row.path) and trees.repair(row.path)):
        return f"{row.path} is no working tree of {trees.repository.folder} any more"
    listed = trees.at(os.path.realpath(row.path))
    if listed is not None and listed.locked is not None:
        return f"somebody has locked it: {listed.locked}" if listed.locked else "somebody has locked it"
    branch = ask(open_repository(row.path), "symbolic-ref", "--quiet", "--short", "HEAD")
    if branch and branch != row.branch:
        return f"the branch {branch} is checked out there, and not {row.branch}"
    return unsaved(row.path)


def remove_worktree(trees: Worktrees, site: Site, row: Row) -> None:
    """Remove the worktree, and its branch if all of that is in the base branch."""
    with clear_errors(site):
        if os.path.lexists(row.path):
            put_away(row.path)
        trees.drop(row.path)
        if _merged(trees, site, row.branch):
            forget_record(trees.repository, row.issue_id)


def _merged(trees: Worktrees, site: Site, branch: str) -> bool:
    """Delete a branch of ours that the base branch has all of; whether there is none now."""
    tip = trees.tip(branch)
    if tip is None:
        return True
    try:
        base = trees.base(site.base_branch)
    except ValidationFailed:
        return False
    in_use = any(each.branch == branch for each in trees.listed())
    if in_use or not is_ours(branch) or not trees.contains(base, tip):
        return False
    trees.delete_branch(branch, tip)
    return True

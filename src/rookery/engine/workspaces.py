"""Workspaces: a git worktree for each issue, and copies for reading that are thrown away.

The project's own checkout is never touched. What is done here can be interrupted anywhere and done again.
"""

import asyncio
import os
from collections.abc import Callable
from typing import Any, TypeVar

import sqlalchemy as sa

from rookery.core.errors import RookeryError, ValidationFailed
from rookery.domains.tracker.project_store import ProjectSettings
from rookery.domains.work.naming import WORKTREES
from rookery.engine.project_settings import OrchestratorSettings
from rookery.engine.workspace_copies import make_copy, throw_away
from rookery.engine.workspace_hooks import run_hook
from rookery.engine.workspace_making import Making
from rookery.engine.workspace_names import Site, Workspace, inside
from rookery.engine.workspace_outside import Marks, changed_outside, marks_outside
from rookery.engine.workspace_records import held
from rookery.engine.workspace_removal import remove_worktree, why_kept
from rookery.engine.worktrees import Worktrees, open_project
from rookery.settings import Settings

__all__ = [
    "Marks",
    "Site",
    "Workspace",
    "after_run",
    "before_run",
    "changed_outside",
    "discard",
    "marks_outside",
    "prepare",
    "reading_copy",
    "remove",
    "site_of",
]
Row = sa.Row[Any]
T = TypeVar("T")


def site_of(project: ProjectSettings, settings: OrchestratorSettings, installed: Settings) -> Site:
    """Where the issues of a project are worked on. Refused if it has no folder, or one that is no repository."""
    if not project.path:
        raise ValidationFailed(f"the project {project.slug} has no folder", hint="give it the folder of a repository")
    repository = os.path.realpath(os.path.expanduser(project.path))
    opened = open_project(repository)
    chosen = os.path.expanduser(installed.worktree_base_dir)
    root = os.path.realpath(chosen) if chosen else os.path.join(os.path.dirname(repository), WORKTREES)
    if inside(root, repository) or inside(root, opened.common_dir):
        raise ValidationFailed(
            f"workspaces would be made in {root}, which is inside of the repository {repository}",
            hint="set worktree_base_dir to a folder of its own",
        )
    return Site(
        project_id=project.project_id,
        slug=project.slug,
        repository=repository,
        base_branch=project.base_branch,
        root=root,
        hooks=settings.hooks,
    )


async def prepare(site: Site, issue_id: str, identifier: str) -> Workspace:
    """The worktree of an issue on a branch of its own, with its marker. What was left there is there still.

    Refused: no repository, no base branch, the folder or the branch is in somebody else's use, `after_create` failed.
    A busy repository is worth another try.
    """
    repository = open_project(site.repository)
    async with held(repository, issue_id) as lock:
        making = Making(Worktrees(repository, (lock,)), site, issue_id, identifier)
        record = await _to_its_end(making.run)
        if not record.used:
            if problem := await run_hook(site, "after_create", record.path):
                raise ValidationFailed(problem, hint="mend the command or what it needs; it runs again then")
            await _to_its_end(lambda: making.hand_out(record))
        return Workspace(record.path, record.branch, record.base, not record.used)


async def reading_copy(site: Site, name: str, commit: str | None) -> str:
    """A folder with the files of a commit, or of the base branch, for one reader; made anew if it was there."""
    repository = open_project(site.repository)
    async with held(repository, name) as lock:
        return await _to_its_end(lambda: make_copy(Worktrees(repository, (lock,)), site, name, commit))


async def discard(site: Site, path: str) -> None:
    """Remove a copy for reading, with all that is in it. Nothing else can be removed so."""
    try:
        trees = Worktrees(open_project(site.repository))
    except ValidationFailed:
        trees = None
    await _to_its_end(lambda: throw_away(trees, site, path))


async def before_run(site: Site, path: str) -> None:
    """Run the owner's command before an agent starts. If it fails, there is no run."""
    if problem := await run_hook(site, "before_run", path):
        raise ValidationFailed(problem, hint="mend the command or what it needs")


async def after_run(site: Site, path: str) -> str | None:
    """Run the owner's command after an agent has ended; what went wrong, to be told."""
    return await run_hook(site, "after_run", path)


async def remove(site: Site, row: Row) -> str | None:
    """Remove the workspace of an issue that has ended. None: it is gone; else why it is kept.

    Nothing that is not on a branch or a tag is ever removed. The branch goes as well if the base branch has all of it.
    """
    try:
        repository = open_project(site.repository)
        async with held(repository, row.issue_id) as lock:
            trees = Worktrees(repository, (lock,))
            why = await _to_its_end(lambda: why_kept(trees, row))
            if why is None and os.path.lexists(row.path):
                # The command may leave something, too.
                why = await run_hook(site, "before_remove", row.path) or await _to_its_end(lambda: why_kept(trees, row))
            if why is None:
                await _to_its_end(lambda: remove_worktree(trees, site, row))
            return why
    except RookeryError as error:
        if error.retryable:
            raise
        return error.message


async def _to_its_end(work: Callable[[], T]) -> T:
    """Do it in a thread. Whoever is cancelled waits for its end, so that nothing goes on once the lock is given up."""
    doing = asyncio.ensure_future(asyncio.to_thread(work))
    try:
        return await asyncio.shield(doing)
    except asyncio.CancelledError:
        await asyncio.wait([doing])
        if not doing.cancelled():
            doing.exception()
        raise

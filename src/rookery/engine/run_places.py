"""The folder in which the agent of a dispatch works: made before its run, and left behind in order."""

import asyncio
import contextlib
import logging
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from rookery.core.errors import RookeryError
from rookery.db.tx import Tx
from rookery.domains.tracker.markdown_text import code, labelled
from rookery.domains.tracker.project_store import ProjectSettings
from rookery.domains.tracker.tables import prs
from rookery.engine.dispatches import Dispatches
from rookery.engine.project_settings import OrchestratorSettings
from rookery.engine.prompting import Place
from rookery.engine.workspace_store import WorkspaceRows
from rookery.engine.workspaces import (
    Marks,
    Site,
    Workspace,
    after_run,
    before_run,
    changed_outside,
    discard,
    marks_outside,
    prepare,
    reading_copy,
    site_of,
)
from rookery.jobs.running import Running

log = logging.getLogger("rookery.orchestrator")
Row = sa.Row[Any]
MOST_FILES = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class GivenPlace:
    """A place that is ready, and how the project's own checkout looked before anybody worked there."""

    site: Site
    place: Place
    before: Marks


class Places:
    """Makes the place of one dispatch. A worker has the issue's own worktree, everybody else a copy for reading."""

    def __init__(self, job: Running, row: Row, project: ProjectSettings, settings: OrchestratorSettings) -> None:
        self._job = job
        self._row = row
        self._project = project
        self._settings = settings

    async def prepare(self, issue: Row | None) -> GivenPlace:
        """Raises what keeps the place from being ready, in the words of git or of the owner's hook."""
        installed = self._job.platform.calls.facts["settings"]
        site = await asyncio.to_thread(site_of, self._project, self._settings, installed)
        place = await (self._copy(site) if issue is None or self._row.work != "phase" else self._workspace(site, issue))
        try:
            await before_run(site, place.path)
            before = await asyncio.to_thread(marks_outside, site)
        except BaseException:
            await asyncio.shield(self._discard(site, place))
            raise
        return GivenPlace(site=site, place=place, before=before)

    async def _workspace(self, site: Site, issue: Row) -> Place:
        made = await prepare(site, issue.id, issue.identifier)
        await self._job.write(lambda tx: self._keep(tx, site, issue, made))
        return Place(path=made.path, branch=made.branch)

    def _keep(self, tx: Tx, site: Site, issue: Row, made: Workspace) -> None:
        WorkspaceRows(tx, self._row.tenant).keep(issue, site, made)
        Dispatches(tx, self._row.tenant).note(self._row, workspace=made.path)

    async def _copy(self, site: Site) -> Place:
        path = await reading_copy(site, self._row.id, await self._job.read(self._commit))
        await self._job.write(lambda tx: Dispatches(tx, self._row.tenant).note(self._row, workspace=path))
        return Place(path=path)

    def _commit(self, tx: Tx) -> str | None:
        """What a reader looks at: the change to be merged, the branch that an artifact came from, the files to be
        scanned as they were chosen; None: the base branch."""
        if self._row.work == "scan":
            return self._row.payload.get("commit")
        if self._row.work == "judge_pr":
            pr = tx.one(sa.select(prs).where(prs.c.id == self._row.about))
            return None if pr is None else pr.head or pr.branch
        if self._row.work == "judge_phase":
            workspace = WorkspaceRows(tx, self._row.tenant).of(self._row.issue_id)
            return None if workspace is None or workspace.removed_ms is not None else workspace.branch
        return None

    async def leave(self, given: GivenPlace) -> list[str]:
        """Do what follows a run; a sentence for each thing that people have to know."""
        faults: list[str] = []
        try:
            fault = await after_run(given.site, given.place.path)
            faults += [f"The hook after the run failed: {fault}"] if fault else []
            changed = await asyncio.to_thread(changed_outside, given.site, given.before)
            faults += [_changed(changed)] if changed else []
        except (RookeryError, OSError) as error:
            log.warning("after the run of %s: %s", self._row.id, error)
        await self._discard(given.site, given.place)
        return faults

    async def _discard(self, site: Site, place: Place) -> None:
        """A copy that cannot be removed is found by whoever cleans up."""
        if place.branch is None:
            with contextlib.suppress(RookeryError, OSError):
                await discard(site, place.path)


def _changed(files: list[str]) -> str:
    more = len(files) - MOST_FILES
    shown = [*map(code, files[:MOST_FILES]), *([f"and {more} more"] if more > 0 else [])]
    return labelled(
        "While an agent worked on this, files changed in the project's own checkout. Agents write only in their "
        "worktree; if nobody else did this, look at what it was:",
        shown,
    )

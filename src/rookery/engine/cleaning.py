"""Removes the workspaces of issues that have ended. One that holds work which is nowhere else is kept, and told."""

from typing import Any

import sqlalchemy as sa

from rookery.core.errors import RookeryError
from rookery.db.tx import Tx
from rookery.domains.tracker.advance import orchestrator
from rookery.domains.tracker.project_store import Projects, ProjectSettings
from rookery.engine.assigning import tell
from rookery.engine.project_settings import OrchestratorProjects, OrchestratorSettings
from rookery.engine.workspace_store import WorkspaceRows, over
from rookery.engine.workspaces import remove, site_of
from rookery.jobs.kinds import Ended, Finish, JobArgs, job
from rookery.jobs.running import Running
from rookery.jobs.store import Jobs

Row = sa.Row[Any]
AT_ONCE = 200
FIRST_LOOK_MS = 3_600_000
LAST_LOOK_MS = 86_400_000


class CleanArgs(JobArgs):
    issue_id: str
    look: int = 1


@job("orchestrator.clean", queue="runs", attempts=3, backoff_s=30.0)
async def clean(running: Running, args: CleanArgs) -> Finish:
    """Remove a workspace, or say why not and look again later."""
    found = await running.read(lambda tx: _task(tx, running.tenant, args.issue_id))
    if found is None:
        return None
    row, project, settings = found
    try:
        site = site_of(project, settings, running.platform.calls.facts["settings"])
        why = await remove(site, row)
    except RookeryError as error:
        if error.retryable:
            raise
        why = error.message
    if why is None:
        return lambda tx: WorkspaceRows(tx, running.tenant).removed(row)
    return lambda tx: _keep(tx, row, why, args.look)


@clean.ended
def _given_up(tx: Tx, end: Ended) -> None:
    row = WorkspaceRows(tx, end.tenant).of(end.args.issue_id)
    if row is not None and row.removed_ms is None:
        _keep(tx, row, end.error, end.args.look)


def clean_later(tx: Tx) -> None:
    """Have the workspaces of all issues that have ended removed, of every tenant. Each is looked at once so."""
    for row in tx.all(over().limit(AT_ONCE)):
        _look(tx, row, 1)


def _look(tx: Tx, row: Row, look: int, delay_ms: int = 0) -> None:
    args = CleanArgs(issue_id=row.issue_id, look=look)
    Jobs(tx, row.tenant).defer(clean, args, key=f"clean:{row.issue_id}:{look}", delay_ms=delay_ms)


def _keep(tx: Tx, row: Row, why: str, look: int) -> None:
    if WorkspaceRows(tx, row.tenant).kept(row, why):
        tell(tx, row, f"The workspace {row.path} is kept: {why}. It is removed once nothing in it would be lost.")
    _look(tx, row, look + 1, min(FIRST_LOOK_MS * 2 ** min(look - 1, 10), LAST_LOOK_MS))


def _task(tx: Tx, tenant: str, issue_id: str) -> tuple[Row, ProjectSettings, OrchestratorSettings] | None:
    """The workspace, and what is set for its project; None if it is gone or its issue has not ended."""
    row = WorkspaceRows(tx, tenant).over_of(issue_id)
    if row is None:
        return None
    project = Projects(tx, orchestrator(tenant, row.project_id, row.project_id)).settings()
    _, settings = OrchestratorProjects(tx, tenant).of(row.project_id)
    # The project may have another folder by now.
    return row, project.model_copy(update={"path": row.repository}), settings

"""Which dispatches nobody wants any more, and which have lost their worker. The decision is pure."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import sqlalchemy as sa

from rookery.db.clock import DbNow
from rookery.db.tx import Tx
from rookery.domains.tracker.tables import finding_processing, prs
from rookery.engine.tables import ALIVE, RUNNING, dispatches
from rookery.jobs.tables import OVER, jobs
from rookery.lifecycle.issue_tables import issues
from rookery.lifecycle.states import FINISHED

GRACE_MS = 60_000
"""So long an agent whose work is done may say its last words."""
Row = sa.Row[Any]
_d, _i = dispatches.c, issues.c
_LIVE = (
    sa.select(
        dispatches,
        _i.status.label("issue_status"),
        _i.phase.label("issue_phase"),
        _i.project_id.label("issue_project"),
        _i.fence.label("issue_fence"),
        (DbNow() - _i.updated_ms).label("issue_age_ms"),
        finding_processing.c.processed_ms.is_not(None).label("judged"),
        prs.c.status.label("pr_status"),
        jobs.c.state.label("job_state"),
    )
    .outerjoin(issues, sa.and_(_i.tenant == _d.tenant, _i.id == _d.issue_id))
    .outerjoin(finding_processing, finding_processing.c.finding_id == _d.about)
    .outerjoin(prs, prs.c.id == _d.about)
    .outerjoin(jobs, jobs.c.id == _d.job_id)
    .where(ALIVE)
    .order_by(_d.created_ms, _d.id)
)


@dataclass(frozen=True, slots=True)
class Correction:
    """What is to be done about a dispatch: `stop` it, or take note that it is `lost`."""

    dispatch: Row
    what: Literal["stop", "lost"]
    why: str

    @property
    def tenant(self) -> str:
        return self.dispatch.tenant


def read_live(tx: Tx) -> Sequence[Row]:
    """Every dispatch that lives, of all tenants, with what became of its issue and of what it is about."""
    return tx.all(_LIVE)


def corrections(live: Sequence[Row]) -> list[Correction]:
    """What has to be done so that only what is wanted goes on."""
    found: list[Correction] = []
    for row in live:
        if row.job_state is None or row.job_state in OVER:
            found.append(Correction(row, "lost", "its job ended without ending it"))
        elif row.stop is None and (why := unwanted(row)) is not None:
            found.append(Correction(row, "stop", why))
    return found


def unwanted(row: Row) -> str | None:
    """Why nobody wants the dispatch any more; None if it is wanted."""
    if row.issue_id is None:
        return None
    if row.issue_status is None:
        return "the issue is gone"
    if row.issue_status in FINISHED:
        return f"the issue is {row.issue_status}"
    if row.issue_project != row.project_id:
        return "the issue was moved to another project"
    if row.state == RUNNING and row.issue_age_ms < GRACE_MS:
        return None
    return _overtaken(row)


def _overtaken(row: Row) -> str | None:
    if row.work == "phase":
        if row.issue_phase != row.phase:
            return f"the issue is in {row.issue_phase} by now"
        if row.state == RUNNING and row.fence is not None and row.fence != row.issue_fence:
            return "another has claimed the issue since"
        if row.state == RUNNING and row.issue_status in ("todo", "blocked"):
            return f"the issue was taken back and is {row.issue_status}"
    if row.work == "judge_phase" and row.judged:
        return "what was to be judged is decided"
    if row.work == "judge_pr" and row.pr_status != "open":
        return f"the pull request is {row.pr_status or 'gone'}"
    return None

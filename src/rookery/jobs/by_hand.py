"""What a person may do to a job: give it up, or let one that failed be tried again."""

from collections.abc import Mapping

import sqlalchemy as sa

from rookery.core.errors import Conflict, NotFound
from rookery.db.clock import DbNow
from rookery.db.tx import Tx
from rookery.jobs.attempt import given_up
from rookery.jobs.kinds import Kind
from rookery.jobs.store import WAKE, Jobs, Row
from rookery.jobs.tables import OVER, jobs

REASON = "cancelled by hand"
_RETRY = (
    sa.update(jobs)
    .where(jobs.c.tenant == sa.bindparam("of_tenant"), jobs.c.id == sa.bindparam("job_id"), jobs.c.state == "failed")
    .values(state="waiting", due_ms=DbNow(), failures=0, losses=0, cancel=False, ended_ms=None, error=None)
    .returning(jobs.c.id)
)


def find(tx: Tx, tenant: str, job_id: int) -> Row:
    """The job, or NotFound, also if it is another tenant's."""
    found = Jobs(tx, tenant).of(job_id)
    if found is None:
        raise NotFound(f"there is no job {job_id}", hint="rookery jobs list shows them; old ones are removed")
    return found


def cancel(tx: Tx, tenant: str, kinds: Mapping[str, Kind], job_id: int) -> Row:
    """Give a job up. One that waits is cancelled and its kind told, one that runs is told to stop.

    Conflict if it is over, or if its kind is not known here: then nobody could say what has to follow.
    """
    row = find(tx, tenant, job_id)
    kind = _known(kinds, row)
    if not Jobs(tx, tenant).cancel(job_id, REASON):
        raise Conflict(f"job {job_id} is {row.state} already", hint="only what waits or runs can be cancelled")
    after = find(tx, tenant, job_id)
    if after.state == "cancelled" and kind.on_ended is not None:
        kind.on_ended(tx, given_up(kind, after, "cancelled", REASON))
    return after


def retry(tx: Tx, tenant: str, kinds: Mapping[str, Kind], job_id: int) -> Row:
    """Let a job that failed wait for a worker again, with all its attempts.

    Conflict if it has not failed, and for kinds that are told of failures: whatever they did about it stands.
    """
    row = find(tx, tenant, job_id)
    kind = _known(kinds, row)
    if row.state != "failed":
        also = "" if row.state in OVER else " and will be tried anyway"
        raise Conflict(f"job {job_id} has not failed: it is {row.state}{also}", hint="only a failed job can be retried")
    if kind.on_ended is not None:
        raise Conflict(
            f"what follows from the failure of job {job_id} ({row.kind}) has been done already",
            hint="start it again where it came from, such as the schedule, the workflow or the work task",
        )
    if tx.one(_RETRY, {"of_tenant": tenant, "job_id": job_id}) is None:
        raise Conflict(f"job {job_id} was changed by somebody else meanwhile", hint="look at it again")
    tx.wake(WAKE)
    return find(tx, tenant, job_id)


def _known(kinds: Mapping[str, Kind], row: Row) -> Kind:
    kind = kinds.get(row.kind)
    if kind is None:
        raise Conflict(
            f"jobs of kind {row.kind} are not known here", hint="use the version and the plugins of the server"
        )
    return kind

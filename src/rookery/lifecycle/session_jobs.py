"""The job that looks for runs whose worker has died, where no other session begins that would find them."""

import sqlalchemy as sa

from rookery.db.tx import Tx
from rookery.jobs.kinds import Ended, Finish, JobArgs, job
from rookery.jobs.running import Running
from rookery.lifecycle.run_tables import agent_runs
from rookery.lifecycle.session_store import END_LOST, SessionRuns, look_for_lost

_LEFT = (
    sa.select(agent_runs.c.id)
    .where(
        agent_runs.c.tenant == sa.bindparam("of_tenant"),
        agent_runs.c.status == "running",
        agent_runs.c.job_id.is_not(None),
    )
    .limit(1)
)


class EndLostArgs(JobArgs):
    """All that is lost, of the job's tenant."""


@job(END_LOST, attempts=10)
async def end_lost_runs(job: Running, args: EndLostArgs) -> Finish:
    """End what is lost now, and look again within the hour while anything goes on."""

    def finish(tx: Tx) -> None:
        SessionRuns(tx, job.tenant).end_lost()
        if tx.one(_LEFT, {"of_tenant": job.tenant}) is not None:
            look_for_lost(tx, job.tenant)

    return finish


def end_lost(tx: Tx, end: Ended) -> None:
    """For the `ended` of a kind whose jobs start sessions: what the job leaves behind costs nobody anything."""
    SessionRuns(tx, end.tenant).end_lost()

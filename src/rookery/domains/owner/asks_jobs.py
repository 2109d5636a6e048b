"""The job behind asks: it ends those that nobody has answered in time."""

from rookery.asks.store import EXPIRE, QUEUE, Asks
from rookery.db.tx import Tx
from rookery.jobs.kinds import Finish, JobArgs, job
from rookery.jobs.running import Running


class ExpireArgs(JobArgs):
    """Nothing: whatever is over is ended."""


@job(EXPIRE, queue=QUEUE, attempts=5)
async def expire_asks(job: Running, args: ExpireArgs) -> Finish:
    """End the tenant's asks that are over, and tell the other domains."""

    def finish(tx: Tx) -> None:
        # The database may run this again after a rolled-back batch.
        job.events.clear()
        for row in Asks(tx, job.tenant).expire():
            job.publish("AskExpired", subject=row.id, kind=row.kind, agent=row.agent_id)

    return finish

"""The job behind asks: it ends those that nobody has answered in time, and forgets those that are long over."""

from rookery.asks.store import ATTEMPTS, EXPIRE, QUEUE, Asks
from rookery.db.tx import Tx
from rookery.jobs.kinds import Finish, JobArgs, job
from rookery.jobs.running import Running


class ExpireArgs(JobArgs):
    """Nothing: whatever is over is ended."""


@job(EXPIRE, queue=QUEUE, attempts=ATTEMPTS)
async def expire_asks(job: Running, args: ExpireArgs) -> Finish:
    """End the tenant's asks that are over, and tell the other domains."""
    keep_days = job.platform.calls.facts["settings"].asks_keep_days
    while await job.write(lambda tx: Asks(tx, job.tenant).forget(keep_days)):
        # A few at a time, so that nobody has to wait for long.
        pass

    def finish(tx: Tx) -> None:
        # The database may run this again after a rolled-back batch.
        job.events.clear()
        for row in Asks(tx, job.tenant).expire():
            job.publish("AskExpired", subject=row.id, kind=row.kind, agent=row.agent_id)

    return finish

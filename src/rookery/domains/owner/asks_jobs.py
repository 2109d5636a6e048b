"""The jobs behind asks: one ends those that nobody has answered in time, the other tells which were taken back."""

from rookery.asks.store import ATTEMPTS, EXPIRE, QUEUE, TELL_WITHDRAWN, Asks
from rookery.asks.tables import WITHDRAWN
from rookery.db.tx import Tx
from rookery.domains.owner.asks_shown import EVENTS
from rookery.jobs.kinds import Finish, JobArgs, job
from rookery.jobs.running import Running


class ExpireArgs(JobArgs):
    """Nothing: whatever is over is ended."""


class WithdrawnArgs(JobArgs):
    ask_id: str


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


@job(TELL_WITHDRAWN, queue=QUEUE, attempts=ATTEMPTS)
async def tell_withdrawn(job: Running, args: WithdrawnArgs) -> Finish:
    """Tell the other domains that an ask was taken back, by somebody who had only a transaction at hand."""
    row = await job.read(lambda tx: Asks(tx, job.tenant).find(args.ask_id))
    if row is not None and row.status == WITHDRAWN:
        job.publish(EVENTS[WITHDRAWN], subject=row.id, kind=row.kind, agent=row.agent_id, session=row.session)
    return None

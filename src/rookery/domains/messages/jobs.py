"""The job behind a message that somebody has to answer."""

from rookery.db.clock import now_ms
from rookery.db.tx import Tx
from rookery.domains.messages.delivering import Answered, Delivery, Undelivered, message_key
from rookery.domains.messages.limits import Limits, limits_of, note_failure, note_success
from rookery.domains.messages.store import Messages, Row
from rookery.jobs.kinds import Ended, Finish, JobArgs, job
from rookery.jobs.running import Running
from rookery.jobs.store import Jobs


class DeliverArgs(JobArgs):
    """Which message, and the limits of whoever sent it, for the case that nobody gets to deliver it."""

    message_id: str
    failures: int = 5
    reset_ms: int = 30_000
    successes: int = 2


@job("messages.deliver", attempts=3, backoff_s=2.0, lasting=True)
async def deliver(job: Running, args: DeliverArgs) -> Finish:
    """Have the message answered. The answer is kept in the transaction that ends the job, so there is one."""
    message = await job.write(lambda tx: Messages(tx, job.tenant).begin(args.message_id))
    if message is None:
        return None
    limits = limits_of(job.platform.calls.facts["settings"])
    try:
        answered = await Delivery(job, message).run()
    except Undelivered as failure:
        ended = failure
        return lambda tx: _fail(tx, message, ended, limits)
    if answered is None:
        return lambda tx: Messages(tx, job.tenant).to_inbox(message.id)
    job.publish("MessageAnswered", subject=message.id, sender=message.from_id, receiver=message.to_id)
    return lambda tx: _answer(tx, message, answered, limits)


def _answer(tx: Tx, message: Row, answered: Answered, limits: Limits) -> None:
    done = Messages(tx, message.tenant).answer(message, answered.text, cost_micros=answered.cost_micros)
    if done is not None and answered.by_session:
        note_success(tx, message.tenant, message.to_id, limits)


def _fail(tx: Tx, message: Row, failure: Undelivered, limits: Limits) -> None:
    done = Messages(tx, message.tenant).fail(message, failure.code, str(failure), cost_micros=failure.cost_micros)
    if done is not None and failure.blames:
        note_failure(tx, message.tenant, message.to_id, now_ms(tx), limits)


@deliver.ended
def _given_up(tx: Tx, end: Ended) -> None:
    message = Messages(tx, end.tenant).find(end.args.message_id)
    if message is not None:
        limits = Limits(0, end.args.failures, end.args.reset_ms, end.args.successes)
        _fail(tx, message, Undelivered("DELIVERY_FAILED", end.error, blames=end.state == "failed"), limits)


def defer_delivery(tx: Tx, message: Row, limits: Limits) -> None:
    """Let a worker deliver the message."""
    args = DeliverArgs(
        message_id=message.id, failures=limits.failures, reset_ms=limits.reset_ms, successes=limits.successes
    )
    Jobs(tx, message.tenant).defer(deliver, args, key=message_key(message.id))

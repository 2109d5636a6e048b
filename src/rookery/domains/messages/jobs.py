"""The job behind a message that somebody has to answer."""

import logging

from sqlalchemy.exc import DataError

from rookery.db.clock import now_ms
from rookery.db.tx import Tx
from rookery.domains.messages.delivering import Answered, Delivery, Undelivered, message_key
from rookery.domains.messages.limits import Limits, limits_of, note_failure, note_success
from rookery.domains.messages.store import Messages, Row
from rookery.jobs.kinds import Ended, Finish, JobArgs, job
from rookery.jobs.running import Running
from rookery.jobs.store import Jobs
from rookery.lifecycle.session_jobs import end_lost, end_lost_runs

log = logging.getLogger("rookery.messages")


class DeliverArgs(JobArgs):
    """Which message, and the limits of whoever sent it, for the case that nobody gets to deliver it."""

    message_id: str
    failures: int = 5
    reset_ms: int = 30_000
    successes: int = 2


async def _deliver(job: Running, args: DeliverArgs) -> Finish:
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


# A session that waits for the answer of another keeps its place meanwhile. So each step of a chain is a kind of its
# own, with places that those before it cannot take.
deliver = job("messages.deliver", attempts=3, backoff_s=2.0, lasting=True)(_deliver)
deliver_second = job("messages.deliver_second", attempts=3, backoff_s=2.0, lasting=True, step=1)(_deliver)
deliver_third = job("messages.deliver_third", attempts=3, backoff_s=2.0, lasting=True, step=2)(_deliver)
# A kind of all who start sessions; one of the domains has to bring it along.
lost_sessions = end_lost_runs
_STEPS = {2: deliver_second, 3: deliver_third}


def _answer(tx: Tx, message: Row, answered: Answered, limits: Limits) -> None:
    try:
        with tx.savepoint():
            done = Messages(tx, message.tenant).answer(message, answered.text, cost_micros=answered.cost_micros)
    except DataError:
        log.exception("the answer to message %s cannot be kept", message.id)
        lost = Undelivered("RESPONSE_SEND_FAILED", "the answer could not be kept", cost_micros=answered.cost_micros)
        _fail(tx, message, lost, limits)
        return
    if done is not None and answered.by_session:
        note_success(tx, message.tenant, message.to_id, limits)


def _fail(tx: Tx, message: Row, failure: Undelivered, limits: Limits) -> None:
    done = Messages(tx, message.tenant).fail(message, failure.code, str(failure), cost_micros=failure.cost_micros)
    if done is not None and failure.blames:
        note_failure(tx, message.tenant, message.to_id, now_ms(tx), limits)


def _given_up(tx: Tx, end: Ended) -> None:
    end_lost(tx, end)
    message = Messages(tx, end.tenant).find(end.args.message_id)
    if message is not None:
        limits = Limits(0, end.args.failures, end.args.reset_ms, end.args.successes)
        # The error itself stays with the job: it may name whatever the receiver can see.
        cancelled = end.state == "cancelled"
        why = "was cancelled" if cancelled else f"came to nothing; the job {end.job_id} has more"
        told = f"the delivery {why}"
        _fail(tx, message, Undelivered("DELIVERY_FAILED", told, blames=not cancelled), limits)


for _kind in (deliver, deliver_second, deliver_third):
    _kind.ended(_given_up)


def defer_delivery(tx: Tx, message: Row, limits: Limits) -> None:
    """Let a worker deliver the message."""
    args = DeliverArgs(
        message_id=message.id, failures=limits.failures, reset_ms=limits.reset_ms, successes=limits.successes
    )
    kind = _STEPS.get(message.held.get("depth", 1), deliver)
    Jobs(tx, message.tenant).defer(kind, args, key=message_key(message.id))

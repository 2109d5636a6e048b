"""The jobs behind deliveries: one tells one thing by one channel, the other has an ask told by every channel."""

import logging

from rookery.asks.tables import asks
from rookery.core.call import Calls
from rookery.core.errors import RookeryError
from rookery.db.tx import Tx
from rookery.domains.owner.channels import send_by
from rookery.domains.owner.delivery_store import About, Deliveries
from rookery.domains.owner.notify_forgetting import defer_forgetting
from rookery.domains.owner.notify_tables import SHARED
from rookery.domains.owner.outside_links import link_base
from rookery.domains.owner.outside_store import listen_to
from rookery.jobs.kinds import Ended, Finish, JobArgs, job
from rookery.jobs.running import Running
from rookery.jobs.store import Jobs
from rookery.outgoing.client import GuardedClient, guarded_client

log = logging.getLogger("rookery.owner")
QUEUE = "owner"
FREE = ("question", "elicitation")
"""Kinds of asks that give no right to anybody, whatever the answer is."""


class DeliverArgs(JobArgs):
    delivery_id: str


class DeliverAskArgs(JobArgs):
    ask_id: str


@job("owner.deliver", queue=QUEUE, attempts=3, backoff_s=5.0, timeout_s=60.0)
async def deliver(job: Running, args: DeliverArgs) -> Finish:
    """Send one delivery. What a second try cannot mend ends it; everything else is tried again."""
    facts = job.platform.calls.facts
    base = link_base(facts["settings"])
    parcel = await job.write(lambda tx: Deliveries(tx, job.tenant).begin(args.delivery_id, facts.get("keyring"), base))
    if parcel is None:
        return None
    try:
        client = outgoing(job.platform.calls, shared=parcel.shared)
        ref = await send_by(client, parcel.channel_type, parcel.config, parcel.notice, shared=parcel.shared)
    except RookeryError as error:
        said = f"{error.message}; {error.hint}" if error.hint else error.message
        if not error.retryable:
            log.warning("a delivery by %s was refused: %s", parcel.channel_type, error.message)
            return lambda tx: Deliveries(tx, job.tenant).fail(args.delivery_id, said)
        await job.write(lambda tx: Deliveries(tx, job.tenant).trouble(args.delivery_id, said))
        raise

    def finish(tx: Tx) -> None:
        Deliveries(tx, job.tenant).sent(args.delivery_id, ref)
        if parcel.notice.answerable:
            listen_to(tx, job.tenant, parcel.channel_id)

    return finish


@deliver.ended
def _given_up(tx: Tx, end: Ended) -> None:
    Deliveries(tx, end.tenant).fail(end.args.delivery_id, end.error)


@job("owner.deliver_ask", queue=QUEUE, attempts=5, backoff_s=2.0)
async def deliver_ask(job: Running, args: DeliverAskArgs) -> Finish:
    """Have an ask told by every channel that is on, by each of them once."""
    return lambda tx: plan_ask(tx, job.tenant, args.ask_id)


def plan_ask(tx: Tx, tenant: str, ask_id: str) -> None:
    """Defer a delivery of the ask for each channel; nothing if there is no such ask."""
    found = tx.one(asks.select().where(asks.c.tenant == tenant, asks.c.id == ask_id))
    if found is not None:
        # Where rights depend on the answer, only the owner's own channels hear of the question.
        defer_deliveries(tx, tenant, "ask", ask_id, found.agent_id, people_only=found.kind not in FREE)


def defer_deliveries(
    tx: Tx, tenant: str, about: About, about_id: str, agent_id: str, *, people_only: bool = False
) -> int:
    """Let workers tell something by every channel that reaches the owner for this agent; how many there are.

    With `people_only`, by the channels that people set up. An agent's own channels are told one after the other, and
    each of those of people one thing of an agent at a time: slow ones hold up nobody else's.
    """
    planned = Deliveries(tx, tenant).plan(about, about_id, SHARED if people_only else agent_id)
    for delivery_id, channel_id, shared in planned:
        args, key = DeliverArgs(delivery_id=delivery_id), f"deliver:{delivery_id}"
        lock = f"deliver:{about}:{agent_id}:{channel_id if shared else ''}"
        Jobs(tx, tenant).defer(deliver, args, key=key, lock=lock)
    defer_forgetting(tx, tenant)
    return len(planned)


def outgoing(calls: Calls, *, shared: bool) -> GuardedClient:
    """The way out of this installation: what the owner allowed beyond the internet is for channels of people only."""
    client = calls.facts.get("outgoing") or guarded_client(calls.facts["settings"])
    return client if shared else client.for_agents()

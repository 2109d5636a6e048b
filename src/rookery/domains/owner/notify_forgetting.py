"""Forgets what the owner was told long ago: notifications, deliveries, links, and who was limited by what."""

from typing import Any

import sqlalchemy as sa

from rookery.asks.tables import OPEN, asks
from rookery.db.clock import now_ms
from rookery.db.tx import Tx
from rookery.domains.owner.notify_tables import notification_channels as channels
from rookery.domains.owner.notify_tables import notification_deliveries as deliveries
from rookery.domains.owner.notify_tables import owner_notifications as notifications
from rookery.domains.owner.outside_tables import ask_links as links
from rookery.domains.owner.outside_tables import channel_listeners as listeners
from rookery.domains.owner.outside_tables import notification_senders as senders
from rookery.jobs.kinds import Finish, JobArgs, job
from rookery.jobs.running import Running
from rookery.jobs.store import Jobs

FORGET = "owner.forget"
QUEUE = "owner"
DAY_MS = 86_400_000
BATCH = 500


def _old(key: sa.Column[Any], age: sa.Column[Any], *more: sa.ColumnElement[bool]) -> sa.Delete:
    """Some rows of a tenant that are older than wanted."""
    mine = (key.table.c.tenant == sa.bindparam("of_tenant"), age < sa.bindparam("before_ms"), *more)
    chosen = sa.select(key).where(*mine).limit(sa.bindparam("room"))
    return sa.delete(key.table).where(key.table.c.tenant == sa.bindparam("of_tenant"), key.in_(chosen))


def _is_open(about: sa.Column[Any]) -> sa.ColumnElement[bool]:
    return sa.exists().where(asks.c.id == about, asks.c.status == OPEN)


# An ask that is still open needs its deliveries, since answers name them, and its links.
_FORGET = (
    _old(notifications.c.id, notifications.c.created_ms),
    _old(deliveries.c.id, deliveries.c.created_ms, ~_is_open(deliveries.c.about_id)),
    _old(links.c.digest, links.c.created_ms, ~_is_open(links.c.ask_id)),
    _old(senders.c.agent_id, senders.c.told_ms),
)
_DEAF = sa.delete(listeners).where(
    listeners.c.tenant == sa.bindparam("of_tenant"), ~sa.exists().where(channels.c.id == listeners.c.channel_id)
)
_LEFT = [
    sa.select(sa.literal(1)).where(table.c.tenant == sa.bindparam("of_tenant")).limit(1)
    for table in (notifications, deliveries, links, senders)
]


class ForgetArgs(JobArgs):
    """Nothing: whatever is old is forgotten."""


def defer_forgetting(tx: Tx, tenant: str) -> None:
    """Let a worker look tomorrow for what is too old by then."""
    day = now_ms(tx) // DAY_MS + 1
    Jobs(tx, tenant).defer(forget_notifications, ForgetArgs(), at_ms=day * DAY_MS, key=f"owner-forget:{day}")


@job(FORGET, queue=QUEUE, attempts=5, backoff_s=60.0)
async def forget_notifications(job: Running, args: ForgetArgs) -> Finish:
    """Forget what is older than the setting says, a little at a time; then again tomorrow, while there is anything."""
    keep_ms = job.platform.calls.facts["settings"].notification_keep_days * DAY_MS
    while await job.write(lambda tx: forget_some(tx, job.tenant, keep_ms)):
        pass

    def finish(tx: Tx) -> None:
        tx.connection.execute(_DEAF, {"of_tenant": job.tenant})
        if any(tx.one(left, {"of_tenant": job.tenant}) is not None for left in _LEFT):
            defer_forgetting(tx, job.tenant)

    return finish


def forget_some(tx: Tx, tenant: str, keep_ms: int) -> bool:
    """Forget up to some hundred old rows of each kind; whether there may be more."""
    old = {"of_tenant": tenant, "before_ms": now_ms(tx) - keep_ms, "room": BATCH}
    return max(tx.connection.execute(statement, old).rowcount for statement in _FORGET) >= BATCH

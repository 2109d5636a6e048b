"""What is forgotten of messages, a little with each that is sent: so no table grows for ever."""

import sqlalchemy as sa

from rookery.db.tx import Tx
from rookery.domains.messages.tables import messages, senders

DAY_MS = 86_400_000
TOLD_MS = DAY_MS
"""For so long an answer stays in the inbox of a sender that was told: its client may have died before it heard."""
AT_ONCE = 20
KEPT_REFUSED = 100

_MINE = messages.c.tenant == sa.bindparam("of_tenant")
_OLD = (
    _MINE,
    messages.c.created_ms < sa.bindparam("before_ms"),
    sa.func.coalesce(messages.c.arrived_ms, messages.c.created_ms) < sa.bindparam("before_ms"),
    messages.c.status.not_in(("pending", "processing")),
)
# What another sender is just forgetting is left to it: nobody waits for old mail to be burnt.
_FORGET = sa.delete(messages).where(
    messages.c.id.in_(
        sa.select(messages.c.id)
        .where(*_OLD)
        .order_by(messages.c.created_ms)
        .limit(AT_ONCE)
        .with_for_update(skip_locked=True)
    )
)
_GONE = (senders.c.tenant == sa.bindparam("of_tenant"), senders.c.touched_ms < sa.bindparam("before_ms"))
_FORGET_SENDERS = sa.delete(senders).where(
    *_GONE,
    senders.c.sender.in_(sa.select(senders.c.sender).where(*_GONE).limit(AT_ONCE).with_for_update(skip_locked=True)),
)
_REFUSED = (_MINE, messages.c.from_id == sa.bindparam("of_sender"), messages.c.accepted_ms.is_(None))
_FORGET_REFUSED = sa.delete(messages).where(
    *_REFUSED,
    messages.c.id.in_(
        sa.select(messages.c.id)
        .where(*_REFUSED)
        .order_by(messages.c.created_ms.desc(), messages.c.id.desc())
        .offset(KEPT_REFUSED)
        .limit(KEPT_REFUSED)
    ),
)
_TAKE_OUT = (
    sa.update(messages)
    .where(
        _MINE,
        messages.c.mailbox == sa.bindparam("of_sender"),
        messages.c.from_id == sa.bindparam("of_sender"),
        messages.c.told_ms <= sa.bindparam("until_ms"),
    )
    .values(mailbox=None)
)


def forget(tx: Tx, tenant: str, sender: str, at_ms: int, keep_days: int) -> None:
    """Forget some of what is older than `keep_days`, and clear the sender's inbox of answers told long ago."""
    before = {"of_tenant": tenant, "before_ms": at_ms - keep_days * DAY_MS}
    tx.run(_FORGET, [before])
    tx.run(_FORGET_SENDERS, [before])
    tx.run(_TAKE_OUT, [{"of_tenant": tenant, "of_sender": sender, "until_ms": at_ms - TOLD_MS}])


def forget_refused(tx: Tx, tenant: str, sender: str) -> None:
    """Keep only the newest messages of a sender that were refused."""
    tx.run(_FORGET_REFUSED, [{"of_tenant": tenant, "of_sender": sender}])

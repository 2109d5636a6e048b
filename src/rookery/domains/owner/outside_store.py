"""Keeps who listens to which channel, and how far what was said there has been read."""

from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql, sqlite

from rookery.asks.tables import OPEN, asks
from rookery.db.clock import DbNow
from rookery.db.tx import Tx
from rookery.domains.owner.notify_tables import notification_deliveries as deliveries
from rookery.domains.owner.outside_tables import channel_listeners as listeners
from rookery.jobs.store import Jobs

LISTEN = "owner.listen"
QUEUE = "owner"
ATTEMPTS, BACKOFF_S = 3, 10.0
Row = sa.Row[Any]
_MINE = (listeners.c.tenant == sa.bindparam("of_tenant"), listeners.c.channel_id == sa.bindparam("of_channel"))


def _turn(dialect: Any) -> Any:
    """The number of the turn, and the row held until the end of the transaction."""
    made = dialect.insert(listeners).values(
        channel_id=sa.bindparam("of_channel"), tenant=sa.bindparam("of_tenant"), turn=1
    )
    kept = made.on_conflict_do_update(index_elements=["channel_id"], set_={"turn": listeners.c.turn})
    return kept.returning(listeners.c.turn)


_TURN = {"sqlite": _turn(sqlite), "postgresql": _turn(postgresql)}
_NEXT = sa.update(listeners).where(*_MINE).values(turn=listeners.c.turn + 1).returning(listeners.c.turn)
_OF = sa.select(listeners).where(*_MINE)
_READ = (
    sa.update(listeners)
    .where(*_MINE)
    .values(source=sa.bindparam("to_source"), cursor=sa.bindparam("to_cursor"), heard_ms=DbNow())
)
_SENT = (
    deliveries.c.tenant == sa.bindparam("of_tenant"),
    deliveries.c.channel_id == sa.bindparam("of_channel"),
    deliveries.c.about == "ask",
)
_AWAITED = (
    sa.select(asks.c.id)
    .join(deliveries, sa.and_(deliveries.c.about_id == asks.c.id, deliveries.c.tenant == asks.c.tenant))
    .where(*_SENT, deliveries.c.status == "sent", asks.c.status == OPEN, asks.c.expires_ms > DbNow())
    .limit(1)
)
_BY_REF = sa.select(deliveries.c.about_id).where(*_SENT, deliveries.c.external_ref == sa.bindparam("of_ref")).limit(1)


def listen_to(tx: Tx, tenant: str, channel_id: str, *, delay_ms: int = 0) -> None:
    """Have somebody listen to a channel, unless somebody does or will. Until nothing is awaited there any more."""
    turn = tx.scalar(_TURN[tx.dialect], {"of_tenant": tenant, "of_channel": channel_id})
    how: dict[str, Any] = {"queue": QUEUE, "attempts": ATTEMPTS, "backoff_s": BACKOFF_S, "delay_ms": delay_ms}
    # By name: the kind stands above this.
    Jobs(tx, tenant).defer(LISTEN, {"channel_id": channel_id}, key=f"listen:{channel_id}:{turn}", **how)


class Listening:
    """How far one channel of a tenant has been read."""

    def __init__(self, tx: Tx, tenant: str, channel_id: str) -> None:
        self.tx = tx
        self.tenant = tenant
        self.channel_id = channel_id
        self._mine = {"of_tenant": tenant, "of_channel": channel_id}

    def row(self) -> Row | None:
        """The turn, and how far which source was read."""
        return self.tx.one(_OF, self._mine)

    def read_to(self, source: str, cursor: str) -> None:
        """Note that a source was read so far."""
        self.tx.connection.execute(_READ, {**self._mine, "to_source": source, "to_cursor": cursor})

    def awaited(self) -> bool:
        """Whether an ask that went by this channel is still open."""
        return self.tx.one(_AWAITED, self._mine) is not None

    def ask_of(self, ref: str) -> str | None:
        """The ask that the other side calls `ref`."""
        return self.tx.scalar(_BY_REF, {**self._mine, "of_ref": ref})

    def over(self, *, follows: bool, delay_ms: int = 0) -> None:
        """End the turn. The next one `follows` if an answer is awaited by now."""
        if self.tx.one(_NEXT, self._mine) is not None and follows and self.awaited():
            listen_to(self.tx, self.tenant, self.channel_id, delay_ms=delay_ms)

"""Keeps what the owner was told, whether or not any channel ever took it."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql, sqlite

from rookery.core.errors import RateLimited
from rookery.core.ids import new_id
from rookery.db.clock import DbNow, now_ms
from rookery.db.tx import Tx
from rookery.domains.owner.notify_tables import notification_deliveries as deliveries
from rookery.domains.owner.notify_tables import owner_notifications as notifications
from rookery.domains.owner.outside_tables import notification_senders as senders

Row = sa.Row[Any]
MINUTE_MS = 60_000
MOST_A_MINUTE = 30
_HOLD = {
    name: dialect.insert(senders)
    .values(told_ms=DbNow())
    .on_conflict_do_update(index_elements=["tenant", "agent_id"], set_={"told_ms": DbNow()})
    for name, dialect in (("sqlite", sqlite), ("postgresql", postgresql))
}


@dataclass(frozen=True, slots=True, kw_only=True)
class NewNotification:
    """What somebody tells the owner. `agent_id` is empty for people."""

    agent_id: str
    sender: str
    session_id: str | None
    title: str
    message: str
    level: str


class Notifications:
    """The notifications of one tenant."""

    def __init__(self, tx: Tx, tenant: str) -> None:
        self.tx = tx
        self.tenant = tenant

    def tell(self, new: NewNotification) -> tuple[str, bool]:
        """Keep a notification; its id, and whether it is new.

        What somebody tells again within a minute, in the same words, is kept once. More than 30 things a minute are
        refused, by all servers on this database together.
        """
        # Held to the end: of two at the same moment, one sees the other.
        self.tx.run(_HOLD[self.tx.dialect].values(tenant=self.tenant, agent_id=new.agent_id))
        at = now_ms(self.tx)
        mine = (notifications.c.tenant == self.tenant, notifications.c.agent_id == new.agent_id)
        recent = self.tx.all(
            sa.select(notifications)
            .where(*mine, notifications.c.created_ms > at - MINUTE_MS)
            .order_by(notifications.c.created_ms)
        )
        for row in recent:
            if (row.title, row.message, row.level) == (new.title, new.message, new.level):
                return row.id, False
        if len(recent) >= MOST_A_MINUTE:
            wait_s = max(1, (recent[0].created_ms + MINUTE_MS - at + 999) // 1000)
            raise RateLimited(
                f"the owner is told at most {MOST_A_MINUTE} things a minute", hint=f"try again in {wait_s} s"
            )
        return self._add(new, at), True

    def _add(self, new: NewNotification, at: int) -> str:
        told_id = new_id("ntf")
        values = {
            "id": told_id,
            "tenant": self.tenant,
            "agent_id": new.agent_id,
            "sender": new.sender,
            "session_id": new.session_id,
            "title": new.title,
            "message": new.message,
            "level": new.level,
            "created_ms": at,
        }
        self.tx.run(sa.insert(notifications).values(**values))
        return told_id

    def newest(self, limit: int, level: str | None = None) -> Sequence[Row]:
        """Notifications, newest first."""
        wanted = sa.select(notifications).where(notifications.c.tenant == self.tenant)
        if level is not None:
            wanted = wanted.where(notifications.c.level == level)
        newest = wanted.order_by(notifications.c.created_ms.desc(), notifications.c.id.desc())
        return self.tx.all(newest.limit(limit))

    def deliveries(self, ids: Sequence[str]) -> dict[str, list[Row]]:
        """The deliveries of some notifications, by the notification."""
        found: dict[str, list[Row]] = {each: [] for each in ids}
        wanted = sa.select(deliveries).where(deliveries.c.tenant == self.tenant, deliveries.c.about_id.in_(ids))
        for row in self.tx.all(wanted.order_by(deliveries.c.channel_type, deliveries.c.id)):
            found[row.about_id].append(row)
        return found

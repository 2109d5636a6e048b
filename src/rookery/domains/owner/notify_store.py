"""Keeps what the owner was told, whether or not any channel ever took it."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from rookery.core.ids import new_id
from rookery.db.clock import now_ms
from rookery.db.tx import Tx
from rookery.domains.owner.notify_tables import notification_deliveries as deliveries
from rookery.domains.owner.notify_tables import owner_notifications as notifications

Row = sa.Row[Any]


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

    def add(self, new: NewNotification) -> str:
        """Keep a notification; its id."""
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
            "created_ms": now_ms(self.tx),
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

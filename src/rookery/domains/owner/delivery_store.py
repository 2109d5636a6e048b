"""Keeps deliveries: one row for each thing that is told by each channel, from before it is sent until its end."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, cast

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql, sqlite

from rookery.asks.tables import OPEN, asks
from rookery.core.ids import new_id
from rookery.db.clock import DbNow, now_ms
from rookery.db.tx import Tx
from rookery.domains.owner.asks_shown import ask_notice
from rookery.domains.owner.channel_notice import Level, Notice
from rookery.domains.owner.channel_seal import ChannelSeal
from rookery.domains.owner.channel_store import Channels
from rookery.domains.owner.channels import carries_links, listens
from rookery.domains.owner.notify_tables import SHARED, owner_notifications
from rookery.domains.owner.notify_tables import notification_deliveries as deliveries
from rookery.domains.owner.outside_links import link_path, make_link
from rookery.identity.store import IdentityStore
from rookery.sealing.keyring import Keyring

Row = sa.Row[Any]
About = Literal["notification", "ask"]
MAX_ERROR = 300
OWN_WAITS_MS = 6 * 3_600_000
"""So long something waits for its turn at an agent's own channel; those of people are always told."""
_INSERT = {
    name: dialect.insert(deliveries).on_conflict_do_nothing().returning(deliveries.c.id)
    for name, dialect in (("sqlite", sqlite), ("postgresql", postgresql))
}
_PENDING = (
    deliveries.c.tenant == sa.bindparam("of_tenant"),
    deliveries.c.id == sa.bindparam("the_id"),
    deliveries.c.status == "pending",
)
_BEGIN = (
    sa.update(deliveries)
    .where(*_PENDING)
    .values(attempts=deliveries.c.attempts + 1, updated_ms=DbNow())
    .returning(*deliveries.c)
)
_SETTLE = (
    sa.update(deliveries)
    .where(*_PENDING)
    .values(
        status=sa.bindparam("to_status"),
        external_ref=sa.bindparam("ref"),
        error=sa.bindparam("said"),
        updated_ms=DbNow(),
    )
    .returning(deliveries.c.about_id)
)
_OF_ONE = (
    sa.select(deliveries)
    .where(deliveries.c.tenant == sa.bindparam("of_tenant"), deliveries.c.about_id == sa.bindparam("of_id"))
    .order_by(deliveries.c.channel_type, deliveries.c.id)
)


def wake_name(about_id: str) -> str:
    """What whoever waits for the deliveries of this is woken by."""
    return f"told:{about_id}"


@dataclass(frozen=True, slots=True)
class Parcel:
    """A delivery that is to be made now: what, and by which channel."""

    notice: Notice
    channel_id: str
    channel_type: str
    shared: bool
    config: dict[str, str] = field(repr=False)


class Deliveries:
    """The deliveries of one tenant."""

    def __init__(self, tx: Tx, tenant: str) -> None:
        self.tx = tx
        self.tenant = tenant

    def plan(self, about: About, about_id: str, agent_id: str) -> list[tuple[str, str, bool]]:
        """A delivery for each channel that is on and reaches the owner for this agent.

        Of new ones the id, the channel's, and whether that is one of people.
        """
        at = now_ms(self.tx)
        planned: list[tuple[str, str, bool]] = []
        for channel in Channels(self.tx, self.tenant).reaching(agent_id, enabled=True):
            values = {
                "id": new_id("dlv"),
                "tenant": self.tenant,
                "about": about,
                "about_id": about_id,
                "channel_id": channel.id,
                "channel_type": channel.channel_type,
                "status": "pending",
                "attempts": 0,
                "created_ms": at,
                "updated_ms": at,
            }
            made = self.tx.scalar(_INSERT[self.tx.dialect].values(**values))
            if made is not None:
                planned.append((made, channel.id, channel.agent_id == SHARED))
        return planned

    def of(self, about_id: str) -> Sequence[Row]:
        """How far the deliveries of one notification or ask are."""
        return self.tx.all(_OF_ONE, {"of_tenant": self.tenant, "of_id": about_id})

    def begin(self, delivery_id: str, keyring: Keyring | None, link_base: str | None = None) -> Parcel | None:
        """Count an attempt and say what is to be sent; None if nothing is, since it was or cannot be any more.

        An ask that goes by a channel of people has a link below `link_base` by which it can be answered.
        """
        row = self.tx.one(_BEGIN, {"of_tenant": self.tenant, "the_id": delivery_id})
        if row is None:
            return None
        # Held: whoever sets the channel anew ends the links that went by it, and this one must not slip through.
        channel = Channels(self.tx, self.tenant).find(row.channel_id, hold=True)
        if channel is None or not channel.enabled:
            self.fail(delivery_id, "the channel was turned off or removed")
            return None
        shared = channel.agent_id == SHARED
        if not shared and row.updated_ms - row.created_ms > OWN_WAITS_MS:
            # What an agent's slow channel never gets through with would grow for ever.
            self.fail(delivery_id, "the agent's channels are too slow for what it tells")
            return None
        notice = self._notice(row)
        if notice is None:
            self.fail(delivery_id, "it was answered or withdrawn before it was sent")
            return None
        config = ChannelSeal(self.tx, keyring).config_of(channel)
        if shared and row.about == "ask":
            base = link_base if carries_links(channel.channel_type, config) else None
            answerable = listens(channel.channel_type, config)
            notice = replace(notice, answerable=answerable, link=self._link(row, base))
        return Parcel(notice, channel.id, channel.channel_type, shared, config)

    def _link(self, row: Row, base: str | None) -> str:
        if base is None:
            return ""
        about = {"tenant": self.tenant, "ask_id": row.about_id, "channel_id": row.channel_id, "delivery_id": row.id}
        return base + link_path(row.about_id, make_link(self.tx, **about))

    def sent(self, delivery_id: str, ref: str | None) -> None:
        """The channel has taken it."""
        self._settle(delivery_id, "sent", ref=ref)

    def trouble(self, delivery_id: str, error: str) -> None:
        """This attempt has failed, and there will be another."""
        self._settle(delivery_id, "pending", error=error)

    def fail(self, delivery_id: str, error: str) -> None:
        """It will not be delivered."""
        self._settle(delivery_id, "failed", error=error)

    def _settle(self, delivery_id: str, status: str, *, ref: str | None = None, error: str | None = None) -> None:
        said = None if error is None else error[:MAX_ERROR]
        mine = {"of_tenant": self.tenant, "the_id": delivery_id}
        about_id = self.tx.scalar(_SETTLE, {**mine, "to_status": status, "ref": ref, "said": said})
        if about_id is not None:
            self.tx.wake(wake_name(about_id))

    def _notice(self, row: Row) -> Notice | None:
        return self._notification(row) if row.about == "notification" else self._ask(row)

    def _notification(self, row: Row) -> Notice | None:
        wanted = sa.select(owner_notifications).where(
            owner_notifications.c.tenant == self.tenant, owner_notifications.c.id == row.about_id
        )
        told = self.tx.one(wanted)
        if told is None:
            return None
        return Notice(
            delivery=row.id,
            about="notification",
            id=told.id,
            title=told.title,
            text=told.message,
            level=cast(Level, told.level),
            sender=told.sender,
        )

    def _ask(self, row: Row) -> Notice | None:
        """The ask, as long as it is open: nobody should be bothered with what is settled."""
        wanted = sa.select(asks).where(asks.c.tenant == self.tenant, asks.c.id == row.about_id)
        ask = self.tx.one(wanted)
        if ask is None or ask.status != OPEN or ask.expires_ms <= now_ms(self.tx):
            return None
        agent = IdentityStore(self.tx, self.tenant).find_agent(ask.agent_id)
        return ask_notice(ask, agent.name if agent is not None else "", row.id)

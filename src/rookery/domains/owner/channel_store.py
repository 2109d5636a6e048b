"""Keeps the channels by which the owner is reached. An agent has its own; those of people are for every agent."""

from collections.abc import Sequence
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql, sqlite

from rookery.core.errors import NotFound
from rookery.core.ids import new_id
from rookery.db.clock import now_ms
from rookery.db.tx import Tx
from rookery.domains.owner.channel_seal import ChannelSeal
from rookery.domains.owner.notify_tables import SHARED
from rookery.domains.owner.notify_tables import notification_channels as channels
from rookery.domains.owner.outside_links import end_links
from rookery.sealing.keyring import Keyring

Row = sa.Row[Any]
_MINE = channels.c.tenant == sa.bindparam("of_tenant")
_OF = sa.select(channels).where(_MINE, channels.c.id == sa.bindparam("the_id"))
_HELD = _OF.with_for_update(read=True)
_REACHING = (
    sa.select(channels)
    .where(_MINE, sa.or_(channels.c.agent_id == sa.bindparam("of_agent"), channels.c.agent_id == SHARED))
    .order_by(channels.c.channel_type, channels.c.agent_id)
)
_ENABLED = _REACHING.where(channels.c.enabled.is_(True))
_INSERT = {"sqlite": sqlite.insert, "postgresql": postgresql.insert}


class Channels:
    """The channels of one tenant."""

    def __init__(self, tx: Tx, tenant: str) -> None:
        self.tx = tx
        self.tenant = tenant

    def set(
        self, agent_id: str, channel_type: str, config: dict[str, str], *, enabled: bool, keyring: Keyring | None
    ) -> Row:
        """Set a channel up, or change it: its config is replaced, and it is on unless `enabled` is False.

        Links that went by it before answer nothing any more.
        """
        known = self._find(agent_id, channel_type)
        at = now_ms(self.tx)
        channel_id = known.id if known is not None else new_id("chn")
        values = {
            **ChannelSeal(self.tx, keyring).columns(self.tenant, channel_id, config),
            "enabled": enabled,
            "updated_ms": at,
        }
        whose = {"tenant": self.tenant, "agent_id": agent_id, "channel_type": channel_type}
        made = _INSERT[self.tx.dialect](channels).values(id=channel_id, created_ms=at, **whose, **values)
        # The id is sealed with the config, so whoever comes second at the same moment replaces both.
        kept = made.on_conflict_do_update(
            index_elements=["tenant", "agent_id", "channel_type"], set_={"id": channel_id, **values}
        )
        row = self.tx.one(kept.returning(*channels.c))
        assert row is not None
        end_links(self.tx, self.tenant, channel_id)
        return row

    def switch(self, agent_id: str, channel_type: str, *, enabled: bool) -> Row:
        """Turn a channel on or off; NotFound if there is none."""
        changed = (
            sa.update(channels)
            .where(*self._one(agent_id, channel_type))
            .values(enabled=enabled, updated_ms=now_ms(self.tx))
        )
        return self._there(self.tx.one(changed.returning(*channels.c)), channel_type)

    def remove(self, agent_id: str, channel_type: str) -> Row:
        """Forget a channel and its config; NotFound if there is none."""
        gone = sa.delete(channels).where(*self._one(agent_id, channel_type)).returning(*channels.c)
        return self._there(self.tx.one(gone), channel_type)

    def find(self, channel_id: str, *, hold: bool = False) -> Row | None:
        """The channel, or None. With `hold` nobody changes it before the end of the transaction."""
        return self.tx.one(_HELD if hold else _OF, {"of_tenant": self.tenant, "the_id": channel_id})

    def reaching(self, agent_id: str, *, enabled: bool = False) -> Sequence[Row]:
        """Every channel that an agent's words may go by: its own and those of people; if asked, those that are on."""
        return self.tx.all(_ENABLED if enabled else _REACHING, {"of_tenant": self.tenant, "of_agent": agent_id})

    def everybody(self) -> Sequence[Row]:
        """All channels of the tenant."""
        listed = sa.select(channels).where(channels.c.tenant == self.tenant)
        return self.tx.all(listed.order_by(channels.c.channel_type, channels.c.agent_id).limit(1000))

    def _one(self, agent_id: str, channel_type: str) -> tuple[sa.ColumnElement[bool], ...]:
        return (
            channels.c.tenant == self.tenant,
            channels.c.agent_id == agent_id,
            channels.c.channel_type == channel_type,
        )

    def _find(self, agent_id: str, channel_type: str) -> Row | None:
        return self.tx.one(sa.select(channels).where(*self._one(agent_id, channel_type)))

    def _there(self, row: Row | None, channel_type: str) -> Row:
        if row is None:
            raise NotFound(f"the channel {channel_type} is not set up", hint="action list shows yours; set adds one")
        return row

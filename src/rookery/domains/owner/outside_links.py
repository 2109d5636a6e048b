"""Links that answer one ask, once. Whoever has one is taken for the owner, so it goes by the owner's channels only."""

import hashlib
import secrets
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from rookery.asks.tables import asks
from rookery.core.admission import storable
from rookery.db.clock import DbNow, now_ms
from rookery.db.tx import Tx
from rookery.domains.owner.notify_tables import SHARED
from rookery.domains.owner.notify_tables import notification_channels as channels
from rookery.domains.owner.outside_tables import ask_links as links
from rookery.settings import Settings

Row = sa.Row[Any]
TOKEN_BYTES = 32
LASTS_MS = 7 * 86_400_000
"""Some asks are open for years; a link that lies about somewhere is not."""
_FOUND = (
    sa.select(links, channels.c.enabled.label("channel_on"), channels.c.agent_id.label("channel_of"))
    .outerjoin(channels, sa.and_(channels.c.id == links.c.channel_id, channels.c.tenant == links.c.tenant))
    .where(links.c.digest == sa.bindparam("of_digest"), links.c.ask_id == sa.bindparam("of_ask"))
)
_ASK = sa.select(asks).where(asks.c.tenant == sa.bindparam("of_tenant"), asks.c.id == sa.bindparam("of_ask"))
_USE = (
    sa.update(links)
    .where(links.c.digest == sa.bindparam("of_digest"), links.c.used_ms.is_(None))
    .values(used_ms=DbNow())
    .returning(links.c.ask_id)
)

_END = (
    sa.update(links)
    .where(
        links.c.tenant == sa.bindparam("of_tenant"),
        links.c.channel_id == sa.bindparam("of_channel"),
        links.c.used_ms.is_(None),
    )
    .values(used_ms=DbNow())
)


@dataclass(frozen=True, slots=True)
class Link:
    """A link that was made here, and its ask. `good`: it is unused and young, and its channel still the owner's."""

    tenant: str
    ask: Row
    good: bool
    over: bool
    """Whether the time for an answer is over."""


def link_base(settings: Settings) -> str | None:
    """Where links lead: the address that others use, else this machine. None if its port is picked at its start."""
    if settings.public_url:
        return settings.public_url
    return f"http://127.0.0.1:{settings.port}" if settings.port else None


def link_path(ask_id: str, token: str) -> str:
    """The address of a link below the server's own."""
    return f"/hooks/asks/{ask_id}/{token}"


def make_link(tx: Tx, *, tenant: str, ask_id: str, channel_id: str, delivery_id: str) -> str:
    """A new link's token. It is kept nowhere: what is kept can only tell it when it comes back."""
    token = secrets.token_urlsafe(TOKEN_BYTES)
    row = {"digest": _digest(token), "tenant": tenant, "ask_id": ask_id}
    made = {"channel_id": channel_id, "delivery_id": delivery_id, "created_ms": now_ms(tx)}
    tx.run(sa.insert(links).values(**row, **made))
    return token


def find_link(tx: Tx, ask_id: str, token: str) -> Link | None:
    """The link of exactly this ask and token, or None. Found by a digest, so no time tells how near a guess was."""
    if not storable(ask_id):
        return None
    row = tx.one(_FOUND, {"of_digest": _digest(token), "of_ask": ask_id})
    ask = None if row is None else tx.one(_ASK, {"of_tenant": row.tenant, "of_ask": ask_id})
    if row is None or ask is None:
        return None
    now = now_ms(tx)
    good = row.used_ms is None and bool(row.channel_on) and row.channel_of == SHARED and now < row.created_ms + LASTS_MS
    return Link(row.tenant, ask, good, over=ask.expires_ms <= now)


def use_link(tx: Tx, token: str) -> bool:
    """Use a link up; whether it was still unused."""
    return tx.one(_USE, {"of_digest": _digest(token)}) is not None


def end_links(tx: Tx, tenant: str, channel_id: str) -> None:
    """Let no link answer any more that went by this channel so far: where it led may no longer be safe."""
    tx.run(_END, [{"of_tenant": tenant, "of_channel": channel_id}])


def _digest(token: str) -> str:
    return hashlib.sha256(token.encode("utf-8", "replace")).hexdigest()

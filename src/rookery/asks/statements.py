"""The statements about asks, built once."""

from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql, sqlite

from rookery.asks.tables import ANSWERED, OPEN, WITHDRAWN, asks
from rookery.db.clock import DbNow

MINE = asks.c.tenant == sa.bindparam("of_tenant")
THIS = (MINE, asks.c.id == sa.bindparam("ask_id"))
# As a literal, which is what the indexes of open asks are made for.
IS_OPEN = asks.c.status == sa.literal_column(f"'{OPEN}'")
STILL_OPEN = (IS_OPEN, asks.c.expires_ms > DbNow())
OF = sa.select(asks).where(*THIS)
NEWEST = (
    sa.select(asks)
    .where(MINE, asks.c.key == sa.bindparam("wanted"))
    .order_by(asks.c.created_ms.desc(), asks.c.id.desc())
    .limit(1)
)
INSERT = {
    name: dialect.insert(asks).on_conflict_do_nothing().returning(*asks.c)
    for name, dialect in (("sqlite", sqlite), ("postgresql", postgresql))
}
GIVEN: dict[str, Any] = {
    "status": ANSWERED,
    "answer": sa.bindparam("given", type_=sa.JSON),
    "answered_by": sa.bindparam("person"),
    "answered_via": sa.bindparam("through"),
    "answered_ms": DbNow(),
}
ANSWER = sa.update(asks).where(*THIS, *STILL_OPEN).values(GIVEN).returning(*asks.c)
ALIKE = (
    MINE,
    *STILL_OPEN,
    asks.c.agent_id == sa.bindparam("of_agent"),
    asks.c.batch_key == sa.bindparam("batch"),
    asks.c.kind == sa.bindparam("of_kind"),
)
# In one order: two people who answer the same batch would else wait for each other.
LOCK_ALIKE = (
    sa.select(asks.c.id)
    .where(*ALIKE, asks.c.created_ms <= sa.bindparam("until_ms"))
    .order_by(asks.c.id)
    .with_for_update()
)
SIMILAR = sa.select(asks).where(*ALIKE, asks.c.id != sa.bindparam("ask_id")).order_by(asks.c.created_ms, asks.c.id)
LATER = sa.update(asks).where(*THIS, *STILL_OPEN).values(later_ms=DbNow()).returning(*asks.c)
WITHDRAW = (
    sa.update(asks)
    .where(*THIS, IS_OPEN)
    .values(
        status=WITHDRAWN,
        answered_by=sa.bindparam("person"),
        answered_via=sa.bindparam("through"),
        answered_ms=DbNow(),
    )
    .returning(*asks.c)
)
TELL = (
    sa.update(asks)
    .where(*THIS, asks.c.status == ANSWERED, asks.c.told_ms.is_(None))
    .values(told_ms=DbNow())
    .returning(asks.c.id)
)
LET_GO = sa.update(asks).where(*THIS, IS_OPEN, asks.c.expires_ms <= DbNow()).values(key=None).returning(asks.c.id)
OPEN_OF = (
    sa.select(sa.func.count()).select_from(asks).where(MINE, *STILL_OPEN, asks.c.agent_id == sa.bindparam("of_agent"))
)
BEGINNING = sa.select(asks).where(MINE, asks.c.short_id == sa.bindparam("beginning")).limit(100)
PAST = DbNow() - sa.bindparam("keep_ms", type_=sa.BigInteger)
FORGOTTEN = (
    sa.select(asks.c.id)
    .where(
        MINE,
        asks.c.created_ms < PAST,
        asks.c.status != OPEN,
        sa.func.coalesce(asks.c.answered_ms, asks.c.expires_ms) < PAST,
    )
    .order_by(asks.c.created_ms)
    .limit(sa.bindparam("room"))
)

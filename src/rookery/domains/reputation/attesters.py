"""Remembers the logs of others: whoever was seen once cannot replace its key or cut its log unnoticed."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql, sqlite

from rookery.attest.card import origin_of
from rookery.attest.verify import Head, Verified
from rookery.db.clock import now_ms
from rookery.db.tx import Tx
from rookery.domains.reputation.tables import known_attesters

_k = known_attesters.c
_SEEN = sa.select(known_attesters).where(
    _k.tenant == sa.bindparam("of_tenant"), _k.log.in_(sa.bindparam("places", expanding=True))
)


@dataclass(frozen=True, slots=True)
class Seen:
    """What a log was when it was last in order."""

    keyid: str
    head: Head


class Attesters:
    """The logs that a tenant has seen, by their own address and by that of the card that led there.

    Where its log is, the other side chooses; which card was asked for, we do.
    """

    def __init__(self, tx: Tx, tenant: str) -> None:
        self.tx = tx
        self.tenant = tenant

    def seen(self, *places: str) -> list[Seen]:
        """What was seen at these addresses of cards and logs."""
        rows = self.tx.all(_SEEN, {"of_tenant": self.tenant, "places": places})
        return [Seen(row.keyid, Head(row.entries, row.hash)) for row in rows]

    def keep(self, places: Sequence[str], found: Verified) -> None:
        """This is there now. What was seen longer meanwhile, or with another key, stays as it was seen."""
        # In one order, so that of two who keep the same neither waits for the other's second.
        for place in sorted(places):
            self._keep(place, found)

    def _keep(self, place: str, found: Verified) -> None:
        head = found.head
        assert head is not None
        values: dict[str, Any] = {"entries": head.count, "hash": head.hash, "seen_ms": now_ms(self.tx)}
        whose = {"tenant": self.tenant, "log": place, "agent_id": found.agent_id, "keyid": found.keyid}
        insert = (sqlite if self.tx.dialect == "sqlite" else postgresql).insert(known_attesters)
        keep = insert.values(**whose, **values).on_conflict_do_update(
            index_elements=[_k.tenant, _k.log],
            set_=values,
            where=sa.and_(_k.entries <= head.count, _k.keyid == found.keyid),
        )
        self.tx.run(keep)

    def forget(self, *places: str) -> bool:
        """Take who is at these addresses at its word when it is seen again. False: none was known.

        What its key has signed is forgotten at all addresses of its host: those of its cards and of its log. Of other
        hosts it is not: one that has shown a copy of a log must not take the memory of the first with it.
        """
        keys = sorted({each.keyid for each in self.seen(*places)})
        mine = sa.select(_k.log).where(_k.tenant == self.tenant, _k.keyid.in_(keys))
        hosts = {origin_of(place) for place in places}
        gone = [row.log for row in self.tx.all(mine) if row.log in places or origin_of(row.log) in hosts]
        named = (_k.tenant == self.tenant, _k.keyid.in_(keys), _k.log.in_(gone))
        return bool(gone) and self.tx.run(sa.delete(known_attesters).where(*named)) > 0

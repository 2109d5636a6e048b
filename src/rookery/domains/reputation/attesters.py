"""Remembers the logs of others: whoever was seen once cannot replace its key or cut its log unnoticed."""

from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql, sqlite

from rookery.attest.verify import Head, Verified
from rookery.db.clock import now_ms
from rookery.db.tx import Tx
from rookery.domains.reputation.tables import known_attesters

_k = known_attesters.c
_SEEN = sa.select(known_attesters).where(_k.tenant == sa.bindparam("of_tenant"), _k.log == sa.bindparam("of_log"))


@dataclass(frozen=True, slots=True)
class Seen:
    """What a log was when it was last in order."""

    keyid: str
    head: Head


class Attesters:
    """The logs that a tenant has seen, by their address."""

    def __init__(self, tx: Tx, tenant: str) -> None:
        self.tx = tx
        self.tenant = tenant

    def seen(self, log: str) -> Seen | None:
        """What the log at this address was, or None."""
        row = self.tx.one(_SEEN, {"of_tenant": self.tenant, "of_log": log})
        return None if row is None else Seen(row.keyid, Head(row.entries, row.hash))

    def keep(self, log: str, found: Verified) -> None:
        """The log is this now. One that was seen longer meanwhile stays as it was seen."""
        head = found.head
        assert head is not None
        values: dict[str, Any] = {"entries": head.count, "hash": head.hash, "seen_ms": now_ms(self.tx)}
        whose = {"tenant": self.tenant, "log": log, "agent_id": found.agent_id, "keyid": found.keyid}
        insert = (sqlite if self.tx.dialect == "sqlite" else postgresql).insert(known_attesters)
        keep = insert.values(**whose, **values).on_conflict_do_update(
            index_elements=[_k.tenant, _k.log], set_=values, where=_k.entries <= head.count
        )
        self.tx.run(keep)

    def forget(self, log: str) -> bool:
        """Take the log at its word when it is seen again. False: it was not known."""
        return self.tx.run(sa.delete(known_attesters).where(_k.tenant == self.tenant, _k.log == log)) > 0

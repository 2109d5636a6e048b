"""Who wrote something, by name. Records are signed with a role; people want to know which person it was."""

from collections.abc import Iterable

import sqlalchemy as sa

from rookery.db.tx import Tx
from rookery.identity.tables import people


def names_of(tx: Tx, tenant: str, subjects: Iterable[str]) -> dict[str, str]:
    """The names of those subjects that are people, by subject."""
    wanted = sorted(set(subjects))
    if not wanted:
        return {}
    found = sa.select(people.c.id, people.c.name).where(people.c.tenant == tenant, people.c.id.in_(wanted))
    return {row.id: row.name for row in tx.all(found)}

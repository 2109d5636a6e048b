"""Keeps snapshots of health, and reads the test runs that workers reported to the tracker."""

from collections.abc import Mapping, Sequence
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql, sqlite

from rookery.core.errors import Conflict
from rookery.core.ids import new_id
from rookery.db.clock import now_ms
from rookery.db.tx import Tx
from rookery.domains.health.tables import health_collections, health_snapshots
from rookery.lifecycle.suite_tables import test_health

Row = sa.Row[Any]
DAY_MS = 86_400_000


def _newest(table: sa.Table, at: str) -> sa.Select[Any]:
    wanted = (
        table.c.tenant == sa.bindparam("of_tenant"),
        table.c.project_id == sa.bindparam("wanted"),
        table.c[at] >= sa.bindparam("since"),
    )
    return sa.select(table).where(*wanted).order_by(table.c.seq.desc()).limit(sa.bindparam("most"))


_SNAPSHOTS = _newest(health_snapshots, "collected_ms")
_BY_AGENT = _SNAPSHOTS.where(health_snapshots.c.agent_id == sa.bindparam("by_agent"))
_RUNS = _newest(test_health, "at_ms")


class Snapshots:
    """The snapshots of one project."""

    def __init__(self, tx: Tx, tenant: str, project_id: str) -> None:
        self.tx = tx
        self.tenant = tenant
        self.project_id = project_id

    def add(self, counts: Mapping[str, int], *, agent: str | None, source: str, details: Mapping[str, Any]) -> Row:
        """Keep one of now. `counts` are by column; one that is missing was not counted."""
        values = {
            **counts,
            "id": new_id("hsn"),
            "tenant": self.tenant,
            "project_id": self.project_id,
            "agent_id": agent,
            "source": source,
            "details": dict(details),
            "collected_ms": now_ms(self.tx),
        }
        row = self.tx.one(sa.insert(health_snapshots).values(**values).returning(*health_snapshots.c))
        assert row is not None
        return row

    def newest(self, limit: int, days: int | None = None, by: str | None = None) -> Sequence[Row]:
        """The newest snapshots, oldest of them first; with `days` only those of so many days, with `by` of an agent."""
        if by is None:
            return self._read(_SNAPSHOTS, limit, days)
        return self._read(_BY_AGENT, limit, days, by_agent=by)

    def runs(self, limit: int, days: int | None = None) -> Sequence[Row]:
        """The same of the test runs that the project's workers reported."""
        return self._read(_RUNS, limit, days)

    def _read(self, statement: sa.Select[Any], limit: int, days: int | None, **more: str) -> Sequence[Row]:
        since = 0 if days is None else now_ms(self.tx) - days * DAY_MS
        of = {"of_tenant": self.tenant, "wanted": self.project_id, "since": since, "most": limit, **more}
        return self.tx.all(statement, of)[::-1]


class Collections:
    """Who looks at a project at the moment: the commands of one look could spoil those of another."""

    def __init__(self, tx: Tx, tenant: str) -> None:
        self.tx = tx
        self.tenant = tenant

    def begin(self, project_id: str, limit_s: float) -> str:
        """A token for whoever may look now, for so long at most. Conflict if somebody is at it already."""
        at = now_ms(self.tx)
        token = new_id("hcl")
        until = {"tenant": self.tenant, "token": token, "until_ms": at + round(limit_s * 1000)}
        insert = (sqlite if self.tx.dialect == "sqlite" else postgresql).insert(health_collections)
        taken = insert.values(project_id=project_id, **until).on_conflict_do_update(
            index_elements=["project_id"], set_=until, where=health_collections.c.until_ms <= at
        )
        if self.tx.one(taken.returning(health_collections.c.token)) is None:
            raise Conflict("the project's health is being collected already", hint="try again when that is done")
        return token

    def end(self, token: str) -> None:
        """Whoever began is done."""
        mine = (health_collections.c.tenant == self.tenant, health_collections.c.token == token)
        self.tx.run(sa.delete(health_collections).where(*mine))

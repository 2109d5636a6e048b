"""The kill switch: what is paused, by whom and why. Agents of a pause only look on; people are never paused.

Pauses of everything, of a project and of an agent stand beside each other: whoever is under any of them waits until the
last one is taken back.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql, sqlite

from rookery.core.actor import Actor
from rookery.db.clock import DbNow
from rookery.db.migrate import Migration
from rookery.db.schema import metadata, text, whole
from rookery.db.tx import Tx
from rookery.identity.store import IdentityStore, begin_change
from rookery.identity.tables import agents, people, projects
from rookery.jobs.kinds import Postponed
from rookery.jobs.store import Jobs

Scope = Literal["all", "project", "agent"]
SCOPES: tuple[Scope, ...] = ("all", "project", "agent")
WAKE = "pauses"
"""Whoever waits for this name looks anew at what is paused."""
RESUME = "resume"
"""What jobs wait for that would have started an agent."""
AGAIN_S = 600.0
"""A postponed job is due at once when something is resumed, and looks by itself after so long."""
MAX_REASON = 500

pauses = sa.Table(
    "pauses",
    metadata,
    text("tenant", primary_key=True),
    text("scope", primary_key=True),
    text("target", primary_key=True),
    text("reason"),
    text("paused_by"),
    whole("at_ms"),
)
"""`target` is the id of a project or an agent, and empty for everything."""

MIGRATIONS = (
    Migration(
        1,
        "pauses",
        [
            "CREATE TABLE pauses (tenant TEXT NOT NULL, scope TEXT NOT NULL, target TEXT NOT NULL, "
            "reason TEXT NOT NULL, paused_by TEXT NOT NULL, at_ms BIGINT NOT NULL, "
            "PRIMARY KEY (tenant, scope, target))"
        ],
    ),
)

_p = pauses.c
_ANY = "SELECT 1 FROM pauses LIMIT 1"
_NAMED = (
    sa.select(*pauses.c, sa.func.coalesce(projects.c.slug, agents.c.name).label("name"), people.c.name.label("person"))
    .outerjoin(projects, sa.and_(_p.scope == "project", projects.c.id == _p.target))
    .outerjoin(agents, sa.and_(_p.scope == "agent", agents.c.id == _p.target))
    .outerjoin(people, people.c.id == _p.paused_by)
    .where(_p.tenant == sa.bindparam("of_tenant"))
    .order_by(sa.case({scope: rank for rank, scope in enumerate(SCOPES)}, value=_p.scope), _p.at_ms, _p.target)
)
_HOLDING = _NAMED.where(
    sa.or_(
        _p.scope == "all",
        sa.and_(_p.scope == "project", _p.target == sa.bindparam("project", type_=sa.Text)),
        sa.and_(_p.scope == "agent", _p.target == sa.bindparam("agent", type_=sa.Text)),
    )
).limit(1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Pause:
    """What is paused: everything of the tenant, a project or an agent. `name` is what people call it."""

    scope: Scope
    target: str | None
    name: str | None
    reason: str
    by: str
    by_name: str
    at_ms: int

    @property
    def what(self) -> str:
        return "everything" if self.scope == "all" else f"the {self.scope} {self.name or self.target}"

    @property
    def said(self) -> str:
        """A sentence for whoever is held by it."""
        return f"{self.what} was paused by {self.by_name}" + (f": {self.reason}" if self.reason else "")


class Paused(Postponed):
    """No agent may work here now. A job that does not catch it waits for the resume and then begins again."""

    def __init__(self, pause: Pause, tenant: str) -> None:
        super().__init__(pause.said, delay_s=AGAIN_S, until=RESUME, holds=lambda tx: Pauses(tx, tenant).stands(pause))
        self.pause = pause


class Pauses:
    """The pauses of one tenant."""

    def __init__(self, tx: Tx, tenant: str) -> None:
        self.tx = tx
        self.tenant = tenant

    def pause(self, scope: Scope, target: str | None = None, *, reason: str = "", by: str) -> tuple[Pause, bool]:
        """Hold everything, or a project or an agent by name or id; what stands from now on, and whether it is new.

        What is paused already stays as it is, with its first reason. NotFound for what the tenant does not have.
        """
        begin_change(self.tx)
        insert = (sqlite if self.tx.dialect == "sqlite" else postgresql).insert(pauses)
        key = {"scope": scope, "target": self._id(scope, target)}
        values = {"tenant": self.tenant, **key, "reason": reason[:MAX_REASON], "paused_by": by}
        new = self.tx.one(insert.values(**values, at_ms=DbNow()).on_conflict_do_nothing().returning(_p.scope))
        if new is not None:
            self.tx.wake(WAKE)
        found = next(each for each in self.all() if (each.scope, each.target or "") == (scope, key["target"]))
        return found, new is not None

    def resume(self, scope: Scope, target: str | None = None) -> bool:
        """Take a pause back; whether there was one. What waited for it looks again, whatever else still holds it."""
        begin_change(self.tx)
        mine = (_p.tenant == self.tenant, _p.scope == scope, _p.target == self._id(scope, target))
        if not self.tx.run(sa.delete(pauses).where(*mine)):
            return False
        Jobs(self.tx, self.tenant).release(RESUME)
        self.tx.wake(WAKE)
        return True

    def all(self) -> Sequence[Pause]:
        """Everything that stands: the widest first, then the oldest."""
        return [_pause(row) for row in self.tx.all(_NAMED, {"of_tenant": self.tenant})]

    def holding(self, project_id: str | None, agent_id: str | None) -> Pause | None:
        """The widest pause under which an agent in that project is, or None."""
        # Asked for every caller whose rights are looked up, and nearly always there is none.
        if self.tx.first(_ANY) is None:
            return None
        values = {"of_tenant": self.tenant, "project": project_id, "agent": agent_id}
        row = self.tx.one(_HOLDING, values)
        return None if row is None else _pause(row)

    def holding_actor(self, actor: Actor) -> Pause | None:
        """The same for an actor. A person is never held."""
        return None if actor.kind == "human" else self.holding(actor.project, actor.agent)

    def stands(self, pause: Pause) -> bool:
        """Whether it is still there. If so, nobody takes it back before this transaction ends."""
        key = (_p.tenant == self.tenant, _p.scope == pause.scope, _p.target == (pause.target or ""))
        return self.tx.one(sa.select(_p.scope).where(*key).with_for_update(read=True)) is not None

    def _id(self, scope: Scope, target: str | None) -> str:
        if scope == "all":
            return ""
        store = IdentityStore(self.tx, self.tenant)
        return (store.project(target or "") if scope == "project" else store.agent(target or "")).id


def _pause(row: sa.Row[Any]) -> Pause:
    return Pause(
        scope=row.scope,
        target=row.target or None,
        name=row.name,
        reason=row.reason,
        by=row.paused_by,
        by_name=row.person or row.paused_by,
        at_ms=row.at_ms,
    )

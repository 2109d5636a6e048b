"""Reads and changes identity rows. Everything is inside one tenant; what is not there is NotFound."""

import time
from collections.abc import Sequence
from typing import Any

import sqlalchemy as sa

from rookery.core.actor import NOTHING
from rookery.core.admission import storable
from rookery.core.errors import Conflict, NotFound
from rookery.core.ids import new_id
from rookery.db.tx import Tx
from rookery.identity.tables import EPOCH, agents, people, profiles, projects, tenants

DEFAULT_TENANT = "default"
DEFAULT_AGENT = "default"
DEFAULT_PROJECT = "default"
_MINE: sa.BindParameter[str] = sa.bindparam("of_tenant")
_WANTED: sa.BindParameter[str] = sa.bindparam("wanted")
# Built once, as all that is asked to find out who calls: to build such a statement costs more than to run it.
_TENANT = sa.select(tenants.c.id).where(tenants.c.id == _MINE)
_OWNER = (
    sa.select(people)
    .where(people.c.tenant == _MINE, people.c.role == "owner")
    .order_by(people.c.created_ms, people.c.id)
)
_AGENT = sa.select(agents).where(agents.c.tenant == _MINE, agents.c.id == _WANTED)
_LIMITED = sa.select(projects.c.id, projects.c.members).where(
    projects.c.tenant == _MINE, projects.c.members.is_not(None)
)
_PROFILE = sa.select(profiles).where(profiles.c.tenant == _MINE, profiles.c.type == _WANTED)


def _named(table: sa.Table, name: sa.Column[Any]) -> sa.Select[*tuple[Any, ...]]:
    """What has this id, before what has this name."""
    same = sa.or_(table.c.id == _WANTED, sa.func.lower(name) == sa.bindparam("lowered"))
    return sa.select(table).where(table.c.tenant == _MINE, same).order_by(table.c.id != _WANTED)


_NAMES = {"person": people.c.name, "project": projects.c.slug, "agent": agents.c.name}
_NAMED = {kind: _named(name.table, name) for kind, name in _NAMES.items()}


def now_ms() -> int:
    return time.time_ns() // 1_000_000


def begin_change(tx: Tx) -> None:
    """From here to the commit nobody else changes identities; after it every process looks anew.

    The lock is the epoch's row, so whoever takes it first may look and then write, on PostgreSQL as well.
    """
    tx.bump(EPOCH)


class IdentityStore:
    """Tenants, people, projects, agents and profiles of one tenant."""

    def __init__(self, tx: Tx, tenant: str) -> None:
        self.tx = tx
        self.tenant = tenant

    def set_up(self) -> None:
        """The tenant with its owner, default project and default agent. Does nothing to what is there."""
        if self.exists():
            return
        begin_change(self.tx)
        if self.exists():
            return  # another process that started at the same time was first
        at = now_ms()
        self.tx.run(sa.insert(tenants).values(id=self.tenant, name=self.tenant, created_ms=at))
        self.tx.run(
            sa.insert(people).values(id=new_id("per"), tenant=self.tenant, name="owner", role="owner", created_ms=at)
        )
        self.create_project(DEFAULT_PROJECT, "Default project", None)
        self.create_agent(DEFAULT_AGENT, None)

    def exists(self) -> bool:
        """Whether there is such a tenant."""
        return self.tx.one(_TENANT, {"of_tenant": self.tenant}) is not None

    def owner(self) -> sa.Row[Any]:
        """The person whose installation this is."""
        row = self.tx.one(_OWNER, {"of_tenant": self.tenant})
        if row is None:
            raise NotFound("this installation has no owner", hint="rookery doctor says how to mend it")
        return row

    def person(self, name_or_id: str) -> sa.Row[Any]:
        return self._one("person", name_or_id)

    def project(self, slug_or_id: str, closed: frozenset[str] = NOTHING) -> sa.Row[Any]:
        """The project, unless its id is in `closed`: those are no more there than any that never was."""
        return self._one("project", slug_or_id, closed)

    def agent(self, name_or_id: str) -> sa.Row[Any]:
        return self._one("agent", name_or_id)

    def find_agent(self, agent_id: str) -> sa.Row[Any] | None:
        """The agent with exactly this id, or None. Names do not count: anybody can be called anything elsewhere."""
        return self.tx.one(_AGENT, {"of_tenant": self.tenant, "wanted": agent_id})

    def _one(self, kind: str, wanted: str, hidden: frozenset[str] = NOTHING) -> sa.Row[Any]:
        values = {"of_tenant": self.tenant, "wanted": wanted, "lowered": wanted.lower()}
        # What no database can store is in none, and asking would be an error.
        rows = self.tx.all(_NAMED[kind], values) if storable(wanted) else ()
        row = next((each for each in rows if each.id not in hidden), None)
        if row is None:
            name = _NAMES[kind]
            there = (name.table.c.tenant == self.tenant, name.table.c.id.not_in(hidden))
            known = [found[0] for found in self.tx.all(sa.select(name).where(*there).limit(8))]
            raise NotFound(f"there is no {kind} {wanted}", hint=f"known: {', '.join(sorted(known)) or 'none'}")
        return row

    def closed_to(self, agent: str | None) -> frozenset[str]:
        """The ids of the projects in which this agent has no role. None stands for whoever is no agent of ours."""
        rows = self.tx.all(_LIMITED, {"of_tenant": self.tenant})
        return frozenset(row.id for row in rows if agent not in row.members)

    def set_members(self, slug_or_id: str, names_or_ids: Sequence[str] | None) -> sa.Row[Any]:
        """Close a project to all agents but these; None opens it to every agent of the tenant."""
        begin_change(self.tx)
        project = self.project(slug_or_id)
        ids = None if names_or_ids is None else sorted({self.agent(name).id for name in names_or_ids})
        mine = (projects.c.tenant == self.tenant, projects.c.id == project.id)
        self.tx.run(sa.update(projects).where(*mine).values(members=ids))
        return self.project(project.id)

    def projects(self) -> Sequence[sa.Row[Any]]:
        return self.tx.all(sa.select(projects).where(projects.c.tenant == self.tenant).order_by(projects.c.slug))

    def agents(self) -> Sequence[sa.Row[Any]]:
        return self.tx.all(sa.select(agents).where(agents.c.tenant == self.tenant).order_by(agents.c.name))

    def create_project(self, slug: str, name: str, path: str | None) -> sa.Row[Any]:
        taken = sa.and_(projects.c.tenant == self.tenant, sa.func.lower(projects.c.slug) == slug.lower())
        return self._insert(
            projects,
            taken,
            f"the project {slug} exists already",
            id=new_id("prj"),
            slug=slug,
            name=name,
            path=path,
        )

    def create_agent(self, name: str, permissions: Sequence[str] | None) -> sa.Row[Any]:
        taken = sa.and_(agents.c.tenant == self.tenant, sa.func.lower(agents.c.name) == name.lower())
        return self._insert(
            agents,
            taken,
            f"the agent {name} exists already",
            id=new_id("agt"),
            name=name,
            permissions=None if permissions is None else list(permissions),
            restrict_networking=False,
            mode="autonomy",
            trust=None,
        )

    def _insert(self, table: sa.Table, taken: sa.ColumnElement[bool], message: str, **values: Any) -> sa.Row[Any]:
        begin_change(self.tx)
        # Names are unique without regard to case; the index alone would let `Ada` stand beside `ada`.
        if self.tx.scalar(sa.select(sa.func.count()).select_from(table).where(taken)):
            raise Conflict(message, hint="choose another name")
        row = self.tx.one(
            sa.insert(table).values(tenant=self.tenant, created_ms=now_ms(), **values).returning(*table.c)
        )
        assert row is not None
        return row

    def update_agent(self, name_or_id: str, **values: Any) -> sa.Row[Any]:
        """Change fields of one agent and return it."""
        begin_change(self.tx)
        agent = self.agent(name_or_id)
        if values:
            mine = (agents.c.tenant == self.tenant, agents.c.id == agent.id)
            self.tx.run(sa.update(agents).where(*mine).values(**values))
        return self.agent(agent.id)

    def profile(self, kind: str) -> tuple[list[str] | None, list[str] | None]:
        """The allowed and disallowed tools of a profile; None where nothing was set."""
        row = self.tx.one(_PROFILE, {"of_tenant": self.tenant, "wanted": kind})
        return (row.allowed, row.disallowed) if row is not None else (None, None)

    def set_profile(self, kind: str, allowed: list[str] | None, disallowed: list[str] | None) -> None:
        """Replace both lists. Whoever keeps one of them reads it after `begin_change`."""
        begin_change(self.tx)
        mine = (profiles.c.tenant == self.tenant, profiles.c.type == kind)
        if not self.tx.run(sa.update(profiles).where(*mine).values(allowed=allowed, disallowed=disallowed)):
            self.tx.run(
                sa.insert(profiles).values(tenant=self.tenant, type=kind, allowed=allowed, disallowed=disallowed)
            )

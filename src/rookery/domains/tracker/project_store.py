"""What a project has set for its work, and the numbers of its issues."""

import re
from collections.abc import Iterator
from typing import Any

import sqlalchemy as sa
from pydantic import BaseModel, ConfigDict
from sqlalchemy.dialects import postgresql, sqlite

from rookery.core.actor import Actor
from rookery.core.errors import Conflict, NotFound
from rookery.db.tx import Tx
from rookery.domains.tracker.tables import tracker_projects
from rookery.identity.tables import projects, tenants
from rookery.lifecycle.issue_ref import identifier
from rookery.lifecycle.states import PHASES

FIRST_PREFIX_LENGTH = 3
_SETTINGS = (
    sa.select(projects, tracker_projects.c.prefix, tracker_projects.c.settings)
    .outerjoin(tracker_projects, tracker_projects.c.project_id == projects.c.id)
    .where(projects.c.tenant == sa.bindparam("of_tenant"), projects.c.id == sa.bindparam("wanted"))
)
_COUNTED = (
    sa.update(tracker_projects)
    .where(tracker_projects.c.project_id == sa.bindparam("wanted"))
    .values(next_number=tracker_projects.c.next_number + 1)
    .returning(tracker_projects.c.prefix, tracker_projects.c.next_number)
)


class Gate(BaseModel):
    """A command that must pass, or should, before a pull request is merged."""

    command: str
    label: str
    required: bool


class Thresholds(BaseModel):
    """From where a change counts as more than small, and from where as large."""

    low_lines: int = 50
    high_lines: int = 500
    low_files: int = 3
    high_files: int = 15


class WorkSettings(BaseModel):
    """What `configure_project` sets. Kept as one JSON value, so that a new setting is no migration."""

    model_config = ConfigDict(extra="ignore")

    pipeline: tuple[str, ...] = PHASES
    unjudged: tuple[str, ...] = ()
    gates: tuple[Gate, ...] = ()
    sensitive_paths: tuple[str, ...] = ()
    risk_thresholds: Thresholds = Thresholds()
    worker_instructions: str = ""
    judge_instructions: str = ""
    base_branch: str = "main"
    contracts_dir: str | None = None


class ProjectSettings(WorkSettings):
    """The settings, with what identity knows of the project. `prefix` is None until the first issue."""

    project_id: str
    slug: str
    path: str | None
    prefix: str | None


class Projects:
    """The projects of the actor's tenant, as the tracker sees them."""

    def __init__(self, tx: Tx, actor: Actor) -> None:
        self.tx = tx
        self.actor = actor

    def settings(self, project_id: str | None = None) -> ProjectSettings:
        """What is set for the bound project, or another by its id; defaults where nothing is."""
        wanted = project_id or self.actor.project
        row = self.tx.one(_SETTINGS, {"of_tenant": self.actor.tenant, "wanted": wanted})
        if row is None or row.id in self.actor.closed:
            raise NotFound(f"there is no project {wanted}", hint="start with --project-id")
        stored: dict[str, Any] = row.settings or {}
        return ProjectSettings(project_id=row.id, slug=row.slug, path=row.path, prefix=row.prefix, **stored)

    def find(self, slug_or_id: str) -> ProjectSettings:
        """The settings of a project by its slug or id, if the actor has a role there."""
        same = sa.or_(projects.c.id == slug_or_id, sa.func.lower(projects.c.slug) == slug_or_id.lower())
        found = self.tx.scalar(sa.select(projects.c.id).where(projects.c.tenant == self.actor.tenant, same))
        if found is None or found in self.actor.closed:
            raise NotFound(f"there is no project {slug_or_id}", hint="give a project's slug or id")
        return self.settings(found)

    def update(self, *, prefix: str | None = None, **values: Any) -> ProjectSettings:
        """Set some values of the bound project. The prefix can be chosen until the first issue has one."""
        now = self.settings()
        self._ensure(now)
        mine = tracker_projects.c.project_id == now.project_id
        kept = self.tx.one(sa.select(tracker_projects).where(mine).with_for_update())
        assert kept is not None
        stored: dict[str, Any] = kept.settings
        new = WorkSettings(**{**stored, **values})
        self.tx.run(sa.update(tracker_projects).where(mine).values(settings=new.model_dump(mode="json")))
        if prefix is not None and prefix != kept.prefix:
            self._rename(kept, prefix)
        return self.settings()

    def next_identifier(self, project_id: str | None = None) -> tuple[str, int]:
        """A fresh identifier and its number. A call that is refused afterwards gives the number back."""
        wanted = project_id or self.actor.project
        row = self.tx.one(_COUNTED, {"wanted": wanted})
        if row is None:
            self._ensure(self.settings(wanted))
            row = self.tx.one(_COUNTED, {"wanted": wanted})
        assert row is not None
        return identifier(row.prefix, row.next_number - 1), row.next_number - 1

    def lock_settings(self) -> None:
        """Until the end of the transaction nobody else of the tenant sets what has to be looked at first."""
        self.tx.one(sa.select(tenants.c.id).where(tenants.c.id == self.actor.tenant).with_for_update())

    def _rename(self, kept: sa.Row[Any], prefix: str) -> None:
        if kept.next_number > 1:
            raise Conflict(f"issues are called {kept.prefix}-… already", hint="choose a prefix before the first issue")
        taken = sa.select(tracker_projects.c.project_id).where(
            tracker_projects.c.tenant == self.actor.tenant, tracker_projects.c.prefix == prefix
        )
        if self.tx.one(taken) is not None:
            raise Conflict(f"another project has the prefix {prefix}", hint="choose another")
        mine = tracker_projects.c.project_id == kept.project_id
        self.tx.run(sa.update(tracker_projects).where(mine).values(prefix=prefix))

    def _ensure(self, project: ProjectSettings) -> None:
        """The project's row. Of several callers at once one makes it; the others find it."""
        if project.prefix is not None:
            return
        self.lock_settings()
        insert = (sqlite if self.tx.dialect == "sqlite" else postgresql).insert(tracker_projects)
        for prefix in _prefixes(project.slug):
            row = {"project_id": project.project_id, "tenant": self.actor.tenant, "prefix": prefix}
            made = insert.values(**row, next_number=1, settings={}).on_conflict_do_nothing()
            if self.tx.one(made.returning(tracker_projects.c.project_id)) is not None:
                return
            mine = tracker_projects.c.project_id == project.project_id
            if self.tx.one(sa.select(tracker_projects.c.prefix).where(mine)) is not None:
                return


def _prefixes(slug: str) -> Iterator[str]:
    """What a project's issues could be called, from the shortest: SYM, SYMP, …, SYM2, SYM3, …."""
    letters = re.sub(r"[^A-Z0-9]", "", slug.upper()).lstrip("0123456789") or "PRJ"
    letters = letters.ljust(2, "X")
    for length in range(FIRST_PREFIX_LENGTH, min(len(letters), 10) + 1):
        yield letters[:length]
    first = letters[:FIRST_PREFIX_LENGTH]
    yield from ([first] if len(letters) < FIRST_PREFIX_LENGTH else [])
    number = 2
    while True:
        yield f"{first}{number}"
        number += 1

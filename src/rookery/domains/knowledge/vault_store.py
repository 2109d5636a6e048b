"""The setting `vault` of projects: which of their files are knowledge, and whether it can be searched."""

import os
from typing import Any

import sqlalchemy as sa
from pydantic import BaseModel, ConfigDict
from sqlalchemy.dialects import postgresql, sqlite

from rookery.core.actor import Actor
from rookery.core.errors import ConfigurationError, NotFound
from rookery.db.tx import Tx
from rookery.domains.knowledge.tables import vaults
from rookery.identity.store import now_ms
from rookery.identity.tables import projects

_WITH_PROJECT = sa.select(projects.c.id, projects.c.slug, projects.c.path, vaults.c.settings)
_BOUND = (
    _WITH_PROJECT.outerjoin(vaults, vaults.c.project_id == projects.c.id)
    .where(projects.c.tenant == sa.bindparam("of_tenant"), projects.c.id == sa.bindparam("wanted"))
)  # fmt: skip
_ALL = (
    _WITH_PROJECT.join(vaults, vaults.c.project_id == projects.c.id)
    .where(projects.c.tenant == sa.bindparam("of_tenant"))
    .order_by(projects.c.slug)
)


class VaultSettings(BaseModel):
    """What `configure_vault` sets. Kept as one JSON value, so that a new setting is no migration."""

    model_config = ConfigDict(extra="ignore")

    on: bool = True
    folders: tuple[str, ...] = ()
    globs: tuple[str, ...] = ()
    root: str | None = None


class Vault(VaultSettings):
    """The setting, with what identity knows of the project. `configured`: somebody has set it, on or off."""

    project_id: str
    slug: str
    path: str | None
    configured: bool

    @property
    def folder(self) -> str | None:
        """The folder that documents' paths are relative to."""
        return self.root or self.path

    def existing_folder(self) -> str:
        """The same; refused if the project has none, or if it is gone."""
        folder = self.folder
        if folder is None:
            raise ConfigurationError(
                f"project {self.slug} has no folder",
                hint=f"the owner sets one: rookery knowledge vault --project {self.slug} --root FOLDER",
            )
        if not os.path.isdir(folder):
            raise ConfigurationError(
                f"the folder of project {self.slug} is not there: {folder}", hint="the owner mounts it or sets another"
            )
        return folder


class Vaults:
    """The vaults that an actor may see."""

    def __init__(self, tx: Tx, actor: Actor) -> None:
        self.tx = tx
        self.actor = actor

    def bound(self) -> Vault:
        """That of the bound project, whether or not it is set or on."""
        wanted = self.actor.project
        row = self.tx.one(_BOUND, {"of_tenant": self.actor.tenant, "wanted": wanted})
        if row is None or row.id in self.actor.closed:
            raise NotFound(f"there is no project {wanted}", hint="start with --project-id")
        return _vault(row)

    def open(self) -> Vault:
        """That of the bound project, if it is on. Otherwise the error names the setting."""
        found = self.bound()
        if not found.on:
            state = "off" if found.configured else "not set"
            raise ConfigurationError(
                f"the setting vault of project {found.slug} is {state}",
                hint=f"the owner turns it on: rookery knowledge vault --project {found.slug} --on, or configure_vault",
            )
        return found

    def readable(self) -> list[Vault]:
        """Those that are on, of all projects in which the actor has a role."""
        rows = self.tx.all(_ALL, {"of_tenant": self.actor.tenant})
        found = [_vault(row) for row in rows if row.id not in self.actor.closed]
        return [vault for vault in found if vault.on]

    def configure(self, **values: Any) -> Vault:
        """Set some values of the bound project's vault; the others stay. The first time it is on unless said."""
        now = self.bound()
        insert = (sqlite if self.tx.dialect == "sqlite" else postgresql).insert(vaults)
        first = {"project_id": now.project_id, "tenant": self.actor.tenant, "updated_ms": now_ms()}
        self.tx.run(insert.values(**first, settings=VaultSettings().model_dump()).on_conflict_do_nothing())
        mine = vaults.c.project_id == now.project_id
        kept = self.tx.one(sa.select(vaults.c.settings).where(mine).with_for_update())
        assert kept is not None
        stored: dict[str, Any] = kept.settings
        new = VaultSettings(**{**stored, **values}).model_dump(mode="json")
        self.tx.run(sa.update(vaults).where(mine).values(settings=new, updated_ms=now_ms()))
        return self.bound()


def _vault(row: sa.Row[Any]) -> Vault:
    stored: dict[str, Any] = row.settings or {"on": False}
    return Vault(
        project_id=row.id, slug=row.slug, path=row.path, configured=row.settings is not None, **stored
    )  # fmt: skip

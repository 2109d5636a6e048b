"""Which project a call is about, and which part of its folder."""

import os
from dataclasses import dataclass

import sqlalchemy as sa

from rookery.core.actor import Actor
from rookery.core.errors import ConfigurationError, NotFound
from rookery.db.tx import Tx
from rookery.domains.code.indexing import Project
from rookery.files.tree_files import path_parts
from rookery.identity.store import IdentityStore
from rookery.identity.tables import projects

_WITH_FOLDERS = (
    sa.select(projects.c.id, projects.c.slug, projects.c.path)
    .where(projects.c.tenant == sa.bindparam("of_tenant"), projects.c.path.is_not(None))
    .order_by(projects.c.slug)
)


@dataclass(frozen=True, slots=True)
class Asked:
    """What a call names: a project, or a folder of one; neither stands for the project that the caller is bound to."""

    project_id: str | None
    project_dir: str | None
    path: str | None


def place_of(tx: Tx, actor: Actor, asked: Asked) -> tuple[Project, str]:
    """The project and the path inside of it. What the caller may not see is not there."""
    below = path_parts(asked.path, "path") if asked.path else ()
    if asked.project_dir is not None and asked.project_id is None:
        return _containing(tx, actor, asked.project_dir, below)
    wanted = asked.project_id or actor.project
    if not wanted:
        raise NotFound("this session has no project", hint="name one: project_id")
    row = IdentityStore(tx, actor.tenant).project(wanted, actor.closed)
    if row.path is None:
        raise ConfigurationError(
            f"project {row.slug} has no folder", hint="name a project_id that has one; list_projects shows them"
        )
    if not os.path.isdir(row.path):
        raise ConfigurationError(f"the folder of project {row.slug} is not there", hint="the owner mounts it")
    return Project(row.id, row.slug, os.path.realpath(row.path)), "/".join(below)


def _containing(tx: Tx, actor: Actor, folder: str, below: tuple[str, ...]) -> tuple[Project, str]:
    """The innermost project that a folder lies in."""
    wanted = os.path.realpath(folder)
    found: list[Project] = []
    for row in tx.all(_WITH_FOLDERS, {"of_tenant": actor.tenant}):
        root = os.path.realpath(row.path)
        inside = wanted == root or wanted.startswith(root.rstrip("/") + "/")
        if inside and row.id not in actor.closed and os.path.isdir(root):
            found.append(Project(row.id, row.slug, root))
    if not os.path.isabs(folder) or not found:
        raise NotFound("project_dir: is the folder of no project", hint="give project_id instead")
    project = max(found, key=lambda each: len(each.root))
    rest = os.path.relpath(wanted, project.root)
    return project, "/".join((*(() if rest == "." else path_parts(rest, "project_dir")), *below))

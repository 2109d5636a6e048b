"""A place to work at: a fleet whose people and agents make issues, on either database, and real git repositories."""

import os
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from rookery.core.actor import Actor
from rookery.domains.tracker.worktree import Marker, write_marker
from rookery.identity.store import IdentityStore
from rookery.lifecycle.issue_tables import issues
from tests.platform_fixtures import Fleet

GIT_ENVIRONMENT = {
    "GIT_AUTHOR_NAME": "Ada",
    "GIT_AUTHOR_EMAIL": "ada@example.org",
    "GIT_COMMITTER_NAME": "Ada",
    "GIT_COMMITTER_EMAIL": "ada@example.org",
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_CONFIG_SYSTEM": os.devnull,
}


def git(folder: Path | str, *arguments: str) -> str:
    """What git prints, run in `folder` without anybody's settings."""
    environment = {"PATH": os.environ["PATH"], "HOME": str(folder), **GIT_ENVIRONMENT}
    done = subprocess.run(
        ["git", *arguments], cwd=folder, env=environment, check=True, capture_output=True, text=True, timeout=60
    )
    return done.stdout


@dataclass(frozen=True)
class Worktree:
    """A worktree of one issue, marked as its own."""

    path: Path
    branch: str

    def commit(self, name: str, text: str, message: str = "work") -> None:
        file = self.path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
        git(self.path, "add", "-A")
        git(self.path, "commit", "-q", "-m", message)


class Desk:
    """Speaks to the platform as people and agents do."""

    def __init__(self, fleet: Fleet, folder: Path) -> None:
        self.fleet = fleet
        self.folder = folder

    @property
    def owner(self) -> Actor:
        return self.fleet.owner

    @property
    def stranger(self) -> Actor:
        """The owner of another tenant on the same database."""
        self.fleet.platform.database.direct(lambda tx: IdentityStore(tx, "other").set_up(), write=True)
        return self.fleet.actor(tenant="other", as_owner=True)

    def person(self, project: str = "default") -> Actor:
        """The owner, bound to a project."""
        return self.fleet.actor(as_owner=True, project=project)

    async def call(self, actor: Actor, tool: str, /, **arguments: Any) -> Any:
        return await self.fleet.call(actor, tool, **arguments)

    def actor(self, profile: str | None, issue: Any = None, **binding: Any) -> Actor:
        """A session of an agent with this profile, bound to the issue (a row, an id or an identifier)."""
        bound = getattr(issue, "id", issue)
        return self.fleet.actor(profile=profile, issue=bound, **binding)

    async def issue(
        self,
        title: str = "login fails",
        *,
        phase: str = "ready",
        status: str = "in_progress",
        project: str = "default",
        **fields: Any,
    ) -> sa.Row[Any]:
        """An issue made by a person, in the given phase and status."""
        person = self.person(project)
        labels = [f"phase:{phase}", *fields.pop("labels", [])]
        made = await self.call(person, "create_issue", title=title, labels=labels, **fields)
        for step in ROADS[status]:
            await self.call(person, "set_issue_status", issue_id=made.id, status=step)
        return self.reload(made.id)

    def reload(self, issue: Any) -> sa.Row[Any]:
        """The issue's row as it is now."""
        return self.rows(sa.select(issues).where(issues.c.id == getattr(issue, "id", issue)))[0]

    def rows(self, statement: sa.Executable) -> Sequence[sa.Row[Any]]:
        """What the database has, to see what was and what was not written."""
        return self.fleet.platform.database.direct(lambda tx: tx.all(statement))

    def count(self, table: sa.Table) -> int:
        return self.rows(sa.select(sa.func.count()).select_from(table))[0][0]

    def change(self, statement: sa.Executable) -> None:
        """Change the database behind everybody's back, such as the time until which a lease holds."""
        self.fleet.platform.database.direct(lambda tx: tx.run(statement), write=True)

    async def project(self, slug: str, path: Path | None = None) -> Any:
        """Another project of the same tenant."""
        arguments = {"slug": slug} | ({"path": str(path)} if path is not None else {})
        return await self.call(self.owner, "create_project", **arguments)

    async def git_project(self, slug: str = "repo") -> Path:
        """A project whose folder is a real git repository with one commit on main."""
        folder = self.folder / slug
        folder.mkdir()
        git(folder, "init", "-q", "-b", "main")
        (folder / "README.md").write_text("# A project\n", encoding="utf-8")
        git(folder, "add", "-A")
        git(folder, "commit", "-q", "-m", "first")
        await self.project(slug, folder)
        return folder

    def worktree(self, repository: Path, issue: sa.Row[Any]) -> Worktree:
        """A worktree for the issue on a branch of its own, marked."""
        branch = f"symphony/{issue.identifier}"
        folder = self.folder / "worktrees" / issue.identifier
        git(repository, "worktree", "add", "-q", "-b", branch, str(folder), "main")
        write_marker(str(folder), Marker(issue=issue.identifier, issue_id=issue.id, branch=branch))
        return Worktree(folder, branch)


ROADS: dict[str, tuple[str, ...]] = {
    "todo": (),
    "in_progress": ("in_progress",),
    "review": ("in_progress", "review"),
    "blocked": ("in_progress", "blocked"),
    "done": ("in_progress", "review", "done"),
    "cancelled": ("cancelled",),
}

"""A place where work is done: a fleet, a project that is a real git repository, and agents that obey a script."""

import asyncio
import os
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

import sqlalchemy as sa

from rookery.core.actor import Actor
from rookery.core.errors import ServiceUnavailable
from rookery.domains.work.project_settings import configure_work
from rookery.domains.work.tables import work_tasks
from rookery.identity.store import IdentityStore
from rookery.lifecycle.sessions import Runtime
from tests.jobs.working import running_worker, settled
from tests.platform_fixtures import Fleet
from tests.sessions.stage import use_sessions

GIT_ENVIRONMENT = {
    "GIT_AUTHOR_NAME": "Ada",
    "GIT_AUTHOR_EMAIL": "ada@example.org",
    "GIT_COMMITTER_NAME": "Ada",
    "GIT_COMMITTER_EMAIL": "ada@example.org",
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_CONFIG_SYSTEM": os.devnull,
}
PROJECT = "shop"


def git(folder: Path | str, *arguments: str) -> str:
    """What git prints, run in `folder` without anybody's settings."""
    environment = {"PATH": os.environ["PATH"], "HOME": str(folder), **GIT_ENVIRONMENT}
    done = subprocess.run(
        ["git", *arguments], cwd=folder, env=environment, check=True, capture_output=True, text=True, timeout=60
    )
    return done.stdout.strip()


def make_repository(folder: Path) -> Path:
    """A repository with one commit on main."""
    folder.mkdir(parents=True)
    git(folder, "init", "-q", "-b", "main")
    (folder / "README.md").write_text("# A shop\n", encoding="utf-8")
    git(folder, "add", "-A")
    git(folder, "commit", "-q", "-m", "first")
    return folder


class Workshop:
    """Speaks to the platform as people and agents do. The project `shop` has the folder `repository`."""

    def __init__(self, fleet: Fleet, folder: Path) -> None:
        self.fleet = fleet
        self.folder = folder
        self.repository = make_repository(folder / "code" / PROJECT)
        use_sessions(fleet.platform)

    @property
    def worktrees(self) -> Path:
        """Where working trees are while tasks run."""
        return self.folder / "code" / ".rookery-worktrees"

    def use(self, runtime: Runtime | None) -> None:
        cast("dict[str, Any]", self.fleet.platform.calls.facts)["runtime"] = runtime

    async def open(self, **settings: Any) -> None:
        """The project, and how its work is checked."""
        await self.call(self.fleet.owner, "create_project", slug=PROJECT, path=str(self.repository))
        if settings:
            await self.configure(**settings)

    async def configure(self, **settings: Any) -> Any:
        return (await self.fleet.platform.calls.run(self.person(), configure_work, settings)).value

    def person(self, project: str = PROJECT) -> Actor:
        return self.fleet.actor(as_owner=True, project=project)

    def agent(self, name: str | None = None, **binding: Any) -> Actor:
        return self.fleet.actor(**{"agent": name, "project": PROJECT, **binding})

    async def new_agent(self, name: str) -> Actor:
        await self.call(self.fleet.owner, "create_agent", name=name)
        return self.agent(name)

    @property
    def stranger(self) -> Actor:
        """The owner of another tenant on the same database."""
        self.fleet.platform.database.direct(lambda tx: IdentityStore(tx, "other").set_up(), write=True)
        return self.fleet.actor(tenant="other", as_owner=True)

    async def call(self, actor: Actor, tool: str, /, **arguments: Any) -> Any:
        return await self.fleet.call(actor, tool, **arguments)

    async def create(self, description: str = "fix the login", actor: Actor | None = None, **arguments: Any) -> Any:
        return await self.call(actor or self.agent(), "create_work_task", description=description, **arguments)

    async def work(self, *script: str, actor: Actor | None = None) -> sa.Row[Any]:
        """A task with this script, done by a worker; its row afterwards."""
        made = await self.create("\n".join(script), actor)
        await self.done()
        return self.row(made.id)

    async def done(self, within_s: float = 60.0) -> None:
        """Let a worker do everything that is due, retries of the next minute included."""
        async with running_worker(self.fleet.platform):
            await settled(self.fleet.platform, within_s=within_s)

    def row(self, task_id: str) -> sa.Row[Any]:
        return self.rows(sa.select(work_tasks).where(work_tasks.c.id == task_id))[0]

    def rows(self, statement: sa.Executable) -> Sequence[sa.Row[Any]]:
        return self.fleet.platform.database.direct(lambda tx: tx.all(statement))

    def change(self, statement: sa.Executable) -> None:
        """Change the database behind everybody's back."""
        self.fleet.platform.database.direct(lambda tx: tx.run(statement), write=True)

    def count(self, table: sa.Table = work_tasks) -> int:
        return self.rows(sa.select(sa.func.count()).select_from(table))[0][0]

    def log(self, branch: str) -> list[str]:
        """The subjects of the commits that a branch has and main has not, oldest first."""
        return git(self.repository, "log", "--reverse", "--format=%s", f"main..{branch}").splitlines()

    def shown(self, branch: str, path: str) -> str:
        """A file as it is on a branch."""
        return git(self.repository, "show", f"{branch}:{path}")


class Listening:
    """The scripted runtime, which also keeps what it was asked for, or fails at first."""

    def __init__(
        self,
        workshop: Workshop,
        prompts: list[str],
        actors: list[Any] | None = None,
        *,
        failures: int = 0,
        leave_branch: bool = False,
    ) -> None:
        self.inner = use_sessions(workshop.fleet.platform)
        self.prompts = prompts
        self.actors = actors if actors is not None else []
        self.failures = failures
        self.leave_branch = leave_branch

    async def start_session(self, actor: Any, prompt: str, **how: Any) -> Any:
        if self.failures:
            self.failures -= 1
            raise ServiceUnavailable("the model is away")
        self.prompts.append(prompt)
        self.actors.append(actor)
        if self.leave_branch:
            await asyncio.to_thread(git, how["cwd"], "checkout", "-q", "-B", "elsewhere")
        return await self.inner.start_session(actor, prompt, **how)

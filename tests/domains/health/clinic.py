"""A place where code is looked at: a fleet, and a project with a folder of its own."""

import asyncio
import os
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from rookery.core.actor import Actor
from rookery.core.context import SilentDoor
from rookery.domains.health.project_settings import configure_health
from rookery.domains.health.tables import health_snapshots
from rookery.identity.store import IdentityStore
from tests.platform_fixtures import Fleet

PROJECT = "shop"
DAY_MS = 86_400_000


class Watcher(SilentDoor):
    """A caller that keeps what it is told."""

    def __init__(self) -> None:
        self.told: list[tuple[float, float, str]] = []

    def tell(self, method: str, params: dict[str, Any]) -> None:
        if method == "progress":
            self.told.append((params["progress"], params["total"], params["message"]))


class Clinic:
    """Speaks to the platform as people and agents do. The project `shop` has the folder `code`."""

    def __init__(self, fleet: Fleet, folder: Path) -> None:
        self.fleet = fleet
        self.code = folder / "code"
        self.code.mkdir()

    async def open(self, **settings: Any) -> None:
        """The project, and what is looked at in it."""
        await self.call(self.fleet.owner, "create_project", slug=PROJECT, path=str(self.code))
        if settings:
            await self.configure(**settings)

    async def configure(self, **settings: Any) -> Any:
        return (await self.fleet.platform.calls.run(self.person, configure_health, settings)).value

    @property
    def person(self) -> Actor:
        return self.fleet.actor(as_owner=True, project=PROJECT)

    def agent(self, name: str | None = None, project: str = PROJECT) -> Actor:
        return self.fleet.actor(agent=name, project=project)

    async def shut_out(self, name: str) -> Actor:
        """An agent that has no role in the project."""
        await self.call(self.fleet.owner, "create_agent", name=name)
        await self.call(self.fleet.owner, "set_project_members", project=PROJECT, agents=["default"])
        return self.agent(name, "default")

    @property
    def stranger(self) -> Actor:
        """The owner of another tenant on the same database."""
        self.fleet.platform.database.direct(lambda tx: IdentityStore(tx, "other").set_up(), write=True)
        return self.fleet.actor(tenant="other", as_owner=True)

    async def call(self, actor: Actor, tool: str, /, **arguments: Any) -> Any:
        return await self.fleet.call(actor, tool, **arguments)

    async def collect(self, actor: Actor | None = None, **arguments: Any) -> Any:
        return await self.call(actor or self.agent(), "collect_health", **arguments)

    async def record(self, **counts: int) -> Any:
        return await self.call(self.agent(), "record_health_snapshot", counts=counts)

    async def trends(self, **arguments: Any) -> Any:
        return await self.call(self.agent(), "check_health_trends", **{"project_id": PROJECT, **arguments})

    def write(self, path: str, text: str | bytes) -> Path:
        """A file of the project."""
        place = self.code / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(text.encode() if isinstance(text, str) else text)
        return place

    def rows(self, table: sa.Table = health_snapshots) -> Sequence[sa.Row[Any]]:
        return self.fleet.platform.database.direct(lambda tx: tx.all(sa.select(table)))

    def change(self, statement: sa.Executable) -> None:
        """Change the database behind everybody's back."""
        self.fleet.platform.database.direct(lambda tx: tx.run(statement), write=True)

    def age(self, snapshot_id: str, days: float) -> None:
        """Let a snapshot be older than it is."""
        at = health_snapshots.c.collected_ms
        mine = sa.update(health_snapshots).where(health_snapshots.c.id == snapshot_id)
        self.change(mine.values(collected_ms=at - round(days * DAY_MS)))


async def there(path: Path, within_s: float = 20.0) -> str:
    """What a file says, as soon as it is there."""
    deadline = time.monotonic() + within_s
    while not path.exists():
        assert time.monotonic() < deadline, f"{path} has not come"
        await asyncio.sleep(0.01)
    return path.read_text()


async def gone(process: int, within_s: float = 10.0) -> None:
    """Wait until a process has ended; one that nobody has reaped yet counts as ended."""
    deadline = time.monotonic() + within_s
    while time.monotonic() < deadline:
        try:
            os.kill(process, 0)
            if Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] == "Z":
                return
        except (ProcessLookupError, FileNotFoundError):
            return
        await asyncio.sleep(0.01)
    raise AssertionError(f"process {process} is still there")

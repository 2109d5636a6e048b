"""Sessions of profiles that keep memory files, and a look at the rows and files behind them."""

from pathlib import Path
from typing import Any

import sqlalchemy as sa

from rookery.core.actor import Actor
from rookery.domains.memory.file_tables import memory_files
from rookery.identity.store import IdentityStore
from tests.platform_fixtures import Fleet

WORDS = "abandon abandon abandon abandon abandon abandon abandon abandon abandon abandon abandon about"
"""Twelve words of BIP-39 with a right checksum, known to everybody."""


class Shelves:
    """One server and its home."""

    def __init__(self, fleet: Fleet) -> None:
        self.fleet = fleet
        self.home = Path(fleet.platform.settings.home)

    @property
    def memory(self) -> Path:
        return self.home / "data" / "memory"

    def worker(self, **binding: Any) -> Actor:
        return self.fleet.actor(**{"profile": "worker", **binding})

    def stranger(self, tenant: str = "other") -> Actor:
        """A worker of another tenant on the same database."""
        self.fleet.platform.database.direct(lambda tx: IdentityStore(tx, tenant).set_up(), write=True)
        return self.worker(tenant=tenant)

    async def project(self, slug: str) -> None:
        await self.fleet.call(self.fleet.owner, "create_project", slug=slug)

    async def update(self, actor: Actor, content: str, filename: str = "notes.md", scope: str = "project") -> Any:
        return await self.fleet.call(actor, "update_memory", scope=scope, filename=filename, content=content)

    def told(self, actor: Actor) -> str:
        """What a session of this actor is told at its start, besides who it is."""
        platform = self.fleet.platform
        return platform.database.direct(lambda tx: platform.resolver.prompt_additions(tx, actor))

    def rows(self) -> list[sa.Row[Any]]:
        found = sa.select(memory_files).order_by(memory_files.c.folded)
        return list(self.fleet.platform.database.direct(lambda tx: tx.all(found)))

    def files(self) -> list[str]:
        """Every file in the home's memory folder, from there on."""
        return sorted(str(path.relative_to(self.memory)) for path in self.memory.rglob("*") if not path.is_dir())

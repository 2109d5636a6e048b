"""A project with source files, and agents that ask about them."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from rookery.core.actor import Actor
from rookery.domains.code.tables import files, segments, words
from rookery.domains.code.trees import Watched, trees_of
from rookery.identity.store import IdentityStore
from tests.platform_fixtures import Fleet


class Codebase:
    """Speaks to the platform as agents do. The project `code` has the folder `root`."""

    def __init__(self, fleet: Fleet, folder: Path) -> None:
        self.fleet = fleet
        self.folder = folder
        self.root = folder / "root"
        self.root.mkdir()

    async def open(self, contents: Mapping[str, str | bytes] | None = None, slug: str = "code") -> Actor:
        """The project with these files, and an agent that is bound to it."""
        for path, content in (contents or {}).items():
            self.write(path, content)
        await self.fleet.call(self.fleet.owner, "create_project", slug=slug, path=str(self.root))
        return self.fleet.actor(project=slug)

    def write(self, path: str, content: str | bytes) -> Path:
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content.encode() if isinstance(content, str) else content)
        return file

    async def symbols(self, actor: Actor, query: str | None = None, **how: Any) -> list[str]:
        """The symbols that are found, as `path:lines kind name`."""
        asked = how if query is None else {"query": query, **how}
        found = await self.fleet.call(actor, "code_symbols", **asked)
        return [
            f"{each['path']}:{each['start_line']}-{each['end_line']} {each['kind']} {each['name']}"
            for each in found.symbols
        ]

    async def references(self, actor: Actor, symbol: str, **how: Any) -> list[str]:
        """The references that are found, as `path:line`, with what they are in."""
        found = await self.fleet.call(actor, "find_references", symbol=symbol, **how)
        return [
            f"{each['path']}:{each['line']}" + (f" in {each['in']['name']}" if "in" in each else "")
            for each in found.references
        ]

    @property
    def stranger(self) -> Actor:
        """The owner of another tenant on the same database."""
        self.fleet.platform.database.direct(lambda tx: IdentityStore(tx, "other").set_up(), write=True)
        return self.fleet.actor(tenant="other", as_owner=True)

    @property
    def watched(self) -> Watched:
        """What the process knows of the project's tree."""
        project = self.fleet.platform.database.direct(lambda tx: IdentityStore(tx, "default").project("code"))
        return trees_of(self.fleet.platform.calls).of(project.id, str(self.root.resolve()))

    def rows(self, statement: sa.Executable) -> Sequence[sa.Row[Any]]:
        return self.fleet.platform.database.direct(lambda tx: tx.all(statement))

    @property
    def kept(self) -> dict[str, str]:
        """The paths of all files in the index, with their languages."""
        return {row.path: row.language for row in self.rows(sa.select(files.c.path, files.c.language))}

    def count(self, what: str) -> int:
        table = {"segments": segments, "words": words}[what]
        return self.rows(sa.select(sa.func.count()).select_from(table))[0][0]

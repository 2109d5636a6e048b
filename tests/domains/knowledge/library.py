"""A place with documents: a fleet, projects with folders of files, and an embedder that needs no model."""

import hashlib
import struct
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, cast

import sqlalchemy as sa

from rookery.core.actor import Actor
from rookery.domains.knowledge.tables import chunks, documents
from rookery.embedding.embedder import Embedder
from rookery.identity.store import IdentityStore
from tests.platform_fixtures import Fleet

DIMS = 512
SAME = {"automobile": "car", "lorry": "truck", "kitten": "feline"}
"""What the fake model takes for one thing, so that meaning finds what words do not."""


class HashEmbedder:
    """A vector with one direction for each word, told by its hash; some words mean the same."""

    name = "hash-512"
    dims = DIMS

    def __init__(self, name: str = name, same: Mapping[str, str] = SAME) -> None:
        self.name = name
        self.embedded: list[str] = []
        self._same = same

    def embed(self, texts: Sequence[str]) -> list[bytes]:
        self.embedded += texts
        return [self._vector(text) for text in texts]

    def _vector(self, text: str) -> bytes:
        numbers = [0.0] * DIMS
        for word in text.lower().split():
            known = self._same.get(word, word)
            numbers[int.from_bytes(hashlib.sha256(known.encode()).digest()[:4], "big") % DIMS] += 1.0
        length = sum(number * number for number in numbers) ** 0.5 or 1.0
        return struct.pack(f"<{DIMS}e", *(number / length for number in numbers))


class Library:
    """Speaks to the platform as people and agents do. The project `docs` has the folder `root` and an open vault."""

    def __init__(self, fleet: Fleet, folder: Path, embedder: Embedder | None) -> None:
        self.fleet = fleet
        self.root = folder / "root"
        self.root.mkdir()
        self.folder = folder
        self.use(embedder)

    def use(self, embedder: Embedder | None) -> None:
        facts = cast("dict[str, Any]", self.fleet.platform.calls.facts)
        facts["embedder"] = lambda: embedder

    async def open(self, slug: str = "docs", root: Path | None = None, **settings: Any) -> None:
        """A project with a folder and a vault."""
        folder = self.root if root is None else root
        await self.call(self.fleet.owner, "create_project", slug=slug, path=str(folder))
        await self.call(self.person(slug), "configure_vault", **({"on": True} | settings))

    def person(self, project: str | None = "docs") -> Actor:
        return self.fleet.actor(as_owner=True, project=project)

    def worker(self, project: str | None = "docs", **binding: Any) -> Actor:
        return self.fleet.actor(profile="worker", project=project, **binding)

    @property
    def stranger(self) -> Actor:
        """The owner of another tenant on the same database."""
        self.fleet.platform.database.direct(lambda tx: IdentityStore(tx, "other").set_up(), write=True)
        return self.fleet.actor(tenant="other", as_owner=True)

    async def call(self, actor: Actor, tool: str, /, **arguments: Any) -> Any:
        return await self.fleet.call(actor, tool, **arguments)

    def write(self, path: str, content: str | bytes, root: Path | None = None) -> Path:
        file = (self.root if root is None else root) / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content.encode() if isinstance(content, str) else content)
        return file

    async def index(self, path: str, content: str | bytes | None = None, project: str = "docs") -> Any:
        """Write a file, if its content is given, and have it indexed by an agent."""
        if content is not None:
            self.write(path, content)
        return await self.call(self.worker(project), "vault_update", path=path)

    async def search(self, query: str, actor: Actor | None = None, **how: Any) -> Any:
        return await self.call(actor or self.worker(), "search_knowledge", query=query, **how)

    def rows(self, statement: sa.Executable) -> Sequence[sa.Row[Any]]:
        return self.fleet.platform.database.direct(lambda tx: tx.all(statement))

    @property
    def kept(self) -> dict[str, int]:
        """The paths of all documents, with the number of chunks that are really there."""
        mine = sa.func.count(chunks.c.seq).label("number")
        joined = sa.outerjoin(documents, chunks, chunks.c.document_id == documents.c.id)
        found = self.rows(sa.select(documents.c.path, mine).select_from(joined).group_by(documents.c.path))
        return {row.path: row.number for row in found}

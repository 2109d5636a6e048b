"""Keeps memory files as rows, which are what counts, sealed where there is a key. The files on disk are copies."""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import sqlalchemy as sa

from rookery.core.errors import ConfigurationError, Conflict
from rookery.db.tx import Tx
from rookery.domains.memory.file_tables import memory_files
from rookery.identity.store import now_ms
from rookery.sealing.key_table import current_version, prefer, refuse_plain
from rookery.sealing.keyring import Keyring

GLOBAL = "_global"
"""Stands for the whole tenant. No project is called so: slugs begin with a letter or a digit."""
PURPOSE = "memory-files"
MAX_FILES = 100


@dataclass(frozen=True, slots=True)
class Shelf:
    """Whose files: those of one profile, in one project or in the whole tenant."""

    tenant: str
    scope_slug: str
    profile: str


def _bound(*names: str) -> list[sa.ColumnElement[bool]]:
    return [memory_files.c[name] == sa.bindparam(name) for name in names]


_SHELF = _bound("tenant", "scope_slug", "profile")
_OF = sa.select(memory_files).where(*_SHELF).order_by(memory_files.c.folded)
_ONE = sa.select(memory_files).where(*_SHELF, *_bound("folded"))
_OTHERS = sa.select(sa.func.count()).where(*_SHELF, memory_files.c.folded != sa.bindparam("folded"))
_SHELVES = sa.select(*(memory_files.c[name] for name in ("tenant", "scope_slug", "profile"))).distinct()
# Another spelling of a name that is taken meets the row and leaves it as it is.
_PUT = sa.text(
    "INSERT INTO memory_files "
    "(tenant, scope_slug, profile, folded, filename, content, key_version, author, updated_ms) VALUES "
    "(:tenant, :scope_slug, :profile, :folded, :filename, :content, :key_version, :author, :updated_ms) "
    "ON CONFLICT (tenant, scope_slug, profile, folded) DO UPDATE SET content = excluded.content, "
    "key_version = excluded.key_version, author = excluded.author, updated_ms = excluded.updated_ms "
    "WHERE memory_files.filename = excluded.filename RETURNING filename"
)
_OTHER_KEY = (
    sa.select(memory_files)
    .where(memory_files.c.key_version.is_distinct_from(sa.bindparam("key_version")))
    .order_by(memory_files.c.tenant, memory_files.c.scope_slug, memory_files.c.profile, memory_files.c.folded)
    .limit(sa.bindparam("limit"))
)
_RESEALED = (
    sa.update(memory_files)
    .where(
        *(memory_files.c[name] == sa.bindparam(f"at_{name}") for name in ("tenant", "scope_slug", "profile", "folded")),
        memory_files.c.content == sa.bindparam("before"),
    )
    .values(content=sa.bindparam("after"), key_version=sa.bindparam("version"))
)


class MemoryFiles:
    """The files of every shelf. `keyring` seals what is written and opens what is read; without one all is plain."""

    def __init__(self, tx: Tx, keyring: Keyring | None = None) -> None:
        self.tx = tx
        self.keyring = keyring

    def put(self, shelf: Shelf, filename: str, content: str, author: str) -> None:
        """Write the whole file. Of two writers the one that commits last is kept.

        Refused: one file more than a shelf holds, a name that differs from another only in its case, and plain text
        over what is sealed.
        """
        values = {**asdict(shelf), "folded": filename.lower()}
        before = self.tx.one(_ONE, values)
        if self.keyring is None and before is not None and before.key_version is not None:
            raise _without_key(before)
        if self.keyring is None:
            refuse_plain(self.tx)
        if self.tx.scalar(_OTHERS, values) >= MAX_FILES:
            raise Conflict(
                f"there are {MAX_FILES} memory files here already", hint="write what you know into one of those"
            )
        sealed, version = self._sealed(shelf, filename, content)
        values |= {"filename": filename, "content": sealed, "key_version": version, "author": author}
        if self.tx.one(_PUT, {**values, "updated_ms": now_ms()}) is None:
            taken = self.tx.one(_ONE, values)
            raise Conflict(
                f"there is a memory file {taken.filename if taken else filename.lower()} already",
                hint="use its spelling, or another name",
            )

    def of(self, shelf: Shelf) -> Sequence[sa.Row[Any]]:
        """The rows of a shelf, by filename."""
        return self.tx.all(_OF, asdict(shelf))

    def find(self, shelf: Shelf, filename: str) -> sa.Row[Any] | None:
        row = self.tx.one(_ONE, {**asdict(shelf), "folded": filename.lower()})
        return row if row is not None and row.filename == filename else None

    def shelves(self) -> list[Shelf]:
        """Every shelf that has a file, of whichever tenant."""
        return [Shelf(*row) for row in self.tx.all(_SHELVES)]

    def open(self, row: sa.Row[Any]) -> str:
        """The text of a row. One that was sealed with a key that is not here is a ConfigurationError."""
        if row.key_version is None:
            return row.content.decode()
        if self.keyring is None:
            raise _without_key(row)
        return self.keyring.open(PURPOSE, row.content, _about(_shelf_of(row), row.filename))

    def reseal(self, new: Keyring, limit: int = 100) -> int:
        """Seal up to `limit` rows with the new key, plain ones too, and say how many. Zero: all have it.

        The files on disk are as before until `repair_copies` runs.
        """
        version = current_version(self.tx, new)
        rows = self.tx.all(_OTHER_KEY, {"key_version": version, "limit": limit})
        if rows:
            prefer(self.tx, version)
        for row in rows:
            shelf = _shelf_of(row)
            after = new.seal(PURPOSE, self.open(row), _about(shelf, row.filename))
            at = {f"at_{name}": value for name, value in asdict(shelf).items()} | {"at_folded": row.folded}
            self.tx.run(_RESEALED, [{**at, "before": row.content, "after": after, "version": version}])
        return len(rows)

    def _sealed(self, shelf: Shelf, filename: str, content: str) -> tuple[bytes, int | None]:
        if self.keyring is None:
            return content.encode(), None
        return self.keyring.seal(PURPOSE, content, _about(shelf, filename)), current_version(self.tx, self.keyring)


def _without_key(row: sa.Row[Any]) -> ConfigurationError:
    return ConfigurationError(
        f"the memory file {row.filename} is sealed and no key is set",
        hint="start the server with the ROOKERY_MNEMONIC or the key file that sealed it",
    )


def _shelf_of(row: sa.Row[Any]) -> Shelf:
    return Shelf(row.tenant, row.scope_slug, row.profile)


def _about(shelf: Shelf, filename: str) -> str:
    """The row's identity, so that what was sealed for one profile does not open as another's."""
    return json.dumps([shelf.tenant, shelf.scope_slug, shelf.profile, filename])

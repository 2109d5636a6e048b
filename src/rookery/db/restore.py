"""Puts a backup back. What it replaces is kept first, so that a restore can be undone by another one."""

import contextlib
import os
import secrets
import sqlite3
import tempfile
import time
from collections.abc import Generator, Mapping
from dataclasses import dataclass
from urllib.parse import quote

import sqlalchemy as sa
from sqlalchemy import exc

from rookery.core.errors import ConfigurationError, InvalidParams
from rookery.db.database import Database, open_database
from rookery.db.migrate import OWN, Plan, migrate
from rookery.db.server_lock import server_lock
from rookery.db.tx import Tx

SQLITE_HEADER = b"SQLite format 3\x00"
DUMP_HEADER = b"PGDMP"
DAMAGED = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)


@dataclass(frozen=True, slots=True)
class Restored:
    """What `restore` did: where the replaced database is kept, and the steps that the backup lacked."""

    kept: str | None
    applied: list[str]


def sqlite_file(url: str) -> str | None:
    """The file of an SQLite database, None for any other."""
    parsed = sa.make_url(url)
    return parsed.database if parsed.get_backend_name() == "sqlite" else None


def restore(url: str, file: str, plan: Plan, *, home: str, backups: str) -> Restored:
    """Replace the database at `url` by the backup `file`, all of it or nothing, and bring it up to date.

    Refused while a server runs on `home`, and for a file that is no backup of Rookery or is newer than `plan`. The
    replaced database is kept in `backups`.
    """
    path = sqlite_file(url)
    _expect_kind(file, SQLITE_HEADER if path is not None else DUMP_HEADER)
    os.makedirs(home, mode=0o700, exist_ok=True)
    with (
        server_lock(home, hint="stop it, then restore again"),
        tempfile.TemporaryDirectory(prefix="restore-", dir=home) as workshop,
    ):
        if path is not None:
            return _restore_sqlite(path, file, plan, backups, workshop)
        from rookery.db.restore_postgres import restore_postgres

        return restore_postgres(url, file, plan, backups, workshop)


def _expect_kind(file: str, header: bytes) -> None:
    with open(file, "rb") as stream:
        start = stream.read(len(SQLITE_HEADER))
    if start.startswith(header):
        return
    kinds = {SQLITE_HEADER: "SQLite", DUMP_HEADER: "PostgreSQL"}
    found = next((name for known, name in kinds.items() if start.startswith(known)), None)
    if found is None:
        raise InvalidParams(f"{file} is not a backup", hint="rookery backup makes one")
    raise InvalidParams(
        f"{file} is a backup of a {found} database, and this one is {kinds[header]}",
        hint="set `database` in rookery.toml to a database of the same kind",
    )


def label() -> str:
    """Part of the name of what is kept: two restores within a second must not write over each other's."""
    return f"before-restore-{secrets.token_hex(4)}"


def refuse_newer(file: str, applied: Mapping[str, int], plan: Plan) -> None:
    """Refuse a backup with steps that this program does not know, or with none at all."""
    if not applied:
        raise InvalidParams(f"{file} is not a database of Rookery", hint="rookery backup makes one")
    for domain, steps in {"db": OWN, **plan}.items():
        newest = max((step.number for step in steps), default=0)
        if applied.get(domain, 0) > newest:
            raise ConfigurationError(
                f"the {domain} schema of {file} is at {applied[domain]}, this program knows {newest}",
                hint="restore it with the newer version of Rookery",
            )


def epochs_of(tx: Tx) -> dict[str, int]:
    """How often what other processes cache has changed; nothing for a database without tables."""
    if not sa.inspect(tx.connection).has_table("epochs"):
        return {}
    return {row.name: row.value for row in tx.all(sa.text("SELECT name, value FROM epochs"))}


def outdate_caches(database: Database, before: Mapping[str, int]) -> None:
    """Make every cache of the replaced database out of date, though the backup's own count may be lower."""

    def bump(tx: Tx) -> None:
        for name in {*before, *epochs_of(tx)}:
            raised = (
                "INSERT INTO epochs (name, value) VALUES (:name, :before) ON CONFLICT (name) DO UPDATE "
                "SET value = CASE WHEN epochs.value > excluded.value THEN epochs.value ELSE excluded.value END"
            )
            tx.run(sa.text(raised).bindparams(name=name, before=before.get(name, 0)))
            tx.bump(name)

    database.direct(bump, write=True)


def _restore_sqlite(path: str, file: str, plan: Plan, backups: str, workshop: str) -> Restored:
    """The backup is brought up to date on a copy; then one transaction puts it in place of the old database."""
    if os.path.exists(path) and os.path.samefile(path, file):
        raise InvalidParams(f"{file} is the database itself", hint="name a backup of it")
    refuse_newer(file, _applied_steps(file), plan)
    kept, before = _keep_sqlite(path, backups)
    draft = os.path.join(workshop, "draft.db")
    with _reading(file) as source, contextlib.closing(sqlite3.connect(draft)) as copy:
        source.backup(copy)
    database = open_database(f"sqlite:///{draft}")
    try:
        applied = migrate(database, plan, None).applied
        outdate_caches(database, before)
    finally:
        database.close()
    _copy_over(draft, path)
    return Restored(kept, applied)


def _copy_over(draft: str, path: str) -> None:
    # Imported here: the module of the dialect is the only one that may know how its writers wait for each other.
    from rookery.db.file_lock import FileLock

    os.makedirs(os.path.dirname(path) or ".", mode=0o700, exist_ok=True)
    lock = FileLock(path)
    try:
        with (
            lock,
            contextlib.closing(sqlite3.connect(draft)) as source,
            contextlib.closing(sqlite3.connect(path, timeout=30)) as target,
        ):
            source.backup(target)
    finally:
        lock.close()
    os.chmod(path, 0o600)


@contextlib.contextmanager
def _reading(file: str) -> Generator[sqlite3.Connection]:
    """The file as it is; nothing is created beside it. A log that lies beside it counts."""
    still = "" if os.path.exists(f"{file}-wal") else "&immutable=1"
    uri = f"file:{quote(os.path.abspath(file))}?mode=ro{still}"
    with contextlib.closing(sqlite3.connect(uri, uri=True)) as connection:
        yield connection


def _applied_steps(file: str) -> dict[str, int]:
    """The newest step of each domain in a backup; a damaged file is refused."""
    try:
        with _reading(file) as connection:
            state = connection.execute("PRAGMA quick_check(1)").fetchone()[0]
            if state != "ok":
                raise InvalidParams(f"{file} is damaged: {state}", hint="use another backup")
            if not connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'schema_migrations'").fetchone():
                return {}
            found = connection.execute("SELECT domain, max(number) FROM schema_migrations GROUP BY domain")
            return dict(found.fetchall())
    except sqlite3.DatabaseError as error:
        raise InvalidParams(f"{file} cannot be read: {error}", hint="use another backup") from error


def _keep_sqlite(path: str, backups: str) -> tuple[str | None, dict[str, int]]:
    """Where the present database is kept, and its epochs. One too damaged to be copied is moved away whole."""
    if not os.path.exists(path):
        return None, {}
    database = open_database(f"sqlite:///{path}")
    try:
        return database.backup(backups, label()), database.direct(epochs_of)
    except (sqlite3.DatabaseError, exc.DatabaseError) as error:
        cause = error.orig if isinstance(error, exc.DatabaseError) else error
        if getattr(cause, "sqlite_errorcode", None) not in DAMAGED:
            raise
    finally:
        database.close()
    stamp = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime())
    os.makedirs(backups, mode=0o700, exist_ok=True)
    target = os.path.join(backups, f"rookery-{stamp}-{os.getpid()}-damaged.db")
    for suffix in ("", "-wal", "-shm"):
        if os.path.exists(path + suffix):
            os.replace(path + suffix, target + suffix)
    return target, {}

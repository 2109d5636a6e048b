"""Keys that all servers on one database share: what one of them sealed, another can open. Made at first use."""

import secrets
import time

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql, sqlite

from rookery.db.database import Database
from rookery.db.migrate import Migration
from rookery.db.schema import metadata, text, whole
from rookery.db.tx import Tx

server_keys = sa.Table("server_keys", metadata, text("name", primary_key=True), text("secret"), whole("created_ms"))
MIGRATIONS = (
    Migration(
        1,
        "server keys",
        ["CREATE TABLE server_keys (name TEXT NOT NULL PRIMARY KEY, secret TEXT NOT NULL, created_ms BIGINT NOT NULL)"],
    ),
)
_FIND = sa.select(server_keys.c.secret).where(server_keys.c.name == sa.bindparam("name"))


def server_key(database: Database, name: str) -> bytes:
    """The 32 bytes of that name, the same for every server on this database. Blocks; for the start of a server."""
    found = database.direct(lambda tx: tx.scalar(_FIND, {"name": name}))
    return bytes.fromhex(found) if found else database.direct(lambda tx: server_key_in(tx, name), write=True)


def server_key_in(tx: Tx, name: str) -> bytes:
    """The same in an open transaction, which must be one that writes if the key was never used before."""
    found = tx.scalar(_FIND, {"name": name})
    if found is None:
        # Of two servers that start at the same moment one is first, and both read what it wrote.
        insert = sqlite.insert if tx.dialect == "sqlite" else postgresql.insert
        row = {"name": name, "secret": secrets.token_hex(32), "created_ms": time.time_ns() // 1_000_000}
        tx.run(insert(server_keys).values(row).on_conflict_do_nothing())
        found = tx.scalar(_FIND, {"name": name})
    return bytes.fromhex(found)

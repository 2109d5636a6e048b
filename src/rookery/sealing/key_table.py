"""Which keys this database was sealed with: a number and a fingerprint each, never the key.

Every sealed row says the number of its key, so that a rotation can stop half-way and a wrong key is told apart from
a damaged row.
"""

import time

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql, sqlite

from rookery.core.errors import ConfigurationError
from rookery.db.migrate import Migration
from rookery.db.schema import metadata, serial, text, whole
from rookery.db.tx import Tx
from rookery.sealing.keyring import Keyring

seal_keys = sa.Table(
    "seal_keys",
    metadata,
    serial("version"),
    text("fingerprint"),
    whole("created_ms"),
    sa.UniqueConstraint("fingerprint"),
)
MIGRATIONS = (
    Migration(
        1,
        "seal keys",
        ["CREATE TABLE seal_keys (version {serial}, fingerprint TEXT NOT NULL UNIQUE, created_ms BIGINT NOT NULL)"],
    ),
)

_FIND = sa.select(seal_keys.c.version).where(seal_keys.c.fingerprint == sa.bindparam("fingerprint"))
_LIST = sa.select(seal_keys.c.version, seal_keys.c.fingerprint).order_by(seal_keys.c.version)
_LATEST = (
    sa.select(seal_keys.c.fingerprint).order_by(seal_keys.c.created_ms.desc(), seal_keys.c.version.desc()).limit(1)
)
_PREFER = sa.text(
    "UPDATE seal_keys SET created_ms = (SELECT max(created_ms) + 1 FROM seal_keys) WHERE version = :version"
)
_ADD = {
    "sqlite": sqlite.insert(seal_keys).on_conflict_do_nothing(),
    "postgresql": postgresql.insert(seal_keys).on_conflict_do_nothing(),
}


def known_version(tx: Tx, keyring: Keyring) -> int | None:
    """The number of this key here, None if it never sealed anything. Only reads."""
    return tx.scalar(_FIND, {"fingerprint": keyring.fingerprint})


def current_version(tx: Tx, keyring: Keyring) -> int:
    """The number to write beside what this keyring seals. The first use of a key writes; the transaction keeps it."""
    found = known_version(tx, keyring)
    if found is not None:
        return found
    # Of two servers that use a new key at the same moment one is first, and both read what it wrote.
    tx.run(_ADD[tx.dialect], [{"fingerprint": keyring.fingerprint, "created_ms": time.time_ns() // 1_000_000}])
    return tx.scalar(_FIND, {"fingerprint": keyring.fingerprint})


def prefer(tx: Tx, version: int) -> None:
    """From now on this is the key that a server starts with: what is stored was sealed with it, or is being so."""
    tx.run(_PREFER, [{"version": version}])


def refuse_plain(tx: Tx) -> None:
    """Refuse to write plain text beside what is sealed: a server that lost its key must not go on without."""
    if tx.scalar(_LATEST) is not None:
        raise ConfigurationError(
            "what is stored is sealed, and no key is set", hint="set the mnemonic or key file that sealed it"
        )


def refuse_other_key(tx: Tx, keyring: Keyring | None) -> None:
    """Refuse to start with another key than the last one that was changed to: what is written would be divided."""
    if keyring is not None and tx.scalar(_LATEST) not in (None, keyring.fingerprint):
        raise ConfigurationError(
            "what is stored was sealed with another key",
            hint="set the mnemonic or key file that sealed it; rookery memory rotate-key changes to another",
        )


def key_versions(tx: Tx) -> dict[int, str]:
    """The fingerprint of every key that was ever used here, by its number."""
    return {row.version: row.fingerprint for row in tx.all(_LIST)}

"""Seals memories with another key, or for the first time, a batch at a time. Whatever stops it, it goes on from there.

Every row says with which key it is sealed, so what is left to do is in the rows themselves.
"""

from collections.abc import Callable
from typing import Any

import sqlalchemy as sa

from rookery.db.database import Database
from rookery.db.outside import SETTLE_S, run_outside
from rookery.db.tx import Tx
from rookery.domains.memory.file_tables import memory_files
from rookery.domains.memory.row_seal import RowSeal
from rookery.domains.memory.store import as_column
from rookery.domains.memory.tables import memories
from rookery.domains.memory.words import Owner, Tokens
from rookery.sealing.key_table import current_version, prefer
from rookery.sealing.keyring import Keyring

BATCH = 200
_OTHER_KEY = memories.c.key_version.is_distinct_from(sa.bindparam("version"))
_OTHER_WAY = memories.c.sealed_key.is_(None) == sa.bindparam("hide_keys", type_=sa.Boolean)
_LEFT = (
    sa.select(memories)
    .where(memories.c.seq > sa.bindparam("after"), sa.or_(_OTHER_KEY, _OTHER_WAY))
    .order_by(memories.c.seq)
    .limit(sa.bindparam("batch"))
    .with_for_update()
)
_RESEAL = sa.update(memories).where(memories.c.seq == sa.bindparam("its_seq"))
_COUNT = sa.text("UPDATE memory_owners SET plain = plain - 1 WHERE tenant = :tenant AND owner = :owner")
_WIPE = {
    "sqlite": [
        "INSERT INTO memories_fts (memories_fts) VALUES ('rebuild')",
        "VACUUM",
        "PRAGMA wal_checkpoint(TRUNCATE)",
    ],
    # What is counted of a column for the planner are some of its values. The catalog is skipped with a warning where
    # the role owns neither it nor the database.
    "postgresql": [
        f"VACUUM (FULL, ANALYZE) {memories.name}, {memory_files.name}",
        "VACUUM (FULL) pg_catalog.pg_statistic",
    ],
}


def rotate(
    database: Database,
    old: Keyring | None,
    new: Keyring,
    *,
    hide_keys: bool = False,
    patience_s: float = SETTLE_S,
    told: Callable[[int], None] = lambda number: None,
) -> int:
    """Seal every memory with `new` and return how many were. What is plain is sealed; the rest `old` has to open.

    `told` hears after each commit how many it were. Blocks; meant for a time when no server runs, since a server
    has one key only. Copies in a ledger stay as they are. Keys are hidden or shown in the same way, if that changed.
    ServiceUnavailable if all is sealed, but what was plain cannot be wiped while others keep a transaction open: done
    again, it goes on from there.
    """
    done, after = 0, 0
    while True:
        batch = database.direct(lambda tx, after=after: _batch(tx, old, new, hide_keys, after), write=True)
        if not batch:
            break
        done, after = done + len(batch), batch[-1].seq
        told(len(batch))
    _wipe(database, patience_s)
    return done


def _batch(tx: Tx, old: Keyring | None, new: Keyring, hide_keys: bool, after: int) -> list[sa.Row[Any]]:
    version = current_version(tx, new)
    rows = list(tx.all(_LEFT, {"after": after, "version": version, "hide_keys": hide_keys, "batch": BATCH}))
    sealer = RowSeal(new, hide_keys=hide_keys)
    if rows:
        prefer(tx, version)
    for row in rows:
        opener = RowSeal(new if row.key_version == version else old)
        owner = Owner(row.tenant, row.owner)
        key, content = opener.key_of(row), opener.content_of(row)
        tokens = [] if row.archived else Tokens(owner, new).of(key, content)
        columns = sealer.columns(tx, owner, row.id, key, content)
        tx.run(_RESEAL, [{"its_seq": row.seq, **columns, "tokens": as_column(tx, tokens)}])
        if row.key_version is None:
            tx.run(_COUNT, [{"tenant": row.tenant, "owner": row.owner}])
    return rows


def _wipe(database: Database, patience_s: float) -> None:
    """Write anew what was plain, since both databases keep it on pages, or in rows, that are no longer used."""
    database.direct(lambda tx: run_outside(tx, *_WIPE[tx.dialect], patience_s=patience_s))

"""Statements that a database refuses inside a transaction, such as VACUUM."""

import time
from typing import Any

from rookery.core.errors import ServiceUnavailable
from rookery.db.tx import Tx

SETTLE_S = 60.0
LOOK_AGAIN_S = 0.05
_MARK = "SELECT pg_snapshot_xmax(pg_current_snapshot())::text::bigint"
# The ids of transactions that sessions show are the lower 32 bits, so "older" is told as PostgreSQL itself tells it.
_OLDER = "({xid}::text::bigint - %(mark)s %% 4294967296 + 4294967296) %% 4294967296 > 2147483648"
_IN_THE_WAY = (
    "SELECT pid, datname FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND ("
    f"{_OLDER.format(xid='backend_xid')} OR (datname = current_database() AND {_OLDER.format(xid='backend_xmin')})) "
    "ORDER BY xact_start LIMIT 1"
)
_RUNS = "SELECT pg_snapshot_xmin(pg_current_snapshot())::text::bigint < %(mark)s"


def run_outside(tx: Tx, *statements: str, patience_s: float = SETTLE_S) -> None:
    """Give up the transaction of `tx`, undoing what it did, and run each statement by itself.

    Only as the last thing in the work of a `Database.direct` that does not write: nothing is left for a commit. On
    PostgreSQL each waits until nobody can see the rows that are dead by now, which VACUUM FULL would else copy too;
    ServiceUnavailable if that takes more than `patience_s`.
    """
    driver: Any = tx.connection.connection.driver_connection
    if tx.dialect == "sqlite":
        driver.execute("ROLLBACK")
        for statement in statements:
            driver.execute(statement)
        return
    driver.rollback()
    driver.autocommit = True
    try:
        for statement in statements:
            _settle(driver, patience_s)
            driver.execute(statement)
    finally:
        driver.autocommit = False


def _settle(driver: Any, patience_s: float) -> None:
    """Wait for all transactions that began before now, those that write in any database of the server."""
    values, until = {"mark": driver.execute(_MARK).fetchone()[0]}, time.monotonic() + patience_s
    while True:
        seen = driver.execute(_IN_THE_WAY, values).fetchone()
        if seen is None and not driver.execute(_RUNS, values).fetchone()[0]:
            return
        if time.monotonic() > until:
            # Sessions of others show who they are, and not what they do; one that is prepared is no session at all.
            who = f"process {seen[0]} in the database {seen[1]}" if seen else "somebody on this PostgreSQL"
            raise ServiceUnavailable(
                f"{who} has had a transaction open for more than {patience_s:g} s, so old rows cannot be wiped",
                hint="end that transaction, then run the same command again",
            )
        time.sleep(LOOK_AGAIN_S)

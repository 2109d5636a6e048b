"""Statements that a database refuses inside a transaction, such as VACUUM."""

from typing import Any

from rookery.db.tx import Tx


def run_outside(tx: Tx, *statements: str) -> None:
    """Give up the transaction of `tx`, undoing what it did, and run each statement by itself.

    Only as the last thing in the work of a `Database.direct` that does not write: nothing is left for a commit.
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
            driver.execute(statement)
    finally:
        driver.autocommit = False

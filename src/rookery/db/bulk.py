"""Adds many rows at once, by whatever way each database has for it."""

from collections.abc import Sequence
from typing import Any

from rookery.db.tx import Tx


def add_rows(tx: Tx, table: str, columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
    """Add rows, none of which may be there already. PostgreSQL copies them, which is ten times as fast as inserts."""
    if not rows:
        return
    if tx.dialect == "sqlite":
        tx.insert_rows(table, columns, rows)
        return
    driver: Any = tx.connection.connection.driver_connection
    copying = f"COPY {table} ({', '.join(columns)}) FROM STDIN"
    with tx.driver_errors(copying), driver.cursor() as cursor, cursor.copy(copying) as copy:
        for row in rows:
            copy.write_row(row)

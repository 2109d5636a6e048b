"""The database's clock: the one that all processes share, whatever their machines believe."""

from typing import Any

import sqlalchemy as sa
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.expression import FunctionElement

from rookery.db.tx import Tx

NOW = {
    "sqlite": "CAST(round((julianday('now') - 2440587.5) * 86400000) AS INTEGER)",
    # Stable, so that it can be compared by an index; it moves on with every statement.
    "postgresql": "CAST(extract(epoch FROM statement_timestamp()) * 1000 AS BIGINT)",
}
"""Milliseconds since 1970, as SQL."""


class DbNow(FunctionElement[int]):
    """The database's clock in a statement: milliseconds since 1970."""

    type = sa.BigInteger()
    inherit_cache = True


@compiles(DbNow)
def _compiled(element: DbNow, compiler: Any, **how: Any) -> str:
    return NOW[compiler.dialect.name]


_SELECT = sa.select(DbNow())


def now_ms(tx: Tx) -> int:
    """What the database's clock shows, in milliseconds since 1970."""
    return tx.scalar(_SELECT)

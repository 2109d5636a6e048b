"""What a test may do to the rows below the tools: let time pass, look at everything that was stored."""

from collections.abc import Iterator

import sqlalchemy as sa

from rookery.db.tx import Tx
from tests.platform_fixtures import Fleet


def end_in_the_past(fleet: Fleet, table: str, row: str) -> None:
    """As if the end of a grant or token had come and gone."""
    statement = sa.text(f"UPDATE {table} SET expires_ms = 1 WHERE id = :row").bindparams(row=row)
    assert fleet.platform.database.direct(lambda tx: tx.run(statement), write=True) == 1


def everything_stored(fleet: Fleet) -> str:
    """Every value of every table, as text."""

    def values(tx: Tx) -> Iterator[str]:
        for table in sa.inspect(tx.connection).get_table_names():
            for row in tx.all(sa.text(f'SELECT * FROM "{table}"')):
                yield f"{table}: {tuple(row)!r}"

    return fleet.platform.database.direct(lambda tx: "\n".join(values(tx)))

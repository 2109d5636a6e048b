"""How whoever changes stored vectors tells those who remember them. Works without the extra `embed`."""

from rookery.db.tx import Tx


def epoch_name(table: str, project: str) -> str:
    return f"vectors:{table}:{project}"


def touch(tx: Tx, table: str, project: str) -> None:
    """Say that vectors of the project change in this transaction. Call it before the first row is added or removed.

    Rows are then numbered in the order in which their transactions end, on PostgreSQL as well: the next one waits here.
    """
    tx.bump(epoch_name(table, project))

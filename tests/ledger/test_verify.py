"""The books after somebody has tampered with them: the database refuses, and what gets past it is found."""

import pytest
import sqlalchemy as sa
from sqlalchemy.exc import DatabaseError

from tests.ledger.books import Books

TABLES = ("credit_transactions", "credit_legs")


@pytest.fixture
def filled(books: Books) -> Books:
    books.do(lambda ledger: ledger.grant("w", 100, "r"))
    books.do(lambda ledger: ledger.deduct("w", "deduction", 30, "r"))
    books.do(lambda ledger: ledger.reserve("w", 20, "r"))
    return books


def tamper(books: Books, *statements: str) -> None:
    def work(tx: object) -> None:
        for statement in statements:
            tx.connection.exec_driver_sql(statement)  # pyright: ignore[reportAttributeAccessIssue]

    books.database.direct(work, write=True)


def found(books: Books) -> list[str]:
    return books.do(lambda ledger: ledger.verify())


@pytest.mark.parametrize("table", TABLES)
def test_history_can_be_neither_changed_nor_removed(filled: Books, table: str) -> None:
    for statement in (f"UPDATE {table} SET amount = 1", f"DELETE FROM {table}"):
        with pytest.raises(DatabaseError, match="append-only"):
            tamper(filled, statement)
    if not filled.database.url.startswith("sqlite"):
        with pytest.raises(DatabaseError, match="append-only"):
            tamper(filled, f"TRUNCATE {table}")
    filled.check()


@pytest.mark.parametrize("column", ["available", "reserved", "total_purchased", "total_consumed"])
def test_the_database_itself_refuses_a_balance_below_zero(filled: Books, column: str) -> None:
    with pytest.raises(DatabaseError):
        tamper(filled, f"UPDATE credit_accounts SET {column} = -1")


@pytest.mark.parametrize("column", ["available", "reserved", "total_purchased", "total_consumed", "transactions"])
def test_a_balance_that_its_history_does_not_explain_is_found(filled: Books, column: str) -> None:
    assert found(filled) == []
    tamper(filled, f"UPDATE credit_accounts SET {column} = {column} + 1")
    assert found(filled) == ["w has another balance than its history"]


def test_an_account_that_was_removed_is_found(filled: Books) -> None:
    tamper(filled, "DELETE FROM credit_accounts")
    assert found(filled) == ["w has a history and no account"]


ROW = (
    "INSERT INTO credit_transactions (id, tenant, wallet_address, number, type, amount, balance_after, reference, "
    "created_ms) VALUES ('x', 'default', 'w', {number}, 'grant', 5, {after}, 'r', 0)"
)
LEG = (
    "INSERT INTO credit_legs (transaction_id, bucket, tenant, wallet_address, amount) "
    "VALUES ('{of}', '{bucket}', 'default', '{wallet}', {amount})"
)


def test_legs_that_are_missing_or_do_not_add_up_are_found(filled: Books) -> None:
    tamper(filled, ROW.format(number=4, after=75))
    assert "the legs of transaction x do not add up" in found(filled)
    tamper(filled, LEG.format(of="x", bucket="available", wallet="w", amount=5))
    assert "the legs of transaction x do not add up" in found(filled)


def test_a_leg_without_its_transaction_or_of_another_wallet_is_found(filled: Books) -> None:
    tamper(filled, LEG.format(of="y", bucket="available", wallet="w", amount=5))
    assert "a leg names transaction y, which is not there" in found(filled)
    tamper(
        filled,
        ROW.format(number=4, after=75),
        LEG.format(of="x", bucket="available", wallet="w", amount=5),
        LEG.format(of="x", bucket="issued", wallet="v", amount=-5),
    )
    assert "the legs of transaction x do not add up" in found(filled)


@pytest.mark.parametrize(("number", "after"), [(5, 75), (4, 76)])
def test_a_step_that_does_not_follow_is_found(filled: Books, number: int, after: int) -> None:
    tamper(
        filled,
        ROW.format(number=number, after=after),
        LEG.format(of="x", bucket="available", wallet="w", amount=5),
        LEG.format(of="x", bucket="issued", wallet="w", amount=-5),
        "UPDATE credit_accounts SET available = available + 5, total_purchased = total_purchased + 5, "
        "transactions = transactions + 1",
    )
    assert found(filled) == [f"transaction {number} of w does not follow"]


def test_the_books_of_another_tenant_are_not_looked_at(filled: Books) -> None:
    tamper(filled, "UPDATE credit_accounts SET available = available + 1")
    other = Books(filled.database, "other")
    assert (found(filled) != [], found(other)) == (True, [])
    assert filled.database.direct(lambda tx: tx.scalar(sa.text("SELECT count(*) FROM credit_legs"))) == 6

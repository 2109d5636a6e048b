"""Moving credits: who is refused, what a change leaves behind, and that a key counts once."""

from collections.abc import Callable
from typing import Any

import pytest

from rookery.core.errors import Conflict, NotFound, RookeryError, ValidationFailed
from rookery.identity.tables import EPOCH
from rookery.ledger.rates import enforce
from rookery.ledger.store import MAX_AMOUNT, MAX_BALANCE, InsufficientCredits, Ledger, wallet_of
from tests.ledger.books import Books

BAD_AMOUNTS = [0, -1, True, 1.0, 1.5, float("nan"), float("inf"), MAX_AMOUNT + 1, 2**70]
MOVES: dict[str, Callable[[Ledger, Any], Any]] = {
    "grant": lambda ledger, amount: ledger.grant("w", amount, "r"),
    "deduct": lambda ledger, amount: ledger.deduct("w", "deduction", amount, "r"),
    "reserve": lambda ledger, amount: ledger.reserve("w", amount, "r"),
    "refund": lambda ledger, amount: ledger.refund("w", amount, "r"),
}


def refused(books: Books, kind: type[RookeryError], work: Callable[[Ledger], Any]) -> RookeryError:
    """What somebody is told whose change was refused, and that it has left nothing behind."""
    before = books.check()
    with pytest.raises(kind) as caught:
        books.do(work)
    assert books.check() == before
    return caught.value


@pytest.mark.parametrize("move", MOVES)
def test_an_amount_that_is_no_whole_number_of_credits_is_refused(books: Books, move: str) -> None:
    books.do(lambda ledger: ledger.grant("w", 100, "start"))
    books.do(lambda ledger: ledger.deduct("w", "deduction", 50, "start"))
    for amount in BAD_AMOUNTS:
        refused(books, ValidationFailed, lambda ledger, amount=amount: MOVES[move](ledger, amount))


@pytest.mark.parametrize("wallet", ["", " ", "w ", "a\nb", "a\0b", "\ud800", "x" * 201])
def test_a_wallet_that_cannot_be_an_address_is_refused(books: Books, wallet: str) -> None:
    refused(books, ValidationFailed, lambda ledger: ledger.grant(wallet, 5, "r"))


def test_a_reference_that_cannot_be_kept_is_refused(books: Books) -> None:
    for reference in ("x" * 501, "a\0b"):
        refused(books, ValidationFailed, lambda ledger, text=reference: ledger.grant("w", 5, text))


def test_nobody_spends_what_is_not_there(books: Books) -> None:
    told = refused(books, InsufficientCredits, lambda ledger: ledger.deduct("w", "deduction", 1, "r"))
    assert (told.code, told.rpc) == ("INSUFFICIENT_CREDITS", -32002)
    books.do(lambda ledger: ledger.grant("w", 10, "r"))
    for work in (
        lambda ledger: ledger.deduct("w", "agent_message", 11, "r"),
        lambda ledger: ledger.reserve("w", 11, "r"),
    ):
        assert "10 credits" in refused(books, InsufficientCredits, work).message
    books.do(lambda ledger: ledger.reserve("w", 8, "r"))
    refused(books, InsufficientCredits, lambda ledger: ledger.deduct("w", "deduction", 3, "r"))
    assert books.numbers() == (2, 8, 10, 0)


def test_no_more_is_refunded_than_was_spent(books: Books) -> None:
    books.do(lambda ledger: ledger.grant("w", 10, "r"))
    books.do(lambda ledger: ledger.deduct("w", "deduction", 4, "r"))
    refused(books, Conflict, lambda ledger: ledger.refund("w", 5, "r"))
    books.do(lambda ledger: ledger.refund("w", 4, "r"))
    assert books.numbers() == (10, 0, 10, 0)


def test_an_account_is_never_fuller_than_a_number_can_tell(books: Books) -> None:
    books.do(lambda ledger: ledger.grant("w", 1, "r"))
    nearly = f"UPDATE credit_accounts SET available = {MAX_BALANCE - 1}"
    books.database.direct(lambda tx: tx.connection.exec_driver_sql(nearly) and None, write=True)
    with pytest.raises(Conflict, match="cannot hold"):
        books.do(lambda ledger: ledger.grant("w", 2, "r"))


def test_a_wallet_that_nobody_has_used_has_a_zero_account_and_no_row(books: Books) -> None:
    assert (books.numbers("new"), books.check()) == ((0, 0, 0, 0), {})
    assert books.account("a\0b").balance == 0


def test_what_is_given_held_and_spent_is_told_apart(books: Books) -> None:
    made = books.do(lambda ledger: ledger.grant("w", 100, "payday"))
    assert (made.type, made.amount, made.balance_after, made.reference, made.number) == ("grant", 100, 100, "payday", 1)
    books.do(lambda ledger: ledger.deduct("w", "agent_message", 5, "msg-1"))
    held = books.do(lambda ledger: ledger.reserve("w", 30, "group"))
    assert books.numbers() == (65, 30, 100, 5)
    books.do(lambda ledger: ledger.settle(held.id, 20))
    assert books.numbers() == (75, 0, 100, 25)
    books.do(lambda ledger: ledger.refund("w", 5, "msg-1"))
    assert books.types() == ["grant", "agent_message", "reserve", "deduction", "refund"]
    assert books.check()["w"]["available"] == 80


def test_a_reservation_that_is_released_is_available_again(books: Books) -> None:
    books.do(lambda ledger: ledger.grant("w", 30, "r"))
    held = books.do(lambda ledger: ledger.reserve("w", 30, "r"))
    ended = books.do(lambda ledger: ledger.release(held.id))
    assert (ended.type, ended.amount, books.numbers()) == ("release", 30, (30, 0, 30, 0))


def test_a_reservation_ends_once(books: Books) -> None:
    books.do(lambda ledger: ledger.grant("w", 60, "r"))
    one, other = (books.do(lambda ledger: ledger.reserve("w", 30, "r")) for _ in range(2))
    first = books.do(lambda ledger: ledger.settle(one.id, 10))
    assert books.do(lambda ledger: ledger.settle(one.id, 10)).id == first.id
    for work in (lambda ledger: ledger.release(one.id), lambda ledger: ledger.settle(one.id, 11)):
        refused(books, Conflict, work)
    assert books.numbers() == (20, 30, 60, 10)
    books.do(lambda ledger: ledger.release(other.id))
    assert books.numbers() == (50, 0, 60, 10)


def test_only_a_reservation_can_be_settled_and_only_as_far_as_it_goes(books: Books) -> None:
    grant = books.do(lambda ledger: ledger.grant("w", 60, "r"))
    held = books.do(lambda ledger: ledger.reserve("w", 30, "r"))
    for unknown in (grant.id, "ctx-1", "", "a\0b"):
        refused(books, NotFound, lambda ledger, unknown=unknown: ledger.release(unknown))
    wrong: list[Any] = [-1, 31, True, 1.5]
    for spent in wrong:
        refused(books, ValidationFailed, lambda ledger, spent=spent: ledger.settle(held.id, spent))


def test_the_accounts_of_another_tenant_are_others(books: Books) -> None:
    theirs = Books(books.database, "other")
    books.do(lambda ledger: ledger.grant("w", 10, "r", "key"))
    held = books.do(lambda ledger: ledger.reserve("w", 5, "r"))
    assert theirs.numbers() == (0, 0, 0, 0)
    assert theirs.types() == []
    refused(theirs, NotFound, lambda ledger: ledger.release(held.id))
    theirs.do(lambda ledger: ledger.grant("w", 3, "r", "key"))
    assert (books.check()["w"]["available"], theirs.check()["w"]["available"]) == (5, 3)


def test_one_key_is_one_change_however_often_it_is_asked_for(books: Books) -> None:
    for _ in range(3):
        books.do(lambda ledger: ledger.grant("w", 10, "r", key="payday"))
        books.do(lambda ledger: ledger.deduct("w", "agent_message", 10, "m", key="msg-1"))
    assert (books.types(), books.numbers()) == (["grant", "agent_message"], (0, 0, 10, 10))
    books.do(lambda ledger: ledger.grant("v", 10, "r", key="payday"))
    assert books.numbers("v") == (10, 0, 10, 0)


def test_a_key_that_stands_for_another_change_is_a_conflict(books: Books) -> None:
    books.do(lambda ledger: ledger.grant("w", 10, "r", key="k"))
    for work in (
        lambda ledger: ledger.grant("w", 11, "r", key="k"),
        lambda ledger: ledger.deduct("w", "deduction", 10, "r", key="k"),
    ):
        refused(books, Conflict, work)


def test_a_refused_change_leaves_its_key_free(books: Books) -> None:
    refused(books, InsufficientCredits, lambda ledger: ledger.deduct("w", "deduction", 5, "r", key="k"))
    books.do(lambda ledger: ledger.grant("w", 5, "r"))
    books.do(lambda ledger: ledger.deduct("w", "deduction", 5, "r", key="k"))
    assert books.numbers() == (0, 0, 5, 5)


def test_history_is_read_in_pages_newest_first(books: Books) -> None:
    for number in range(1, 6):
        books.do(lambda ledger, number=number: ledger.grant("w", number, str(number)))
    pages = books.do(lambda ledger: [ledger.history("w", 2), ledger.history("w", 2, before=4)])
    assert [[row.amount for row in page] for page in pages] == [[5, 4], [3, 2]]


def test_every_agent_has_a_wallet_by_its_id(books: Books) -> None:
    books.do(lambda ledger: ledger.grant(wallet_of("agt-1"), 5, "r"))
    assert books.do(lambda ledger: ledger.of_agent("agt-1")).available == 5
    assert books.do(lambda ledger: ledger.of_agent("agt-2")).available == 0


def test_sessions_look_anew_only_when_an_agent_runs_dry_or_can_go_on(books: Books) -> None:
    wallet, seen = wallet_of("agt-1"), books.database.epoch(EPOCH)

    def changed(work: Callable[[Ledger], Any]) -> int:
        nonlocal seen
        made = books.do(work)
        kept.append(made)
        before, seen = seen, books.database.epoch(EPOCH)
        return seen - before

    kept: list[Any] = []
    assert changed(lambda ledger: ledger.grant(wallet, 5, "nobody is stopped")) == 0
    assert changed(lambda ledger: ledger.deduct(wallet, "deduction", 5, "nobody is stopped")) == 0
    enforce(books.database)
    assert changed(lambda ledger: ledger.grant(wallet, 10, "r")) == 1
    assert changed(lambda ledger: ledger.grant(wallet, 10, "r")) == 0
    assert changed(lambda ledger: ledger.deduct(wallet, "deduction", 19, "r")) == 0
    assert changed(lambda ledger: ledger.reserve(wallet, 1, "r")) == 0
    held = kept[-1].id
    assert changed(lambda ledger: ledger.settle(held, 1)) == 1
    assert changed(lambda ledger: ledger.refund(wallet, 3, "r")) == 1
    assert changed(lambda ledger: ledger.grant("w", 10, "r")) == 0


@pytest.mark.parametrize("way", ["deduct_up_to", "reserve_up_to"])
def test_what_is_taken_as_far_as_it_goes_never_takes_more_than_there_is(books: Books, way: str) -> None:
    take: Callable[[Ledger, int], Any] = lambda ledger, amount: getattr(ledger, way)("w", amount, "r")  # noqa: E731
    assert (books.do(lambda ledger: take(ledger, 5)), books.check()) == (None, {})
    books.do(lambda ledger: ledger.grant("w", 10, "r"))
    for nothing in (0, -3):
        assert books.do(lambda ledger, nothing=nothing: take(ledger, nothing)) is None
    assert [books.do(lambda ledger: take(ledger, 7)).amount for _ in range(2)] == [7, 3]
    assert books.do(lambda ledger: take(ledger, 7)) is None
    assert books.numbers()[0] == 0
    books.do(lambda ledger: ledger.grant("w", 10, "r"))
    assert books.do(lambda ledger: take(ledger, 10**15)).amount == 10
    books.check()

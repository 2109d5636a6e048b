"""Random changes against a model in four numbers: the ledger does what it does, and refuses what it refuses."""

from collections.abc import Callable
from dataclasses import dataclass, field

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rookery.core.errors import Conflict
from rookery.core.ids import new_id
from rookery.ledger.store import Ledger
from tests.ledger.books import Books

AMOUNTS = st.integers(1, 60)
MOVES = st.lists(
    st.tuples(st.sampled_from(["grant", "deduct", "reserve", "settle", "release", "refund"]), AMOUNTS), max_size=25
)


@dataclass
class Model:
    """A wallet in numbers. Each move answers whether it is possible."""

    available: int = 0
    reserved: int = 0
    purchased: int = 0
    consumed: int = 0
    held: list[tuple[str, int]] = field(default_factory=list)

    def grant(self, amount: int) -> bool:
        self.available += amount
        self.purchased += amount
        return True

    def deduct(self, amount: int) -> bool:
        if amount > self.available:
            return False
        self.available -= amount
        self.consumed += amount
        return True

    def refund(self, amount: int) -> bool:
        if amount > self.consumed:
            return False
        self.consumed -= amount
        self.available += amount
        return True

    def reserve(self, amount: int) -> bool:
        if amount > self.available:
            return False
        self.available -= amount
        self.reserved += amount
        return True

    def settle(self, amount: int, spent: int) -> None:
        self.reserved -= amount
        self.available += amount - spent
        self.consumed += spent

    @property
    def numbers(self) -> tuple[int, int, int, int]:
        return self.available, self.reserved, self.purchased, self.consumed


def done(books: Books, work: Callable[[Ledger], object]) -> object | None:
    try:
        return books.do(work)
    except Conflict:
        return None


def move(books: Books, model: Model, wallet: str, name: str, amount: int) -> None:
    """One change in both."""
    if name in ("settle", "release"):
        if model.held:
            held, size = model.held.pop()
            spent = min(amount, size) if name == "settle" else 0
            model.settle(size, spent)
            books.do(lambda ledger: ledger.settle(held, spent))
        return
    works: dict[str, Callable[[Ledger], object]] = {
        "grant": lambda ledger: ledger.grant(wallet, amount, "r"),
        "deduct": lambda ledger: ledger.deduct(wallet, "deduction", amount, "r"),
        "reserve": lambda ledger: ledger.reserve(wallet, amount, "r").id,
        "refund": lambda ledger: ledger.refund(wallet, amount, "r"),
    }
    made = done(books, works[name])
    assert (made is not None) == getattr(model, name)(amount)
    if name == "reserve" and made is not None:
        model.held.append((str(made), amount))


# The books may be those of the examples before: each has a wallet of its own.
@settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)
@given(moves=MOVES)
def test_the_ledger_agrees_with_four_numbers(books: Books, moves: list[tuple[str, int]]) -> None:
    model, wallet = Model(), new_id("wal")
    for name, amount in moves:
        move(books, model, wallet, name, amount)
    assert books.numbers(wallet) == model.numbers
    books.check()

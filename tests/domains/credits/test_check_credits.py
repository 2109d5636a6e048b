"""A balance as its callers see it."""

import pytest

from rookery.core.actor import Actor
from rookery.core.errors import InvalidParams
from rookery.ledger.rates import DEFAULTS
from rookery.ledger.store import wallet_of
from tests.ledger.books import Books
from tests.platform_fixtures import Fleet


@pytest.mark.parametrize("wallet", ["", "  ", "a\nb", "a\0b", "x" * 201, 5])
async def test_what_is_no_wallet_address_is_refused(fleet: Fleet, wallet: object) -> None:
    with pytest.raises(InvalidParams, match="wallet_address"):
        await fleet.call(fleet.actor(), "check_credits", wallet_address=wallet)


async def test_the_wallets_of_another_tenant_look_unused(fleet: Fleet, books: Books, stranger: Actor) -> None:
    books.do(lambda ledger: ledger.grant("w", 10, "r"))
    told = await fleet.call(stranger, "check_credits", wallet_address="w")
    assert (told.available, told.total_purchased) == (0, 0)


async def test_an_unknown_wallet_has_nothing_and_asking_makes_no_account(fleet: Fleet, books: Books) -> None:
    told = await fleet.call(fleet.actor(), "check_credits", wallet_address=" NEWWALLET ")
    assert (told.wallet_address, told.available, told.reserved, told.total) == ("NEWWALLET", 0, 0, 0)
    assert (told.total_purchased, told.total_consumed, told.is_low, told.is_exhausted) == (0, 0, True, True)
    assert books.check() == {}


async def test_an_agent_sees_its_own_wallet_and_the_rates(fleet: Fleet, books: Books) -> None:
    agent = fleet.actor()
    own = wallet_of(agent.agent or "")
    books.do(lambda ledger: ledger.grant(own, 200, "r"))
    books.do(lambda ledger: ledger.deduct(own, "deduction", 30, "r"))
    books.do(lambda ledger: ledger.reserve(own, 20, "r"))
    told = await fleet.call(agent, "corvid_check_credits")
    assert told.model_dump() == {
        "wallet_address": own,
        "available": 150,
        "reserved": 20,
        "total": 170,
        "total_purchased": 200,
        "total_consumed": 30,
        "is_low": False,
        "is_exhausted": False,
        "rates": DEFAULTS,
    }


@pytest.mark.parametrize(("amount", "low", "exhausted"), [(51, False, False), (50, True, False), (0, True, True)])
async def test_low_begins_at_the_threshold_and_exhausted_at_nothing(
    fleet: Fleet, books: Books, amount: int, low: bool, exhausted: bool
) -> None:
    books.do(lambda ledger: ledger.grant("w", amount + 1, "r"))
    books.do(lambda ledger: ledger.reserve("w", 1, "r"))
    told = await fleet.call(fleet.actor(), "check_credits", wallet_address="w")
    assert (told.available, told.is_low, told.is_exhausted) == (amount, low, exhausted)


async def test_a_person_has_a_wallet_too(fleet: Fleet) -> None:
    owner = fleet.owner
    assert (await fleet.call(owner, "check_credits")).wallet_address == owner.subject

"""A message costs its sender credits, once, as far as it has any; where the installation says so, who cannot pay is
stopped."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
import sqlalchemy as sa

from rookery.core.errors import Conflict, ServiceUnavailable
from rookery.db.tx import Tx
from rookery.domains.messages.charging import charge
from rookery.domains.messages.limits import Limits, Refused
from rookery.domains.messages.tables import breakers, messages
from rookery.ledger.store import Ledger, wallet_of
from tests.domains.messages.post_office import PostOffice
from tests.platform_fixtures import Fleet


def books(office: PostOffice, work: Callable[[Ledger], Any]) -> Any:
    def look(tx: Tx) -> Any:
        return work(Ledger(tx, "default"))

    return office.platform.database.direct(look, write=True)


def give(office: PostOffice, name: str, amount: int) -> None:
    wallet = wallet_of(office.id_of(name))
    books(office, lambda ledger: ledger.grant(wallet, amount, "payday"))


def available(office: PostOffice, name: str) -> int:
    return books(office, lambda ledger: ledger.of_agent(office.id_of(name)).available)


async def test_who_cannot_pay_is_stopped_only_where_the_installation_says_so(
    database_url: str, make_fleet: Callable[..., Fleet]
) -> None:
    strict = PostOffice(make_fleet(database_url, extra={}, credits_hard_stop=True))
    await strict.open()
    strict.use(None)
    give(strict, "ada", 4)
    with pytest.raises(Conflict, match="SPENDING_LIMIT: a message costs 5 credits and 4 are available"):
        await strict.post("bob", "tea?")
    assert strict.select(sa.select(messages.c.status, messages.c.error_code)) == [("failed", "SPENDING_LIMIT")]
    assert available(strict, "ada") == 4
    assert (await strict.post("bob", "tea?", sender=strict.fleet.owner)).status == "delivered"


async def test_a_message_is_charged_once_and_a_duplicate_is_not(office: PostOffice) -> None:
    office.use(None)
    give(office, "ada", 12)
    for text in ("tea?", "tea?", "milk?"):
        await office.post("bob", text)
    assert available(office, "ada") == 2
    await office.post("bob", "sugar?")
    assert available(office, "ada") == 2
    history = books(office, lambda ledger: ledger.history(wallet_of(office.id_of("ada"))))
    assert [(row.type, row.amount) for row in history] == [("agent_message", 5), ("agent_message", 5), ("grant", 12)]
    assert [row.reference for row in history[:2]] == [office.rows[1].id, office.rows[0].id]
    assert books(office, lambda ledger: ledger.verify()) == []


async def test_a_rate_of_nothing_costs_nothing(office: PostOffice) -> None:
    office.use(None)
    give(office, "ada", 12)
    books(office, lambda ledger: ledger.set_config("credits_per_agent_message", 0))
    await office.post("bob", "tea?")
    assert available(office, "ada") == 12


async def test_of_a_message_and_another_expense_at_the_same_moment_only_one_is_made(
    database_url: str, make_fleet: Callable[..., Fleet]
) -> None:
    strict = PostOffice(make_fleet(database_url, extra={}, credits_hard_stop=True))
    other = make_fleet(database_url, extra={}, credits_hard_stop=True).platform.database
    await strict.open()
    strict.use(None)
    give(strict, "ada", 5)
    wallet, sender = wallet_of(strict.id_of("ada")), strict.agent("ada")

    def spend(tx: Tx) -> None:
        Ledger(tx, "default").deduct(wallet, "deduction", 5, "other")

    both = [strict.post("bob", "tea?", sender), *(other.change(spend) for _ in range(4))]
    done = [not isinstance(each, BaseException) for each in await asyncio.gather(*both, return_exceptions=True)]
    assert sum(done) == 1
    assert [row.status for row in strict.rows] == (["delivered"] if done[0] else ["failed"])
    assert available(strict, "ada") == 0
    assert books(strict, lambda ledger: ledger.verify()) == []


async def test_a_price_that_rises_above_the_purse_meanwhile_stops_the_message(
    office: PostOffice, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between the look at the purse and the payment somebody else spends: nothing is sent unpaid."""
    give(office, "ada", 5)
    real, wallet = Ledger.of_agent, wallet_of(office.id_of("ada"))

    def look_and_lose(self: Ledger, agent_id: str) -> Any:
        found = real(self, agent_id)
        if found.available:
            self.deduct(wallet, "deduction", found.available, "other")
        return found

    def pay(tx: Tx) -> None:
        charge(tx, "default", office.id_of("ada"), "msg-1", Limits(10, 5, 30_000, 2, must_pay=True))

    monkeypatch.setattr(Ledger, "of_agent", look_and_lose)
    with pytest.raises(Refused, match="5 credits and 0 are available"):
        office.platform.database.direct(pay, write=True)


async def test_a_message_that_the_breaker_refuses_costs_nothing(office: PostOffice) -> None:
    give(office, "ada", 12)
    office.change(
        sa.insert(breakers).values(
            tenant="default", target=office.id_of("bob"), failures=5, successes=0, opened_ms=2**50
        )
    )
    with pytest.raises(ServiceUnavailable, match="CIRCUIT_OPEN"):
        await office.post("bob", "tea?")
    assert available(office, "ada") == 12

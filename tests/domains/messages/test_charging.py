"""A message costs its sender credits, once, as far as it has any; where the installation says so, who cannot pay is
stopped."""

from collections.abc import Callable
from typing import Any

import pytest
import sqlalchemy as sa

from rookery.core.errors import Conflict
from rookery.db.tx import Tx
from rookery.domains.messages.tables import messages
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

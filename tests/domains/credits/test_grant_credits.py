"""Giving credits: the owner's alone, unless the owner says otherwise."""

import asyncio
from typing import Any

import pytest

from rookery.core.actor import Actor
from rookery.core.errors import InvalidParams, PermissionDenied
from rookery.core.events import Event
from rookery.ledger import store
from tests.ledger.books import Books
from tests.platform_fixtures import Fleet


async def grant(fleet: Fleet, actor: Actor, **arguments: Any) -> Any:
    return await fleet.call(actor, "grant_credits", **{"wallet_address": "w", "amount": 10, **arguments})


async def test_an_agent_gives_no_credits_unless_it_was_granted_the_tool(fleet: Fleet, books: Books) -> None:
    for actor in (fleet.actor(), fleet.actor(profile="worker"), fleet.actor(source="web")):
        with pytest.raises(PermissionDenied) as caught:
            await grant(fleet, actor)
        assert caught.value.layer == "role"
    assert books.check() == {}
    await fleet.call(fleet.owner, "grant_tool", agent="default", tool="grant_credits", without_approval=True)
    with pytest.raises(PermissionDenied) as caught:
        await grant(fleet, fleet.actor(scheduler=True))
    assert caught.value.layer == "scheduler"
    assert (await grant(fleet, fleet.actor())).available == 10


@pytest.mark.parametrize(
    "amount",
    [0, -1, 1.5, float("nan"), float("inf"), float("-inf"), 1_000_001, 2**63, 10**400, True, "many", None, [1]],
)
async def test_an_amount_that_cannot_be_given_is_refused(fleet: Fleet, books: Books, amount: Any) -> None:
    with pytest.raises(InvalidParams, match="amount"):
        await grant(fleet, fleet.owner, amount=amount)
    assert books.check() == {}


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        ({"wallet_address": ""}, "wallet_address"),
        ({"wallet_address": "\n"}, "wallet_address"),
        ({"wallet_address": "x" * 201}, "wallet_address"),
        ({"reference": "x" * 501}, "reference"),
        ({"reference": "a", "reason": "b"}, "reason"),
        ({"to": "w"}, "to"),
    ],
)
async def test_other_nonsense_is_refused(fleet: Fleet, books: Books, wrong: dict[str, Any], told: str) -> None:
    with pytest.raises(InvalidParams, match=told):
        await grant(fleet, fleet.owner, **wrong)
    assert books.check() == {}


async def test_the_least_and_the_most_are_given(fleet: Fleet, books: Books) -> None:
    await grant(fleet, fleet.owner, amount=1)
    told = await grant(fleet, fleet.owner, amount=1_000_000)
    assert (told.available, told.total_purchased) == (1_000_001, 1_000_001)
    assert books.check()["w"]["available"] == 1_000_001


@pytest.mark.parametrize(
    ("said", "kept"), [({}, "agent_grant"), ({"reference": "payday"}, "payday"), ({"reason": "payday"}, "payday")]
)
async def test_both_spellings_of_the_reason_are_kept(
    fleet: Fleet, books: Books, said: dict[str, str], kept: str
) -> None:
    told = await grant(fleet, fleet.owner, **said)
    made = books.do(lambda ledger: ledger.transaction(told.transaction_id))
    assert (made.type, made.amount, made.reference, made.subject) == ("grant", 10, kept, fleet.owner.subject)
    assert (made.balance_after, books.types()) == (10, ["grant"])


async def test_a_retry_of_a_grant_gives_nothing_more(fleet: Fleet, books: Books) -> None:
    heard: list[Event] = []
    fleet.platform.events.subscribe(heard.append)
    first = await grant(fleet, fleet.owner, reference="payday")
    again = await grant(fleet, fleet.owner, reference="payday")
    assert (again.transaction_id, again.available, again.repeated, first.repeated) == (
        first.transaction_id, 10, True, False
    )  # fmt: skip
    assert len(heard) == 1
    for other in ({"reference": "bonus"}, {"amount": 11, "reference": "payday"}, {"wallet_address": "v"}, {}):
        assert not (await grant(fleet, fleet.owner, **other)).repeated
    assert (await grant(fleet, fleet.owner)).repeated
    assert books.check()["w"]["available"] == 10 + 10 + 11 + 10


async def test_of_the_same_grant_at_the_same_moment_one_counts(fleet: Fleet, books: Books) -> None:
    told = await asyncio.gather(*(grant(fleet, fleet.owner, reference="payday") for _ in range(8)))
    assert (len({each.transaction_id for each in told}), books.check()["w"]["available"]) == (1, 10)


async def test_another_person_or_a_later_day_is_another_grant(
    fleet: Fleet, books: Books, monkeypatch: pytest.MonkeyPatch
) -> None:
    await grant(fleet, fleet.owner)
    await fleet.call(fleet.owner, "grant_tool", agent="default", tool="grant_credits", without_approval=True)
    assert not (await grant(fleet, fleet.actor())).repeated
    assert (await grant(fleet, fleet.owner)).repeated
    monkeypatch.setattr(store, "SAME_GRANT_MS", 0)
    assert not (await grant(fleet, fleet.owner)).repeated
    assert books.check()["w"]["available"] == 30


async def test_a_grant_is_announced_once_it_is_committed(fleet: Fleet) -> None:
    heard: list[Event] = []
    fleet.platform.events.subscribe(heard.append)
    await grant(fleet, fleet.owner)
    assert [(event.name, event.subject, event.payload) for event in heard] == [("CreditsGranted", "w", {"amount": 10})]


async def test_grants_at_the_same_moment_all_count(fleet: Fleet, books: Books) -> None:
    await asyncio.gather(*(grant(fleet, fleet.owner, amount=number) for number in range(1, 41)))
    assert books.check()["w"]["available"] == 820
    assert len(books.types()) == 40

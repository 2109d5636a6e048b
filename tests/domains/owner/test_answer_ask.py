"""People answer: only they do, and only the first answer counts."""

import asyncio
from collections import Counter
from typing import Any

import pytest

from rookery.asks.store import Asks
from rookery.core.errors import Conflict, InvalidParams, NotFound, PermissionDenied, RookeryError
from tests.domains.owner.reception import Reception


@pytest.mark.parametrize("answer", ["", "  \n", "x" * 20_001, None, "a\0b", "\ud800"])
async def test_what_is_no_answer_is_refused(reception: Reception, answer: Any) -> None:
    row = await reception.opened()
    with pytest.raises(InvalidParams):
        await reception.call(reception.owner, "answer_ask", ask_id=row.id, answer=answer)
    assert reception.row(row.id).status == "open"


async def test_an_unknown_ask_and_one_of_another_tenant_are_not_found(reception: Reception) -> None:
    row = await reception.opened()
    for actor, ask_id in (
        (reception.owner, "0" * 32),
        (reception.stranger(as_owner=True), row.id),
        (reception.stranger(as_owner=True), row.id[:8]),
    ):
        with pytest.raises(NotFound):
            await reception.call(actor, "answer_ask", ask_id=ask_id, answer="yes")
    assert reception.row(row.id).status == "open"


async def test_an_owner_who_is_not_there_cannot_answer(reception: Reception) -> None:
    row = await reception.opened()
    with pytest.raises(PermissionDenied):
        await reception.call(
            reception.fleet.actor(as_owner=True, scheduler=True), "answer_ask", ask_id=row.id, answer="yes"
        )
    assert reception.row(row.id).status == "open"


async def test_the_second_answer_is_a_conflict_that_names_the_first(reception: Reception) -> None:
    row = await reception.opened()
    await reception.answer(row, "green")
    with pytest.raises(Conflict, match="already answered by owner via"):
        await reception.answer(row, "blue")
    assert reception.row(row.id).answer == {"text": "green", "option": None}


async def test_of_many_answers_at_once_exactly_one_counts(reception: Reception) -> None:
    call, row = await reception.ask()

    async def one(number: int) -> str:
        try:
            return (await reception.answer(row, f"answer {number}")).asks[0]["answer"]
        except RookeryError as error:
            return error.code

    said = await asyncio.gather(*(one(number) for number in range(20)))
    counted = Counter(said)
    assert counted.pop("CONFLICT") == 19
    assert list(counted) == [(await call).answer]
    assert len(reception.told("AskAnswered")) == 1


async def test_what_has_expired_or_was_withdrawn_cannot_be_answered(reception: Reception) -> None:
    row = await reception.opened()
    reception.pass_hours(73)
    with pytest.raises(Conflict, match="has expired"):
        await reception.answer(row)
    other = await reception.opened(question="still?")
    reception.platform.database.direct(lambda tx: Asks(tx, "default").withdraw(other.id), write=True)
    with pytest.raises(Conflict, match="was withdrawn"):
        await reception.answer(other)


async def test_the_first_eight_characters_of_an_id_are_enough(reception: Reception) -> None:
    row = await reception.opened(options=["yes", "no"])
    done = await reception.call(reception.owner, "answer_ask", ask_id=f" {row.id[:8].upper()} ", answer="1")
    (shown,) = done.asks
    assert (shown["id"], shown["answer"], shown["option"], shown["agent"]) == (row.id, "yes", 1, "default")


async def test_what_one_agent_asks_in_the_same_words_is_answered_together(reception: Reception) -> None:
    sessions = [reception.fleet.actor(session=f"ses-{number}") for number in range(3)]
    bob = await reception.agent("bob")
    calls = [(await reception.ask(actor, options=["yes", "no"])) for actor in sessions]
    hers = await reception.opened(bob, options=["yes", "no"])
    other = await reception.opened(options=["no", "yes"])
    row = reception.rows()[0]
    done = await reception.answer(row, "2", similar=True)
    assert len(done.asks) == 3
    assert done.asks[0]["id"] == row.id
    assert [(await call).answer for call, _ in calls] == ["no"] * 3
    assert {reception.row(each.id).status for each in (hers, other)} == {"open"}
    assert len(reception.told("AskAnswered")) == 3


async def test_without_being_asked_to_nothing_else_is_answered(reception: Reception) -> None:
    sessions = [reception.fleet.actor(session=f"ses-{number}") for number in range(2)]
    first, second = [await reception.opened(actor) for actor in sessions]
    await reception.answer(first)
    assert Counter(row.status for row in reception.rows()) == {"answered": 1, "open": 1}
    assert second.batch_key == first.batch_key

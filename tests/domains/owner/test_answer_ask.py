"""People answer: only they do, and only the first answer counts."""

import asyncio
from collections import Counter
from typing import Any

import pytest

from rookery.asks.store import Asks, NewAsk
from rookery.core.errors import Conflict, InvalidParams, NotFound, PermissionDenied, RookeryError
from tests.domains.owner.reception import Reception


@pytest.mark.parametrize("answer", ["", "  \n", "x" * 20_001, None, "a\0b", "\ud800"])
async def test_what_is_no_answer_is_refused(reception: Reception, answer: Any) -> None:
    row = await reception.opened()
    with pytest.raises(InvalidParams):
        await reception.call(reception.owner, "answer_ask", ask_id=row.id, answer=answer)
    assert reception.row(row.id).status == "open"


@pytest.mark.parametrize("given", [{}, {"answer": "yes", "dismiss": True}, {"dismiss": False}], ids=str)
async def test_without_either_an_answer_or_a_dismissal_nothing_happens(reception: Reception, given: Any) -> None:
    row = await reception.opened()
    with pytest.raises(InvalidParams):
        await reception.call(reception.owner, "answer_ask", ask_id=row.id, **given)
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


async def test_the_owner_dismisses_what_needs_no_answer(reception: Reception) -> None:
    call, row = await reception.ask()
    (shown,) = (await reception.call(reception.owner, "answer_ask", ask_id=row.id[:8], dismiss=True)).asks
    assert (shown["status"], shown["answered_by"], shown["answer"]) == ("withdrawn", "owner", None)
    told = await call
    assert (told.status, "owner has dismissed it: use your best judgement" in told.note) == ("withdrawn", True)
    assert reception.told("AskAnswered") == []
    assert [event.subject for event in reception.told("AskWithdrawn")] == [row.id]
    with pytest.raises(Conflict, match="was withdrawn"):
        await reception.answer(row)


async def test_alike_asks_are_dismissed_together(reception: Reception) -> None:
    sessions = [reception.fleet.actor(session=f"ses-{number}") for number in range(3)]
    rows = [await reception.opened(actor) for actor in sessions]
    other = await reception.opened(question="another?")
    await reception.call(reception.owner, "answer_ask", ask_id=rows[1].id, dismiss=True, similar=True)
    assert {reception.row(row.id).status for row in rows} == {"withdrawn"}
    assert reception.row(other.id).status == "open"


async def test_not_now_leaves_the_ask_open(reception: Reception) -> None:
    new = NewAsk(kind="approval", agent_id="agt-1", question="delete it?")
    row, _ = reception.platform.database.direct(lambda tx: Asks(tx, "default").open(new), write=True)
    (shown,) = (await reception.answer(row, "later")).asks
    assert (shown["status"], shown["put_off"]) == ("open", True)
    assert (reception.told("AskAnswered"), len(reception.told("AskPutOff"))) == ([], 1)
    (shown,) = (await reception.answer(row, "deny: too early")).asks
    assert (shown["status"], shown["put_off"], shown["answer"]) == ("answered", False, "deny: too early")


async def test_two_who_answer_one_batch_at_once_do_not_hold_each_other_up(reception: Reception) -> None:
    for round_number in range(3):
        actors = [reception.fleet.actor(session=f"ses-{round_number}-{number}") for number in range(6)]
        rows = [await reception.opened(actor) for actor in actors]
        done = await asyncio.gather(
            *(reception.answer(row, f"answer {row.id}", similar=True) for row in rows), return_exceptions=True
        )
        counted = [each for each in done if not isinstance(each, BaseException)]
        assert [len(each.asks) for each in counted] == [6]
        assert {type(each) for each in done if isinstance(each, BaseException)} == {Conflict}

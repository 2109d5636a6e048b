"""Looking at an ask later: one's own, and nobody else's."""

import pytest
import sqlalchemy as sa

from rookery.asks.tables import asks
from rookery.core.errors import Conflict, InvalidParams, NotFound
from tests.domains.owner.reception import Reception


async def test_the_asks_of_others_are_not_found(reception: Reception) -> None:
    row = await reception.opened()
    bob = await reception.agent("bob")
    for stranger in (bob, reception.stranger(), reception.stranger(as_owner=True)):
        for ask_id in (row.id, row.id[:8]):
            with pytest.raises(NotFound):
                await reception.call(stranger, "check_answer", ask_id=ask_id)


@pytest.mark.parametrize("ask_id", ["0" * 32, "00000000", "%%%%%%%%", "ask", "' OR 1=1 --", "________"])
async def test_what_is_no_ask_is_not_found(reception: Reception, ask_id: str) -> None:
    await reception.opened()
    with pytest.raises(NotFound):
        await reception.call(reception.ada, "check_answer", ask_id=ask_id)


@pytest.mark.parametrize("ask_id", ["", " ", "x" * 65, None, 7])
async def test_a_bad_id_is_refused(reception: Reception, ask_id: object) -> None:
    with pytest.raises(InvalidParams):
        await reception.call(reception.ada, "check_answer", ask_id=ask_id)


async def test_less_than_eight_characters_of_an_id_are_not_enough(reception: Reception) -> None:
    row = await reception.opened()
    with pytest.raises(NotFound):
        await reception.call(reception.ada, "check_answer", ask_id=row.id[:7])


async def test_a_beginning_that_two_asks_share_is_a_conflict(reception: Reception) -> None:
    rows = [await reception.opened(question=f"number {number}?") for number in range(2)]
    same = [f"abcdef01{row.id[8:]}" for row in rows]
    reception.platform.database.direct(
        lambda tx: [
            tx.run(sa.update(asks).where(asks.c.id == row.id).values(id=other))
            for row, other in zip(rows, same, strict=True)
        ],
        write=True,
    )
    with pytest.raises(Conflict):
        await reception.call(reception.ada, "check_answer", ask_id="abcdef01")
    assert (await reception.call(reception.ada, "check_answer", ask_id=same[0])).ask_id == same[0]


async def test_an_ask_shows_its_answer_once_there_is_one_for_as_long_as_anybody_looks(reception: Reception) -> None:
    row = await reception.opened(options=["yes", "no"])
    shown = await reception.call(reception.ada, "check_answer", ask_id=row.id[:8])
    assert (shown.status, "best judgement" in shown.note) == ("open", True)
    reception.pass_hours(71)
    await reception.answer(row, "no")
    for _ in range(2):
        shown = await reception.call(reception.ada, "check_answer", ask_id=row.id)
        assert (shown.status, shown.answer, shown.option) == ("answered", "no", 2)


async def test_an_ask_that_nobody_will_answer_says_so(reception: Reception) -> None:
    row = await reception.opened()
    reception.pass_hours(73)
    await reception.opened(question="something else?")
    reception.platform.database.direct(
        lambda tx: tx.run(sa.update(asks).where(asks.c.id == row.id).values(status="expired")), write=True
    )
    shown = await reception.call(reception.ada, "check_answer", ask_id=row.id)
    assert (shown.status, "it has expired" in shown.note) == ("expired", True)

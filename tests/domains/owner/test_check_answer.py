"""Looking at an ask later: one's own, and nobody else's."""

import pytest
import sqlalchemy as sa

from rookery.asks.store import Asks, Kind, NewAsk
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
            tx.run(sa.update(asks).where(asks.c.id == row.id).values(id=other, short_id=other[:8]))
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
    # Also before a worker has noted it, and where there is none.
    for status in ("open", "expired"):
        reception.platform.database.direct(
            lambda tx, status=status: tx.run(sa.update(asks).values(status=status)), write=True
        )
        shown = await reception.call(reception.ada, "check_answer", ask_id=row.id)
        assert (shown.status, "it has expired" in shown.note) == ("expired", True)


async def test_the_ask_of_somebody_else_is_not_taken_back(reception: Reception) -> None:
    row = await reception.opened()
    bob = await reception.agent("bob")
    for stranger in (bob, reception.stranger(), reception.owner):
        with pytest.raises(NotFound):
            await reception.call(stranger, "check_answer", ask_id=row.id, withdraw=True)
    assert reception.row(row.id).status == "open"


@pytest.mark.parametrize("kind", ["schedule", "verdict"])
async def test_what_others_wait_for_is_not_taken_back(reception: Reception, kind: Kind) -> None:
    agent = reception.ada.agent
    assert agent is not None
    new = NewAsk(kind=kind, agent_id=agent, question="go on?")
    row, _ = reception.platform.database.direct(lambda tx: Asks(tx, "default").open(new), write=True)
    with pytest.raises(Conflict):
        await reception.call(reception.ada, "check_answer", ask_id=row.id, withdraw=True)
    with pytest.raises(Conflict):
        await reception.call(reception.owner, "answer_ask", ask_id=row.id, dismiss=True)
    assert reception.row(row.id).status == "open"


async def test_an_agent_takes_its_own_ask_back(reception: Reception) -> None:
    row = await reception.opened()
    shown = await reception.call(reception.ada, "check_answer", ask_id=row.id[:8], withdraw=True)
    assert (shown.status, "it has been withdrawn" in shown.note) == ("withdrawn", True)
    assert [event.subject for event in reception.told("AskWithdrawn")] == [row.id]
    assert (await reception.call(reception.owner, "list_asks")).asks == []
    assert (await reception.call(reception.ada, "check_answer", ask_id=row.id, withdraw=True)).status == "withdrawn"
    assert (await reception.opened()).id != row.id


async def test_what_was_answered_meanwhile_is_told_instead_of_taken_back(reception: Reception) -> None:
    row = await reception.opened()
    await reception.answer(row)
    assert (await reception.call(reception.ada, "check_answer", ask_id=row.id, withdraw=True)).answer == "green"
    assert reception.row(row.id).told_ms is not None


@pytest.mark.parametrize("kind", ["approval", "schedule", "verdict"])
async def test_who_waits_for_a_decision_is_never_told_to_decide_itself(reception: Reception, kind: Kind) -> None:
    ada, database = reception.ada, reception.platform.database
    new = NewAsk(kind=kind, agent_id=ada.agent or "", question="May it?")
    row = database.direct(lambda tx: Asks(tx, ada.tenant).open(new)[0], write=True)
    shown = await reception.call(ada, "check_answer", ask_id=row.id)
    assert (shown.status, shown.note) == ("open", "Not decided yet: do other work and call again.")
    reception.pass_hours(100)
    shown = await reception.call(ada, "check_answer", ask_id=row.id)
    assert (shown.status, "judgement" in shown.note) == ("expired", False)

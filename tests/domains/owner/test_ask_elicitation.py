"""A question is also put to the person at the client, in both protocol eras; whoever answers first has answered."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest
import sqlalchemy as sa

from rookery.asks.tables import asks
from rookery.domains.owner import ask_tools
from rookery.testing import ERAS, Asked, Bench, Era, open_bench
from tests.domains.owner.reception import LIMIT_S, QUESTION

COLOURS = ["red", "green"]


@pytest.fixture
async def bench(database_url: str) -> AsyncIterator[Bench]:
    async with open_bench(database=database_url) as bench:
        yield bench


@pytest.fixture(params=ERAS)
def era(request: pytest.FixtureRequest) -> Era:
    return request.param


def rows(bench: Bench) -> list[Any]:
    return list(bench.platform.database.direct(lambda tx: tx.all(sa.select(asks).order_by(asks.c.created_ms))))


async def opened(bench: Bench) -> Any:
    """The ask, once it is there."""
    async with asyncio.timeout(LIMIT_S):
        while not rows(bench):
            await asyncio.sleep(0.01)
    return rows(bench)[0]


@pytest.mark.parametrize(
    "filled", ["decline", "cancel", {"answer": "  "}, {"answer": 7}, {"other": "x"}, {"answer": "a\0"}]
)
async def test_a_person_who_gives_no_answer_leaves_it_to_the_owner(
    bench: Bench, era: Era, monkeypatch: pytest.MonkeyPatch, filled: Any
) -> None:
    monkeypatch.setattr(ask_tools, "LEAST_S", 0.1)
    client = await bench.client(era=era, elicit=lambda asked: filled)
    answer = await client.call("ask_owner", question=QUESTION, timeout_seconds=0)
    assert answer["status"] == "open"
    assert [asked.message for asked in client.asked] == [QUESTION]
    await bench.as_owner("answer_ask", ask_id=answer["ask_id"], answer="green")
    found = await client.call("check_answer", ask_id=answer["ask_id"])
    assert (found["answer"], len(rows(bench))) == ("green", 1)


async def test_the_person_at_the_client_can_answer(bench: Bench, era: Era) -> None:
    client = await bench.client(era=era, elicit={"answer": "2"})
    answer = await client.call("ask_owner", question=QUESTION, options=COLOURS, context="for the door")
    assert (answer["answer"], answer["option"], answer["via"]) == ("green", 2, "elicitation")
    assert answer["answered_by"] == "the person at rookery-bench"
    (asked,) = client.asked
    assert asked.message == f"{QUESTION}\n\nfor the door\n\n1. red\n2. green"
    (row,) = rows(bench)
    assert (row.status, row.told_ms is not None) == ("answered", True)


async def test_each_question_gets_its_own_answer(bench: Bench, era: Era) -> None:
    client = await bench.client(era=era, elicit=lambda asked: {"answer": asked.message.upper()})
    answers = [await client.call("ask_owner", question=f"number {number}?") for number in range(3)]
    assert [answer["answer"] for answer in answers] == ["NUMBER 0?", "NUMBER 1?", "NUMBER 2?"]
    again = await client.call("ask_owner", question="number 0?")
    assert again["ask_id"] != answers[0]["ask_id"]


async def test_an_owner_who_is_faster_than_the_person_at_the_client_has_answered(bench: Bench, era: Era) -> None:
    slow = asyncio.Event()

    async def person(asked: Asked) -> dict[str, str]:
        await slow.wait()
        return {"answer": "red"}

    client = await bench.client(era=era, elicit=person)
    call = asyncio.create_task(client.call("ask_owner", question=QUESTION))
    row = await opened(bench)
    await bench.as_owner("answer_ask", ask_id=row.id, answer="green")
    if era == "2026-07-28":
        # Here the client has the question, and the call is over until its person has answered.
        slow.set()
    async with asyncio.timeout(LIMIT_S):
        answer = await call
    slow.set()
    assert (answer["answer"], answer["via"] != "elicitation") == ("green", True)
    (row,) = rows(bench)
    assert row.answer["text"] == "green"


async def test_a_client_that_cannot_ask_its_person_waits_for_the_owner(bench: Bench, era: Era) -> None:
    client = await bench.client(era=era)
    call = asyncio.create_task(client.call("ask_owner", question=QUESTION))
    row = await opened(bench)
    await bench.as_owner("answer_ask", ask_id=row.id, answer="green")
    async with asyncio.timeout(LIMIT_S):
        assert (await call)["answer"] == "green"
    assert row.id in (client.progress[0].message or ""), "who loses the connection knows the id"

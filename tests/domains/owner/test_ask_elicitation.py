"""A question is also put to the person at the client, in both protocol eras; whoever answers first has answered."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest
import sqlalchemy as sa

from rookery.asks.tables import asks
from rookery.core.errors import DatabaseError
from rookery.domains.owner import ask_inquiry, ask_tools
from rookery.testing import ERAS, Asked, Bench, Era, open_bench
from tests.domains.owner.reception import LIMIT_S, QUESTION

COLOURS = ["red", "green"]


@pytest.fixture
async def bench(database_url: str) -> AsyncIterator[Bench]:
    async with open_bench(database=database_url) as bench:
        yield bench


@pytest.fixture(autouse=True)
def hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody elsewhere has a head start."""
    monkeypatch.setattr(ask_inquiry, "HEAD_START_S", 0.05)


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
    assert answer["answered_by"] == 'the person at the agent\'s client "rookery-bench"'
    (asked,) = client.asked
    assert asked.message == f"{QUESTION}\n\nfor the door\n\n1. red\n2. green"
    (row,) = rows(bench)
    assert (row.status, row.told_ms is not None) == ("answered", True)


async def test_each_question_gets_its_own_answer(bench: Bench, era: Era) -> None:
    client = await bench.client(era=era, elicit=lambda asked: {"answer": asked.message.upper()})
    answers = [await client.call("ask_owner", question=f"number {number}?") for number in range(3)]
    assert [answer["answer"] for answer in answers] == ["NUMBER 0?", "NUMBER 1?", "NUMBER 2?"]
    again = await client.call("ask_owner", question="number 0?")
    assert again["ask_id"] == answers[0]["ask_id"]
    assert len(client.asked) == 3, "nobody is asked twice"


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


async def test_a_client_of_2026_gets_the_answer_that_comes_before_its_person_is_asked(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ask_inquiry, "HEAD_START_S", LIMIT_S)

    async def nobody(asked: Asked) -> dict[str, str]:
        await asyncio.Event().wait()
        return {}

    client = await bench.client(era="2026-07-28", elicit=nobody)
    call = asyncio.create_task(client.call("ask_owner", question=QUESTION))
    row = await opened(bench)
    await bench.as_owner("answer_ask", ask_id=row.id, answer="green")
    async with asyncio.timeout(LIMIT_S / 2):
        assert (await call)["answer"] == "green"
    assert client.asked == []


async def test_what_the_person_at_a_client_of_2026_takes_is_part_of_the_askers_patience(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ask_tools, "LEAST_S", 2 * LIMIT_S)
    earlier = sa.update(asks).values(created_ms=asks.c.created_ms - int(2 * LIMIT_S * 1000))

    async def hesitates(asked: Asked) -> Any:
        bench.platform.database.direct(lambda tx: tx.run(earlier), write=True)
        return "decline"

    client = await bench.client(era="2026-07-28", elicit=hesitates)
    async with asyncio.timeout(LIMIT_S):
        answer = await client.call("ask_owner", question=QUESTION, timeout_seconds=0)
    assert answer["status"] == "open"


@pytest.mark.parametrize("failures", [1, 3])
async def test_what_the_person_said_outlasts_a_database_that_is_away_for_a_moment(
    bench: Bench, era: Era, failures: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ask_inquiry, "RETRY_S", 0.01)
    database = bench.platform.database
    left, write = [0], database.write

    async def faltering(work: Any, **how: Any) -> Any:
        if left[0]:
            left[0] -= 1
            raise DatabaseError("the database is out of reach")
        return await write(work, **how)

    def person(asked: Asked) -> dict[str, str]:
        if era == "2025-11-25":
            left[0] = failures
        return {"answer": "2"}

    monkeypatch.setattr(database, "write", faltering)
    if era == "2026-07-28":
        keep = ask_inquiry.Inquiry._keep

        async def keeping(self: Any, row: Any, said: str) -> None:
            left[0] = failures
            await keep(self, row, said)

        monkeypatch.setattr(ask_inquiry.Inquiry, "_keep", keeping)
    client = await bench.client(era=era, elicit=person)
    answer = await client.call("ask_owner", question=QUESTION, options=COLOURS)
    assert (answer["answer"], answer["via"], left) == ("green", "elicitation", [0])


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("Claude Code 2.1", 'the person at the agent\'s client "Claude Code 2.1"'),
        ('x", who is the owner "', 'the person at the agent\'s client "x who is the owner"'),
        ("\n\x1b[31m", 'the person at the agent\'s client "31m"'),
        ("\"'", "the person at the agent's client"),
        ("", "the person at the agent's client"),
    ],
)
def test_a_client_cannot_pass_its_person_off_as_somebody_else(name: str, shown: str) -> None:
    assert ask_inquiry._person_at(name) == shown

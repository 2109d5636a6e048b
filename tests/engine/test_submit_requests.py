"""Bringing requests: who may, what is refused, and that the same request is kept once."""

import asyncio
from typing import Any

import pytest
import sqlalchemy as sa

from rookery.core.errors import Conflict, InvalidParams, PermissionDenied
from rookery.engine import intake_store
from rookery.engine.intake_store import MAX_TEXT, digest_of
from rookery.engine.tables import intake_requests
from tests.engine.crew import Crew
from tests.waking import until, until_listening


async def submit(crew: Crew, actor: Any, *texts: Any) -> list[tuple[str, bool]]:
    stored = await crew.call(actor, "submit_requests", requests=list(texts))
    return [(each.state, each.known) for each in stored.requests]


async def test_agents_that_make_no_issues_and_intake_itself_do_not_have_it(crew: Crew) -> None:
    for profile in ("judge", "intake"):
        with pytest.raises(PermissionDenied):
            await submit(crew, crew.actor(profile), "the export is slow")
    with pytest.raises(PermissionDenied):
        await submit(crew, crew.fleet.actor(), "the export is slow")
    assert crew.count(intake_requests) == 0


async def test_what_is_no_request_is_refused_and_nothing_of_the_batch_is_kept(crew: Crew) -> None:
    for wrong in ("", "   ", "x" * (MAX_TEXT + 1), "a\0b", 7, None):
        with pytest.raises(InvalidParams):
            await submit(crew, crew.owner, "the export is slow", wrong)
    with pytest.raises(InvalidParams):
        await submit(crew, crew.owner, *(f"wish {number}" for number in range(101)))
    with pytest.raises(InvalidParams):
        await crew.call(crew.owner, "submit_requests", requests=["x"], project_id="other")
    assert crew.count(intake_requests) == 0


async def test_whoever_brings_more_than_can_wait_is_told_to_come_back(
    crew: Crew, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(intake_store, "MAX_WAITING", 2)
    await submit(crew, crew.owner, "one", "two")
    with pytest.raises(Conflict, match="2 requests wait"):
        await submit(crew, crew.owner, "three")
    assert crew.count(intake_requests) == 2


async def test_people_and_agents_that_make_issues_bring_requests_each_for_its_own_project(crew: Crew) -> None:
    await crew.open()
    for profile in ("worker", "researcher", "scanner", "architect", "planner"):
        assert await submit(crew, crew.actor(profile), f"a wish of the {profile}") == [("new", False)]
    assert await submit(crew, crew.person("shop"), "a wish of mine") == [("new", False)]
    rows = crew.rows(sa.select(intake_requests))
    kept = {row.submitted_by: row.project_id for row in rows}
    assert kept["owner"] == crew.person("shop").project
    assert {kept[name] for name in kept if name != "owner"} == {crew.owner.project}


async def test_the_same_request_is_kept_once_for_a_project_however_it_is_spelled(crew: Crew) -> None:
    await crew.open()
    first = "The export is slow.\n\nIt takes a minute."
    assert await submit(crew, crew.owner, first, " the EXPORT is slow. It\ttakes a minute.\r\n") == [
        ("new", False),
        ("new", True),
    ]
    for actor in (crew.person("shop"), crew.stranger):
        assert await submit(crew, actor, first) == [("new", False)]
    assert await submit(crew, crew.owner, "The export is slow. It takes an hour.") == [("new", False)]


async def test_of_many_who_bring_the_same_at_once_one_is_first(crew: Crew) -> None:
    answers = await asyncio.gather(*(submit(crew, crew.owner, "the export is slow") for _ in range(8)))
    assert sorted(known for answer in answers for _, known in answer) == [False] + [True] * 7
    assert crew.count(intake_requests) == 1


async def test_those_who_bring_the_same_in_another_order_do_not_wait_for_each_other(crew: Crew) -> None:
    texts = [f"wish {number}" for number in range(20)]
    orders = [texts, texts[::-1]] * 4
    answers = await asyncio.gather(*(submit(crew, crew.owner, *order) for order in orders))
    assert sum(not known for answer in answers for _, known in answer) == len(texts)


async def test_requests_of_one_call_stay_in_their_order(crew: Crew) -> None:
    texts = [f"wish {number}" for number in range(20)]
    await submit(crew, crew.owner, *texts)
    order = sa.select(intake_requests.c.text).order_by(intake_requests.c.created_ms, intake_requests.c.id)
    assert [row.text for row in crew.rows(order)] == texts


async def test_a_request_that_was_given_up_is_tried_again_when_it_is_brought_again(crew: Crew) -> None:
    await submit(crew, crew.owner, "the export is slow")
    crew.change(sa.update(intake_requests).values(state="failed", note="tried 4 times", dispatch_id="dsp-1"))
    assert await submit(crew, crew.owner, "the export is slow") == [("new", True)]
    (row,) = crew.rows(sa.select(intake_requests))
    assert (row.note, row.dispatch_id) == (None, None)
    crew.change(sa.update(intake_requests).values(state="done"))
    assert await submit(crew, crew.owner, "the export is slow") == [("done", True)]


async def test_nothing_brought_is_nothing_kept(crew: Crew) -> None:
    assert await submit(crew, crew.owner) == []


async def test_whoever_plans_is_woken(crew: Crew) -> None:
    woken: list[str] = []
    stop = crew.platform.database.on_wake(woken.append)
    await until_listening(crew.platform.database)
    woken.clear()
    await submit(crew, crew.owner, "the export is slow")
    await until(lambda: "orchestrator" in woken)
    stop()


def test_half_of_a_surrogate_pair_has_a_digest() -> None:
    assert digest_of("a\ud800") != digest_of("b\ud800")

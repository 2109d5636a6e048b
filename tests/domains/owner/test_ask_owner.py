"""Agents ask their owner: what is refused, what is kept, and what comes back when."""

import asyncio
import math
from collections.abc import Callable
from typing import Any

import pytest

from rookery.core.errors import InvalidParams, PermissionDenied, RateLimited
from rookery.core.ids import new_id
from rookery.core.lint import lint, tokens
from rookery.domains.owner import ask_inquiry, ask_tools
from rookery.domains.owner.ask_tools import MAX_CONTEXT, MAX_OPTION, MAX_OPTIONS, MAX_QUESTION, patience_s
from rookery.server.streamable.sessions import record_id
from tests.domains.owner.reception import QUESTION, Reception
from tests.platform_fixtures import Fleet

COLOURS = ["red", "Green", "blue"]


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever asks for the shortest time waits for a moment only."""
    monkeypatch.setattr(ask_tools, "LEAST_S", 0.05)


@pytest.mark.parametrize("name", ["ask_owner", "corvid_ask_owner"])
async def test_a_scheduled_session_cannot_ask(reception: Reception, name: str) -> None:
    with pytest.raises(PermissionDenied) as caught:
        await reception.call(reception.fleet.actor(scheduler=True), name, question=QUESTION)
    assert caught.value.layer == "scheduler"
    assert reception.rows() == []


@pytest.mark.parametrize(
    "wrong",
    [
        {"question": " \n"},
        {"question": "x" * (MAX_QUESTION + 1)},
        {"question": "a\0b"},
        {"options": [""]},
        {"options": ["x" * (MAX_OPTION + 1)]},
        {"options": [str(number) for number in range(MAX_OPTIONS + 1)]},
        {"options": ["yes", "YES "]},
        {"options": ["10", "5", "2"]},
        {"options": ["2", "1"]},
        {"context": "x" * (MAX_CONTEXT + 1)},
        {"timeout_seconds": math.nan},
        {"timeout_minutes": math.nan},
        {"timeout_minutes": "soon"},
        {"timeout_seconds": 60, "timeout_minutes": 1},
        {"answer": "yes"},
        {"kind": "approval"},
    ],
)
async def test_what_makes_no_question_is_refused_and_leaves_nothing(reception: Reception, wrong: Any) -> None:
    with pytest.raises(InvalidParams):
        await reception.call(reception.ada, "ask_owner", **{"question": QUESTION, **wrong})
    assert reception.rows() == []
    assert reception.jobs("owner.deliver_ask") == []


async def test_more_open_questions_than_anybody_answers_are_refused(
    reception: Reception, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ask_inquiry, "MAX_OPEN", 2)
    for number in range(2):
        await reception.opened(question=f"number {number}?")
    with pytest.raises(RateLimited):
        await reception.call(reception.ada, "ask_owner", question="one more?")
    assert len(reception.rows()) == 2
    await reception.opened(await reception.agent("bob"), question="may I?")


def test_the_listing_is_short_and_complete() -> None:
    for tool in (ask_tools.ask_owner, ask_tools.check_answer, ask_tools.answer_ask, ask_tools.list_asks):
        assert lint(tool) == []
        assert tokens(tool) <= 145, (tool.name, tokens(tool))
    assert list(ask_tools.ask_owner.input_schema["properties"]) == ["question", "options", "context", "timeout_seconds"]


@pytest.mark.parametrize(
    ("asked", "waited"),
    [(None, 120), (0, 60), (-math.inf, 60), (59.9, 60), (61.5, 61.5), (600, 600), (601, 600), (math.inf, 600)],
)
def test_nobody_waits_for_less_than_a_minute_or_more_than_ten(asked: float | None, waited: float) -> None:
    assert patience_s(asked) == waited


@pytest.mark.parametrize(("minutes", "seconds"), [(1, 60), (2.5, 150), (10, 600), (10**400, 36_000), (None, None)])
def test_minutes_are_understood_as_well(minutes: Any, seconds: float | None) -> None:
    assert ask_tools.AskOwner.model_validate({"question": "?", "timeout_minutes": minutes}).timeout_seconds == seconds


async def test_the_answer_of_the_owner_is_the_result(reception: Reception) -> None:
    call, row = await reception.ask(options=COLOURS, context="for the door")
    assert (row.kind, row.agent_id, row.session) == ("question", reception.ada.agent, "ses-ada")
    assert (row.options, row.context, row.expires_ms - row.created_ms) == (COLOURS, "for the door", 72 * 3_600_000)
    await reception.answer(row, "2")
    told = await call
    assert (told.ask_id, told.status, told.answer, told.option) == (row.id, "answered", "Green", 2)
    assert told.answered_by == "owner"
    assert told.as_text().startswith("Option 2: Green\n")
    assert reception.row(row.id).told_ms is not None


async def test_the_first_option_has_the_number_one(reception: Reception) -> None:
    for number, text in enumerate(("1", " RED ")):
        call, row = await reception.ask(question=f"{QUESTION} {number}", options=COLOURS)
        await reception.answer(row, text)
        assert ((await call).option, (await call).answer) == (1, "red")


async def test_without_an_answer_in_time_the_result_is_a_normal_one(reception: Reception, impatient: None) -> None:
    told = await reception.call(reception.ada, "ask_owner", question=QUESTION, timeout_seconds=0)
    assert told.status == "open"
    assert "best judgement" in told.note
    assert told.ask_id in told.as_text()
    assert reception.row(told.ask_id).status == "open"
    found = await reception.platform.calls.call(reception.owner, "list_audit_records", {"tool": "ask_owner"})
    assert {record["outcome"] for record in found.structured["records"]} == {"intent", "done"}


async def test_a_question_is_stored_and_on_its_way_to_every_channel_before_anybody_waits(reception: Reception) -> None:
    call, row = await reception.ask()
    (deliver,) = reception.jobs("owner.deliver_ask")
    assert (deliver.args, deliver.state) == ({"ask_id": row.id}, "waiting")
    (expire,) = reception.jobs("owner.expire_asks")
    assert row.expires_ms < expire.due_ms <= row.expires_ms + 60_000
    (opened,) = reception.told("AskOpened")
    assert (opened.subject, opened.payload["agent"]) == (row.id, reception.ada.agent)
    await reception.answer(row)
    await call
    (answered,) = reception.told("AskAnswered")
    assert (answered.subject, answered.payload["session"]) == (row.id, "ses-ada")


async def test_a_question_whose_client_has_gone_stays_open(reception: Reception) -> None:
    row = await reception.opened()
    assert reception.row(row.id).status == "open"
    await reception.answer(row)
    assert reception.row(row.id).status == "answered"


async def test_who_asks_again_is_told_what_was_answered_meanwhile(reception: Reception) -> None:
    row = await reception.opened()
    await reception.answer(row)
    told = await reception.call(reception.ada, "ask_owner", question=QUESTION)
    assert (told.ask_id, told.answer) == (row.id, "green")
    assert len(reception.rows()) == 1
    assert len(reception.told("AskOpened")) == 1


async def test_the_same_question_is_open_once_however_often_it_is_asked(reception: Reception) -> None:
    calls = [(await reception.ask())[0] for _ in range(5)]
    (row,) = reception.rows()
    await reception.answer(row)
    assert {(await call).answer for call in calls} == {"green"}
    assert len(reception.jobs("owner.deliver_ask")) == 1


async def test_of_many_who_ask_the_same_at_two_servers_at_once_one_opens_it(
    reception: Reception, database_url: str, make_fleet: Callable[..., Fleet]
) -> None:
    elsewhere = Reception(make_fleet(database_url, extra={}))
    asked = await asyncio.gather(*(place.ask() for place in (reception, elsewhere) for _ in range(8)))
    (row,) = reception.rows()
    assert len(reception.told("AskOpened") + elsewhere.told("AskOpened")) == 1
    await elsewhere.answer(row)
    assert {(await call).answer for call, _ in asked} == {"green"}


async def test_an_answer_that_may_not_have_arrived_is_told_again_for_some_minutes(reception: Reception) -> None:
    call, row = await reception.ask()
    await reception.answer(row)
    assert not hasattr(await call, "note")
    for _ in range(2):
        reception.pass_hours(4 / 60)
        told = await reception.call(reception.ada, "ask_owner", question=QUESTION)
        assert (told.ask_id, told.answer) == (row.id, "green")
        assert "had this answer already" in told.as_text()
    reception.pass_hours(4 / 60)
    call, other = await reception.ask()
    await reception.answer(other, "blue")
    assert ((await call).answer, other.id != row.id) == ("blue", True)
    assert len(reception.rows()) == 2


async def test_an_answer_that_was_looked_at_later_is_not_the_answer_to_the_next_question(reception: Reception) -> None:
    row = await reception.opened()
    await reception.answer(row)
    assert (await reception.call(reception.ada, "check_answer", ask_id=row.id)).answer == "green"
    reception.pass_hours(1)
    assert (await reception.opened()).id != row.id


async def test_an_answer_that_nobody_fetched_counts_for_three_days(reception: Reception) -> None:
    row = await reception.opened()
    await reception.answer(row)
    reception.pass_hours(71.9)
    again = await reception.opened()
    assert again.id == row.id
    other = await reception.opened(question="another?")
    await reception.answer(other)
    reception.pass_hours(72.1)
    assert (await reception.opened(question="another?")).id != other.id


async def test_a_session_that_nobody_named_is_no_place_of_its_own(reception: Reception) -> None:
    lost, new, over_http = (
        reception.fleet.actor(session=name) for name in (new_id("ses"), new_id("ses"), record_id("a"))
    )
    row = await reception.opened(lost)
    await reception.answer(row)
    for actor in (new, over_http):
        assert (await reception.call(actor, "ask_owner", question=QUESTION)).ask_id == row.id


async def test_what_differs_in_anything_is_another_question(reception: Reception) -> None:
    bob = await reception.agent("bob")
    other_session = reception.fleet.actor(session="ses-other")
    for actor, given in (
        (reception.ada, {}),
        (bob, {}),
        (other_session, {}),
        (reception.ada, {"context": "for the door"}),
        (reception.ada, {"options": COLOURS}),
    ):
        await reception.opened(actor, **given)
    assert len(reception.rows()) == 5


async def test_about_an_issue_a_later_session_asks_the_same_question(reception: Reception) -> None:
    issue = await reception.fleet.issue()
    first, later = (reception.fleet.actor(session=name, issue=issue) for name in ("ses-1", "ses-2"))
    row = await reception.opened(first)
    assert row.subject == first.issue
    await reception.answer(row)
    assert (await reception.call(later, "ask_owner", question=QUESTION)).ask_id == row.id


async def test_an_answer_reaches_whoever_waits_at_another_server(
    reception: Reception, database_url: str, make_fleet: Callable[..., Fleet]
) -> None:
    elsewhere = Reception(make_fleet(database_url, extra={}))
    call, row = await reception.ask()
    again, same = await elsewhere.ask()
    assert same.id == row.id
    await elsewhere.answer(row)
    assert {(await each).answer for each in (call, again)} == {"green"}
    assert len(reception.rows()) == 1

"""What waits for the owner is an ask: it can be answered wherever asks are, and what was decided first counts."""

from dataclasses import replace
from typing import Any

import pytest
import sqlalchemy as sa

from rookery.asks.tables import asks
from rookery.core.errors import Conflict, PermissionDenied, ValidationFailed
from rookery.domains.schedules.asking import NEVER_MS
from rookery.jobs.store import Jobs
from tests.domains.schedules.almanac import Almanac

TASK = [{"type": "work_task", "description": "mend the roof"}]


async def waiting(almanac: Almanac, **given: Any) -> tuple[str, Any, Any]:
    """A schedule, its execution that waits, and the ask about it."""
    made = {"schedule_actions": TASK, "approval_policy": "owner_approve", "interval_minutes": 10}
    schedule_id = await almanac.make(**(made | given))
    execution = await almanac.happen(schedule_id)
    assert execution.status == "awaiting_approval"
    return schedule_id, execution, ask_about(almanac, execution)


def ask_about(almanac: Almanac, execution: Any) -> Any:
    (row,) = almanac.rows(sa.select(asks).where(asks.c.subject == execution.id))
    return row


def execution_of(almanac: Almanac, execution: Any) -> Any:
    return next(row for row in almanac.executions() if row.id == execution.id)


async def answer(almanac: Almanac, ask: Any, text: str, **how: Any) -> Any:
    return await almanac.fleet.call(almanac.owner, "answer_ask", ask_id=ask.id, answer=text, **how)


def decided(almanac: Almanac) -> list[tuple[str | None, bool]]:
    found = [event for event in almanac.events if event.name == "ScheduleExecutionDecided"]
    return [(event.subject, event.payload["approved"]) for event in found]


@pytest.mark.parametrize("action", ["approve", "deny"])
@pytest.mark.parametrize(
    "given", [{"scheduler": True}, {"unattended": True}, {"role": "operator"}, {"role": "viewer"}, {"role": None}],
    ids=str,
)  # fmt: skip
async def test_only_an_owner_who_is_there_decides(almanac: Almanac, action: str, given: Any) -> None:
    _, execution, ask = await waiting(almanac)
    with pytest.raises(PermissionDenied):
        await almanac.call(replace(almanac.owner, **given), action, execution_id=execution.id)
    assert execution_of(almanac, execution).status == "awaiting_approval"
    assert ask_about(almanac, execution).status == ask.status == "open"


async def test_what_waits_is_asked_once_with_what_it_would_do(almanac: Almanac) -> None:
    _, execution, ask = await waiting(almanac, name="Roof")
    assert (ask.kind, ask.agent_id, ask.status) == ("schedule", execution.agent_id, "open")
    assert ask.question == 'May "Roof" of default run?'
    assert '1. {"type": "work_task", "description": "mend the roof"}' in ask.context
    assert f"rookery schedules history --execution {execution.id}" in ask.context
    assert ask.expires_ms >= NEVER_MS
    await almanac.work()
    assert len(almanac.rows(sa.select(asks))) == 1
    opened = [event for event in almanac.events if event.name == "AskOpened"]
    assert [(event.subject, event.payload["kind"]) for event in opened] == [(ask.id, "schedule")]
    (listed,) = (await almanac.fleet.call(almanac.owner, "list_asks")).asks
    assert (listed["id"], listed["kind"], listed["agent"]) == (ask.id, "schedule", "default")
    assert [option.partition(". ")[2] for option in listed["options"]] == ["Approve", "Deny", "Later"]


async def test_what_needs_no_consent_asks_nobody(almanac: Almanac) -> None:
    for given in ({"approval_policy": "auto", "schedule_actions": TASK}, {"approval_policy": "owner_approve"}):
        await almanac.happen(await almanac.make(**given))
    assert almanac.rows(sa.select(asks)) == []


@pytest.mark.parametrize("text", ["approve", "yes", "1", "Approve"])
async def test_an_answer_that_agrees_lets_it_run_once(almanac: Almanac, text: str) -> None:
    _, execution, ask = await waiting(almanac)
    await answer(almanac, ask, text)
    await almanac.work()
    done = execution_of(almanac, execution)
    assert (done.status, done.decided_by) == ("completed", ask_about(almanac, execution).answered_by)
    assert [given["description"] for given in almanac.deeds.of("create_work_task")] == ["mend the roof"]
    assert decided(almanac) == [(execution.id, True)]
    with pytest.raises(Conflict, match="is completed"):
        await almanac.call(almanac.owner, "deny", execution_id=execution.id)


@pytest.mark.parametrize(("text", "why"), [("no", None), ("2", None), ("deny: the roof is fine", "the roof is fine")])
async def test_an_answer_that_denies_ends_it_and_keeps_the_reason(almanac: Almanac, text: str, why: str | None) -> None:
    schedule_id, execution, ask = await waiting(almanac)
    await answer(almanac, ask, text)
    await almanac.work()
    done = execution_of(almanac, execution)
    assert (done.status, done.result, done.completed_ms is None) == ("denied", why, False)
    assert almanac.deeds.of("create_work_task") == []
    assert decided(almanac) == [(execution.id, False)]
    assert (almanac.row(schedule_id).failures, almanac.row(schedule_id).status) == (0, "active")


async def test_later_leaves_both_as_they_are(almanac: Almanac) -> None:
    _, execution, ask = await waiting(almanac)
    await answer(almanac, ask, "later")
    await almanac.work()
    assert ask_about(almanac, execution).status == "open"
    assert execution_of(almanac, execution).status == "awaiting_approval"
    await answer(almanac, ask, "approve")
    await almanac.work()
    assert execution_of(almanac, execution).status == "completed"


@pytest.mark.parametrize(("action", "said"), [("approve", "Approve"), ("deny", "Deny")])
async def test_deciding_by_the_tool_answers_the_ask(almanac: Almanac, action: str, said: str) -> None:
    _, execution, ask = await waiting(almanac)
    await almanac.call(almanac.owner, action, execution_id=execution.id)
    closed = ask_about(almanac, execution)
    assert (closed.status, closed.answer["text"]) == ("answered", said)
    assert [event.subject for event in almanac.events if event.name == "AskAnswered"] == [ask.id]
    with pytest.raises(Conflict, match="already answered by"):
        await answer(almanac, ask, "approve")
    await almanac.work()
    assert len(almanac.deeds.of("create_work_task")) == (action == "approve")
    assert decided(almanac) == [(execution.id, action == "approve")]


async def test_who_answered_first_is_right_before_the_job_that_follows_has_run(almanac: Almanac) -> None:
    _, execution, ask = await waiting(almanac)
    await answer(almanac, ask, "deny")
    with pytest.raises(Conflict, match="already answered by"):
        await almanac.call(almanac.owner, "approve", execution_id=execution.id)
    await almanac.work()
    assert execution_of(almanac, execution).status == "denied"
    assert almanac.deeds.of("create_work_task") == []


async def test_the_job_that_follows_decides_nothing_by_itself(almanac: Almanac) -> None:
    _, execution, ask = await waiting(almanac)
    _, other, other_ask = await waiting(almanac, name="other")
    await answer(almanac, other_ask, "approve")
    await almanac.work()
    for args in (
        {"execution_id": execution.id, "ask_id": ask.id},
        {"execution_id": execution.id, "ask_id": other_ask.id},
        {"execution_id": execution.id, "ask_id": "none"},
        {"execution_id": other.id, "ask_id": other_ask.id},
    ):
        almanac.change(lambda tx, args=args: Jobs(tx, "default").defer("schedules.decide", args))
    await almanac.work()
    assert execution_of(almanac, execution).status == "awaiting_approval"
    assert len(almanac.deeds.of("create_work_task")) == 1


async def test_an_ask_that_was_taken_back_leaves_the_tool(almanac: Almanac) -> None:
    _, execution, ask = await waiting(almanac)
    almanac.change(lambda tx: tx.run(sa.update(asks).where(asks.c.id == ask.id).values(status="withdrawn")))
    await almanac.call(almanac.owner, "approve", execution_id=execution.id)
    await almanac.work()
    assert execution_of(almanac, execution).status == "completed"


async def test_deleting_the_schedule_takes_the_ask_back(almanac: Almanac) -> None:
    schedule_id, execution, ask = await waiting(almanac)
    await almanac.call(almanac.ada, "delete", schedule_id=schedule_id)
    assert ask_about(almanac, execution).status == "withdrawn"
    with pytest.raises(Conflict, match="was withdrawn"):
        await answer(almanac, ask, "approve")
    await almanac.work()
    assert almanac.deeds.of("create_work_task") == []


async def test_alike_are_those_of_one_agent_that_do_exactly_the_same(almanac: Almanac) -> None:
    _, first, ask = await waiting(almanac)
    _, same, _ = await waiting(almanac, name="again")
    _, other, _ = await waiting(almanac, name="nightly", schedule_actions=[{**TASK[0], "description": "burn it down"}])
    bob = await almanac.agent("bob")
    bobs = await almanac.make(bob, schedule_actions=TASK, approval_policy="owner_approve", interval_minutes=10)
    elsewhere = await almanac.happen(bobs)
    seen_ms = ask_about(almanac, elsewhere).created_ms
    await answer(almanac, ask, "approve", similar=True, seen_ms=seen_ms)
    await almanac.work()
    states = [execution_of(almanac, each).status for each in (first, same, other, elsewhere)]
    assert states == ["completed", "completed", "awaiting_approval", "awaiting_approval"]


async def test_a_yes_is_for_one_execution_and_not_for_a_while(almanac: Almanac) -> None:
    _, execution, ask = await waiting(almanac)
    with pytest.raises(ValidationFailed):
        await answer(almanac, ask, "approve for 1 hour")
    await almanac.work()
    assert execution_of(almanac, execution).status == "awaiting_approval"
    assert ask_about(almanac, execution).status == "open"


async def test_words_that_decide_nothing_are_refused(almanac: Almanac) -> None:
    _, execution, ask = await waiting(almanac)
    for text in ("maybe", "approve everything", "5", "approve for 0 hours"):
        with pytest.raises(ValidationFailed):
            await answer(almanac, ask, text)
    assert (ask_about(almanac, execution).status, execution_of(almanac, execution).status) == (
        "open",
        "awaiting_approval",
    )

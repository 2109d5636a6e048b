"""Steps for which a person has to agree: they come back for a while, and what the owner has seen is not asked again."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
import sqlalchemy as sa

from rookery.asks.tables import asks
from rookery.lifecycle import session_calls
from tests.domains.schedules.almanac import Almanac
from tests.jobs.working import running_worker, settled
from tests.platform_fixtures import Fleet

STAR = {"type": "star_repo", "repos": ["a/b"]}
TASK = {"type": "work_task", "description": "mend the roof"}


@pytest.fixture
async def almanac(database_url: str, make_fleet: Callable[..., Fleet], monkeypatch: pytest.MonkeyPatch) -> Almanac:
    """One where a call is held for no time at all, so that whoever wants an approval has to come back."""
    monkeypatch.setattr(session_calls, "AGAIN_S", 0.02)
    made = Almanac(make_fleet(database_url, extra={}, approval_hold_s=0))
    await made.fleet.call(made.owner, "update_agent", agent="default", mode="ask")
    return made


def approvals(almanac: Almanac, status: str = "open") -> list[Any]:
    return list(almanac.rows(sa.select(asks).where(asks.c.kind == "approval", asks.c.status == status)))


async def asked(almanac: Almanac) -> Any:
    async with asyncio.timeout(20):
        while not (found := approvals(almanac)):
            await asyncio.sleep(0.01)
    return found[0]


async def answer(almanac: Almanac, ask: Any, text: str) -> None:
    await almanac.fleet.call(almanac.owner, "answer_ask", ask_id=ask.id, answer=text)


@pytest.mark.parametrize(("text", "status"), [("approve", "completed"), ("deny: no stars", "failed")])
async def test_a_step_waits_at_the_gate_until_somebody_decides(almanac: Almanac, text: str, status: str) -> None:
    schedule_id = await almanac.make(almanac.owner, schedule_actions=[STAR])
    almanac.due(schedule_id)
    async with running_worker(almanac.platform):
        ask = await asked(almanac)
        assert ask.expires_ms - ask.created_ms == 600_000
        await asyncio.sleep(0.2)
        assert len(approvals(almanac)) == 1
        await answer(almanac, ask, text)
        await settled(almanac.platform)
    (execution,) = almanac.executions(schedule_id)
    assert (execution.status, len(almanac.deeds.of("github_star_repo"))) == (status, int(status == "completed"))
    assert ("no stars" in execution.result) == (status == "failed")


async def test_the_ask_of_a_step_ends_with_it(almanac: Almanac, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session_calls, "APPROVAL_S", 0.1)
    execution = await almanac.happen(await almanac.make(almanac.owner, schedule_actions=[STAR]))
    assert execution.status == "failed"
    assert "APPROVAL_REQUIRED" in execution.result
    assert [len(approvals(almanac, status)) for status in ("open", "withdrawn")] == [0, 1]
    assert [event.name for event in almanac.events if event.name.startswith("Ask")] == ["AskOpened", "AskWithdrawn"]


async def test_all_calls_of_a_step_share_its_time(almanac: Almanac, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session_calls, "APPROVAL_S", 1.0)
    many = {**STAR, "repos": [f"a/r{number}" for number in range(20)]}
    async with asyncio.timeout(15):
        execution = await almanac.happen(await almanac.make(almanac.owner, schedule_actions=[many]))
    assert execution.status == "failed"
    assert [len(approvals(almanac, status)) for status in ("open", "withdrawn")] == [0, 20]


async def test_deleting_the_schedule_takes_the_ask_of_its_step_back(almanac: Almanac) -> None:
    schedule_id = await almanac.make(almanac.owner, schedule_actions=[STAR])
    almanac.due(schedule_id)
    async with running_worker(almanac.platform):
        await asked(almanac)
        await almanac.call(almanac.owner, "delete", schedule_id=schedule_id)
        await settled(almanac.platform)
    assert [len(approvals(almanac, status)) for status in ("open", "withdrawn")] == [0, 1]


async def test_a_worker_that_stops_leaves_the_ask_to_the_next(almanac: Almanac) -> None:
    schedule_id = await almanac.make(almanac.owner, schedule_actions=[STAR])
    almanac.due(schedule_id)
    async with running_worker(almanac.platform):
        ask = await asked(almanac)
    assert [each.id for each in approvals(almanac)] == [ask.id]
    await answer(almanac, ask, "approve")
    await almanac.work()
    assert almanac.executions(schedule_id)[0].status == "completed"
    assert almanac.deeds.of("github_star_repo") == [{"repo": "a/b"}]


async def approved(almanac: Almanac, *actions: dict[str, Any]) -> Any:
    """An execution that the owner has approved, as far as it gets by itself."""
    given = {"schedule_actions": list(actions), "approval_policy": "council_approve"}
    execution = await almanac.happen(await almanac.make(almanac.owner, **given))
    assert execution.status == "awaiting_approval"
    await almanac.call(almanac.owner, "approve", execution_id=execution.id)
    await almanac.work()
    return next(row for row in almanac.executions() if row.id == execution.id)


async def test_what_the_owner_has_seen_in_full_is_not_asked_again(almanac: Almanac) -> None:
    message = {"type": "send_message", "to_agent_id": "bob", "message": "tea?"}
    execution = await approved(almanac, STAR, TASK, message, {"type": "reputation_attestation"})
    assert [step["status"] for step in execution.steps] == ["completed"] * 4
    assert approvals(almanac) == []


async def test_a_step_that_was_cut_in_the_ask_is_asked_again(almanac: Almanac, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session_calls, "APPROVAL_S", 0.05)
    long = [{**TASK, "description": f"{number}" * 8_000} for number in range(9)]
    execution = await approved(almanac, *long, STAR)
    assert [step["status"] for step in execution.steps] == ["failed"] * 9 + ["completed"]


async def test_what_nobody_could_know_beforehand_is_asked_again(
    almanac: Almanac, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(session_calls, "APPROVAL_S", 0.05)
    execution = await approved(almanac, {"type": "improvement_loop"})
    assert execution.status == "failed"
    assert "APPROVAL_REQUIRED" in execution.result


async def test_a_yes_to_an_execution_gives_no_tool_that_the_agent_has_not(almanac: Almanac) -> None:
    given = {"schedule_actions": [STAR], "approval_policy": "council_approve"}
    execution = await almanac.happen(await almanac.make(almanac.owner, **given))
    await almanac.fleet.call(almanac.owner, "update_agent", agent="default", permissions=["ping"])
    await almanac.call(almanac.owner, "approve", execution_id=execution.id)
    await almanac.work()
    assert almanac.deeds.of("github_star_repo") == []
    assert "PERMISSION_DENIED" in almanac.executions()[0].result

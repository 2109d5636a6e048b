"""Due times: each leads to one execution, whatever happens on the way, and the next is always planned."""

import asyncio
from typing import Any

import pytest
import sqlalchemy as sa

from rookery.core.errors import Conflict
from rookery.db.tx import Tx
from rookery.domains.schedules import planning
from rookery.domains.schedules.cron import MINUTE_MS
from rookery.domains.schedules.planning import FireArgs, add_execution, fire, fire_key, not_fired
from rookery.domains.schedules.tables import executions, schedules
from rookery.jobs.by_hand import cancel
from rookery.jobs.store import Jobs
from rookery.jobs.tables import jobs
from rookery.lifecycle.sessions import Outcome
from tests.domains.schedules.almanac import Almanac
from tests.jobs.working import running_worker, settled

DAY_MS = 24 * 60 * MINUTE_MS


def planned(almanac: Almanac, schedule_id: str) -> int:
    """When the one job that will fire next is due; it is the time that the schedule says."""
    row = almanac.row(schedule_id)
    key = f"schedule:{schedule_id}:{row.version}:{row.next_due_ms}"
    (found,) = almanac.rows(sa.select(jobs).where(jobs.c.key == key))
    assert found.state == "waiting"
    assert found.due_ms == row.next_due_ms
    return found.due_ms


async def test_what_is_void_fires_nothing(almanac: Almanac) -> None:
    schedule_id = await almanac.make(interval_minutes=10)
    row = almanac.row(schedule_id)
    void = [
        FireArgs(schedule_id=schedule_id, version=row.version + 1, due_ms=row.next_due_ms),
        FireArgs(schedule_id=schedule_id, version=row.version, due_ms=row.next_due_ms + 1),
        FireArgs(schedule_id="sch-none", version=1, due_ms=1),
    ]
    for args in void:
        assert almanac.change(lambda tx, args=args: fire(tx, "default", args)) is None
    good = FireArgs(schedule_id=schedule_id, version=row.version, due_ms=row.next_due_ms)
    assert almanac.change(lambda tx: fire(tx, "other", good)) is None
    almanac.due(schedule_id)
    await almanac.call(almanac.ada, "pause", schedule_id=schedule_id)
    await almanac.work()
    assert almanac.executions() == []


async def test_a_due_time_is_executed_once_and_the_next_is_planned(almanac: Almanac) -> None:
    schedule_id = await almanac.make(interval_minutes=10)
    execution = await almanac.happen(schedule_id)
    assert (execution.status, execution.result) == ("completed", "custom: all fine")
    assert execution.started_ms is not None
    assert execution.completed_ms is not None
    row = almanac.row(schedule_id)
    assert (row.execution_count, row.last_due_ms, row.status) == (1, execution.due_ms, "active")
    assert planned(almanac, schedule_id) > execution.due_ms
    ended = [event for event in almanac.events if event.name == "ScheduleExecutionEnded"]
    assert [(event.subject, event.payload["status"]) for event in ended] == [(execution.id, "completed")]


async def test_two_who_fire_one_due_time_make_one_execution(almanac: Almanac) -> None:
    schedule_id = await almanac.make()
    row = almanac.row(schedule_id)
    args = FireArgs(schedule_id=schedule_id, version=row.version, due_ms=row.next_due_ms)

    async def once() -> Any:
        return await almanac.platform.database.change(lambda tx: fire(tx, "default", args))

    results = await asyncio.gather(*(once() for _ in range(8)))
    assert len([each for each in results if each is not None]) == 1
    assert len(almanac.executions(schedule_id)) == 1
    assert almanac.row(schedule_id).execution_count == 1


async def test_a_due_time_that_has_its_row_already_gets_no_second(almanac: Almanac) -> None:
    schedule_id = await almanac.make()
    row = almanac.row(schedule_id)
    almanac.change(lambda tx: add_execution(tx, row, row.next_due_ms, "completed", None))
    assert almanac.change(lambda tx: add_execution(tx, row, row.next_due_ms, "running", None)) is None
    args = FireArgs(schedule_id=schedule_id, version=row.version, due_ms=row.next_due_ms)
    assert almanac.change(lambda tx: fire(tx, "default", args)) is None
    assert almanac.row(schedule_id).next_due_ms > row.next_due_ms


async def test_many_schedules_and_several_workers_make_one_execution_each(almanac: Almanac) -> None:
    made = [await almanac.make(schedule_actions=[{"type": "star_repo", "repos": ["a/b"]}]) for _ in range(20)]
    for schedule_id in made:
        almanac.due(schedule_id)
    async with running_worker(almanac.platform), running_worker(almanac.platform), running_worker(almanac.platform):
        await settled(almanac.platform)
    rows = almanac.executions()
    assert sorted(row.schedule_id for row in rows) == sorted(made)
    assert {row.status for row in rows} == {"completed"}
    assert len(almanac.deeds.done) == len(made)


async def test_what_is_due_while_the_last_still_runs_is_skipped(almanac: Almanac) -> None:
    almanac.runtime.gate.clear()
    schedule_id = await almanac.make(interval_minutes=10)
    almanac.due(schedule_id, ago_ms=1000)
    async with running_worker(almanac.platform):
        async with asyncio.timeout(20):
            while not almanac.runtime.asked:
                await asyncio.sleep(0.01)
            almanac.due(schedule_id)
            while len(almanac.executions()) < 2:
                await asyncio.sleep(0.01)
        almanac.runtime.gate.set()
        await settled(almanac.platform)
    first, second = almanac.executions()
    assert (first.status, second.status) == ("completed", "skipped")
    assert second.result == f"execution {first.id[:8]} was still running"
    assert almanac.row(schedule_id).execution_count == 1
    planned(almanac, schedule_id)


async def test_what_awaits_approval_holds_up_the_next(almanac: Almanac) -> None:
    review = [{"type": "codebase_review"}]
    schedule_id = await almanac.make(schedule_actions=review, approval_policy="owner_approve", interval_minutes=10)
    await almanac.happen(schedule_id, ago_ms=1000)
    await almanac.happen(schedule_id)
    assert [row.status for row in almanac.executions()] == ["awaiting_approval", "skipped"]


def _since(almanac: Almanac, schedule_id: str, ago_ms: int) -> None:
    """As if the schedule had been there for long: its intervals count from then."""
    moved = sa.update(schedules).where(schedules.c.id == schedule_id)
    almanac.change(lambda tx: tx.run(moved.values(anchor_ms=schedules.c.anchor_ms - ago_ms)))


async def test_after_a_downtime_one_execution_makes_up_for_all_that_was_missed(almanac: Almanac) -> None:
    schedule_id = await almanac.make(interval_minutes=60)
    _since(almanac, schedule_id, DAY_MS + 30 * MINUTE_MS)
    due_ms = almanac.row(schedule_id).anchor_ms + 60 * MINUTE_MS
    almanac.change(lambda tx: planning.plan(tx, almanac_row(tx, schedule_id), due_ms))
    await almanac.work()
    (execution,) = almanac.executions()
    assert execution.status == "completed"
    assert execution.due_ms == due_ms + 23 * 60 * MINUTE_MS
    assert planned(almanac, schedule_id) == due_ms + 24 * 60 * MINUTE_MS


async def test_what_was_missed_is_skipped_if_the_schedule_says_so(almanac: Almanac) -> None:
    schedule_id = await almanac.make(missed="skip")
    execution = await almanac.happen(schedule_id, ago_ms=5 * MINUTE_MS)
    assert (execution.status, execution.result) == ("skipped", "missed by 5 min")
    assert almanac.row(schedule_id).execution_count == 0
    assert (await almanac.happen(schedule_id, ago_ms=MINUTE_MS // 2)).status == "completed"


def almanac_row(tx: Tx, schedule_id: str) -> Any:
    row = tx.one(sa.select(schedules).where(schedules.c.id == schedule_id))
    assert row is not None
    return row


async def test_after_as_many_executions_as_it_may_have_it_is_completed(almanac: Almanac) -> None:
    schedule_id = await almanac.make(max_executions=2, interval_minutes=10)
    await almanac.happen(schedule_id, ago_ms=1)
    assert almanac.row(schedule_id).status == "active"
    await almanac.happen(schedule_id)
    row = almanac.row(schedule_id)
    assert (row.status, row.next_due_ms, row.reason) == ("completed", None, "it has run 2 times")
    with pytest.raises(Conflict, match="as often as it may"):
        await almanac.call(almanac.ada, "resume", schedule_id=schedule_id)
    await almanac.call(almanac.ada, "update", schedule_id=schedule_id, max_executions=3)
    await almanac.call(almanac.ada, "resume", schedule_id=schedule_id)
    planned(almanac, schedule_id)


async def test_five_failures_in_a_row_pause_it_and_a_success_starts_the_count_anew(almanac: Almanac) -> None:
    schedule_id = await almanac.make(interval_minutes=10)
    fine, bad = almanac.runtime.outcome, Outcome("failed", error="no luck")
    for outcome, failures in ((bad, 1), (bad, 2), (fine, 0), (bad, 1), (bad, 2), (bad, 3), (bad, 4)):
        almanac.runtime.outcome = outcome
        await almanac.happen(schedule_id)
        assert (almanac.row(schedule_id).failures, almanac.row(schedule_id).status) == (failures, "active")
    await almanac.happen(schedule_id)
    row = almanac.row(schedule_id)
    assert (row.status, row.next_due_ms) == ("paused", None)
    assert row.reason == "it failed 5 times in a row, at last: custom: no luck"
    await almanac.call(almanac.ada, "resume", schedule_id=schedule_id)
    assert almanac.row(schedule_id).failures == 0


async def test_when_firing_itself_fails_the_due_time_is_recorded_and_the_next_planned(almanac: Almanac) -> None:
    schedule_id = await almanac.make(interval_minutes=10)
    row = almanac.row(schedule_id)
    args = FireArgs(schedule_id=schedule_id, version=row.version, due_ms=row.next_due_ms)
    almanac.change(lambda tx: not_fired(tx, "default", args, "failed", "it could not be started: no room"))
    (execution,) = almanac.executions()
    assert (execution.status, execution.result) == ("failed", "it could not be started: no room")
    assert planned(almanac, schedule_id) > row.next_due_ms


async def test_a_schedule_whose_time_zone_is_gone_is_paused_and_says_why(almanac: Almanac) -> None:
    schedule_id = await almanac.make()
    almanac.change(lambda tx: tx.run(sa.update(schedules).values(timezone="Atlantis/Capital")))
    row = almanac.row(schedule_id)
    args = FireArgs(schedule_id=schedule_id, version=row.version, due_ms=row.next_due_ms)
    almanac.change(lambda tx: not_fired(tx, "default", args, "failed", "broken"))
    paused = almanac.row(schedule_id)
    assert paused.status == "paused"
    assert "Atlantis/Capital" in paused.reason
    assert (await almanac.call(almanac.ada, "get", schedule_id=schedule_id)).schedules[0]["status"] == "paused"


async def test_finished_steps_are_not_done_again_when_a_worker_stops_on_the_way(almanac: Almanac) -> None:
    star = {"type": "star_repo", "repos": ["a/b"]}
    schedule_id = await almanac.make(schedule_actions=[star, {"type": "custom", "prompt": "wait"}, star])
    almanac.runtime.gate.clear()
    almanac.due(schedule_id)
    async with running_worker(almanac.platform, grace_s=0.01):
        async with asyncio.timeout(20):
            while not almanac.runtime.asked:
                await asyncio.sleep(0.01)
    (execution,) = almanac.executions()
    assert [step["status"] for step in execution.steps] == ["completed", "running", "pending"]
    assert execution.status == "running"
    almanac.runtime.gate.set()
    await almanac.work()
    (execution,) = almanac.executions()
    assert [step["status"] for step in execution.steps] == ["completed"] * 3
    assert execution.status == "completed"
    assert len(almanac.deeds.done) == 2
    keys = [key for _, _, key, _ in almanac.runtime.asked]
    assert keys == [f"execution:{execution.id}:1"] * 2


async def test_an_agent_that_is_gone_fails_the_execution_and_not_the_worker(almanac: Almanac) -> None:
    schedule_id = await almanac.make()
    almanac.change(lambda tx: tx.run(sa.update(schedules).values(agent_id="agt-gone")))
    execution = await almanac.happen(schedule_id)
    assert execution.status == "failed"
    assert "there is no agent agt-gone" in execution.steps[0]["error"]


async def test_a_step_that_fails_does_not_keep_the_next_from_its_turn(almanac: Almanac) -> None:
    actions = [{"type": "reputation_attestation"}, {"type": "custom", "prompt": "go on"}]
    almanac.deeds.broken.add("publish_attestation")
    execution = await almanac.happen(await almanac.make(schedule_actions=actions))
    assert [step["status"] for step in execution.steps] == ["failed", "completed"]
    assert execution.status == "failed"
    assert "publish_attestation is out of order" in execution.result


async def test_every_due_time_of_a_schedule_has_one_row_at_most(almanac: Almanac) -> None:
    schedule_id = await almanac.make()
    row = almanac.row(schedule_id)
    almanac.change(lambda tx: add_execution(tx, row, 1, "skipped", None))
    copy = sa.insert(executions).from_select(
        ["id", *(c.name for c in executions.c if c.name != "id")],
        sa.select(sa.literal("copy"), *(c for c in executions.c if c.name != "id")),
    )
    with pytest.raises(Exception, match=r"(?i)unique"):
        almanac.change(lambda tx: tx.run(copy))


async def test_a_due_time_that_is_cancelled_by_hand_is_skipped_and_the_next_planned(almanac: Almanac) -> None:
    schedule_id = await almanac.make(interval_minutes=10)
    row = almanac.row(schedule_id)

    def cancelled(tx: Tx) -> None:
        job = Jobs(tx, "default").by_key(fire_key(schedule_id, row.version, row.next_due_ms))
        assert job is not None
        cancel(tx, "default", almanac.platform.kinds, job.id)

    almanac.change(cancelled)
    (execution,) = almanac.executions()
    assert (execution.status, execution.result) == ("skipped", "cancelled by hand")
    assert almanac.row(schedule_id).next_due_ms > row.next_due_ms

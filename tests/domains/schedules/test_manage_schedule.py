"""The tool with which schedules are kept: who may do what, what is refused, and what is planned afterwards."""

from datetime import datetime
from typing import Any

import pytest
import sqlalchemy as sa

from rookery.core.errors import Conflict, InvalidParams, NotFound, PermissionDenied, ValidationFailed
from rookery.core.lint import lint, tokens
from rookery.domains.schedules.cron import MINUTE_MS
from rookery.domains.schedules.planning import add_execution
from rookery.jobs.tables import jobs
from rookery.lifecycle.sessions import Outcome
from tests.domains.schedules.almanac import SELDOM, Almanac

CUSTOM = {"type": "custom", "prompt": "look around"}
WITH_ID = ("get", "update", "delete", "pause", "resume", "history")


BAD: list[tuple[dict[str, Any], str]] = [
    ({"name": None}, "name: is needed"),
    ({"name": "  "}, "name: is empty"),
    ({"name": "x" * 101}, "name: has 101 characters"),
    ({"schedule_actions": None}, "schedule_actions: is needed"),
    ({"schedule_actions": []}, "must have 1 to 10 actions"),
    ({"schedule_actions": [CUSTOM] * 11}, "must have 1 to 10 actions"),
    ({"schedule_actions": [{"type": "dance"}]}, "action 1: type: Input should be"),
    ({"schedule_actions": [CUSTOM, {"type": "custom"}]}, "action 2: custom needs prompt"),
    ({"schedule_actions": [{"type": "send_message"}]}, "send_message needs to_agent_id, message"),
    ({"schedule_actions": [{"type": "star_repo", "repos": ["a b"]}]}, "is not owner/name"),
    ({"schedule_actions": [{"type": "star_repo", "repos": ["-a/.."]}]}, "is not owner/name"),
    ({"schedule_actions": [{"type": "custom", "prompt": "x", "colour": "red"}]}, "colour: Extra inputs"),
    ({"schedule_actions": [{"type": "council_launch", "councilId": "c"}]}, "council_launch is not supported"),
    ({"schedule_actions": [{"type": "improvement_loop", "maxImprovementTasks": 6}]}, "less than or equal to 5"),
    ({"cron_expression": None}, "give either cron_expression or interval_minutes"),
    ({"interval_minutes": 60, "cron_expression": "@daily"}, "give either cron_expression or interval_minutes"),
    ({"cron_expression": "*/4 * * * *"}, "is due again after 4 min"),
    ({"cron_expression": "0,1 9 * * *"}, "is due again after 1 min"),
    ({"cron_expression": "0 25 * * *"}, "bad hour '25'"),
    ({"cron_expression": None, "interval_minutes": 4}, "interval_minutes: 4 is not from 5"),
    ({"timezone": "Mars/Olympus"}, "timezone: there is no"),
    ({"max_executions": 0}, "max_executions: must be from 1"),
    ({"max_budget_per_run": 0}, "max_budget_per_run: must be"),
    ({"approval_policy": "maybe"}, "approval_policy"),
]


def waiting(almanac: Almanac) -> list[tuple[str, int]]:
    """The jobs that will fire, by key, and when."""
    wanted = sa.select(jobs.c.key, jobs.c.due_ms).where(jobs.c.kind == "schedules.fire", jobs.c.state == "waiting")
    return [(row.key, row.due_ms) for row in almanac.rows(wanted)]


async def test_an_id_of_another_agent_or_tenant_is_not_found_and_nothing_changes(almanac: Almanac) -> None:
    schedule_id = await almanac.make()
    await almanac.happen(schedule_id)
    execution_id = almanac.executions()[0].id
    before = almanac.row(schedule_id)
    bob = await almanac.agent("bob")
    for actor in (bob, almanac.stranger(), almanac.stranger(as_owner=True)):
        for action in WITH_ID:
            with pytest.raises(NotFound, match=f"there is no schedule {schedule_id}"):
                await almanac.call(actor, action, schedule_id=schedule_id, name="mine")
        with pytest.raises(NotFound, match="there is no execution"):
            await almanac.call(actor, "history", execution_id=execution_id)
        listed = await almanac.call(actor, "list")
        assert (listed.schedules, listed.executions) == ([], [])
        assert (await almanac.call(actor, "history")).executions == []
    with pytest.raises(NotFound):
        await almanac.call(almanac.stranger(as_owner=True), "approve", execution_id=execution_id)
    assert almanac.row(schedule_id) == before


async def test_an_id_that_was_never_given_is_not_found(almanac: Almanac) -> None:
    for action in WITH_ID:
        with pytest.raises(NotFound):
            await almanac.call(almanac.owner, action, schedule_id="sch-none", name="x")
        if action != "history":
            with pytest.raises(InvalidParams, match="schedule_id: is needed"):
                await almanac.call(almanac.owner, action)


async def test_only_people_approve_and_deny(almanac: Almanac) -> None:
    schedule_id = await almanac.make(schedule_actions=[{"type": "codebase_review"}], approval_policy="owner_approve")
    execution = await almanac.happen(schedule_id)
    assert execution.status == "awaiting_approval"
    for action in ("approve", "deny"):
        with pytest.raises(PermissionDenied) as refused:
            await almanac.call(almanac.ada, action, execution_id=execution.id)
        assert refused.value.layer == "principal"
        with pytest.raises(InvalidParams, match="execution_id: is needed"):
            await almanac.call(almanac.owner, action)
    assert almanac.executions()[0].status == "awaiting_approval"


async def test_what_is_wrong_with_a_schedule_is_said_and_nothing_is_made(almanac: Almanac) -> None:
    for given, said in BAD:
        with pytest.raises((ValidationFailed, InvalidParams)) as refused:
            await almanac.make(**given)
        assert said in refused.value.message
    assert (await almanac.call(almanac.ada, "list")).schedules == []
    assert waiting(almanac) == []


async def test_four_minutes_are_refused_and_five_accepted(almanac: Almanac) -> None:
    for bad in ({"cron_expression": "*/4 * * * *"}, {"interval_minutes": 4}):
        with pytest.raises(ValidationFailed):
            await almanac.make(**bad)
    for good in ({"cron_expression": "*/5 * * * *"}, {"interval_minutes": 5}):
        assert await almanac.make(**good)


async def test_an_action_whose_tool_is_not_here_is_refused_with_a_hint(almanac: Almanac) -> None:
    del almanac.platform.registry._tools["github_star_repo"]
    with pytest.raises(ValidationFailed, match="needs the tool github_star_repo") as refused:
        await almanac.make(schedule_actions=[{"type": "star_repo", "repos": ["a/b"]}])
    assert refused.value.hint


async def test_an_agent_schedules_only_what_it_may_do_itself(almanac: Almanac) -> None:
    message = [{"type": "send_message", "to_agent_id": "bob", "message": "hi"}]
    with pytest.raises(PermissionDenied) as refused:
        await almanac.make(almanac.fleet.actor(scheduler=True), schedule_actions=message)
    assert refused.value.layer == "scheduler"
    await almanac.fleet.call(almanac.owner, "create_agent", name="mute", permissions=["manage_schedule"])
    with pytest.raises(PermissionDenied) as refused:
        await almanac.make(almanac.fleet.actor(agent="mute"), schedule_actions=message)
    assert refused.value.layer == "role"
    mine = await almanac.make(schedule_actions=message)
    await almanac.call(almanac.ada, "pause", schedule_id=mine)
    for action, more in (("resume", {}), ("update", {"schedule_actions": message})):
        with pytest.raises(PermissionDenied):
            await almanac.call(almanac.fleet.actor(scheduler=True), action, schedule_id=mine, **more)


async def test_an_agent_makes_schedules_for_itself_and_people_for_any(almanac: Almanac) -> None:
    bob = await almanac.agent("bob")
    with pytest.raises(PermissionDenied, match="an agent makes schedules for itself"):
        await almanac.make(almanac.ada, agent_id="bob")
    with pytest.raises(NotFound):
        await almanac.make(almanac.owner, agent_id="nobody")
    schedule_id = await almanac.make(almanac.owner, agent_id="bob")
    assert almanac.row(schedule_id).agent_id == bob.agent
    assert (await almanac.call(bob, "get", schedule_id=schedule_id)).schedules[0]["name"] == "nightly"


async def test_what_a_person_made_an_agent_can_look_at_and_stop_but_not_change(almanac: Almanac) -> None:
    schedule_id = await almanac.make(almanac.owner, schedule_actions=[{"type": "codebase_review"}])
    before = almanac.row(schedule_id)
    for action, more in (("update", {"approval_policy": "auto"}), ("delete", {}), ("resume", {})):
        with pytest.raises(PermissionDenied, match="a person made this schedule") as refused:
            await almanac.call(almanac.ada, action, schedule_id=schedule_id, **more)
        assert refused.value.layer == "principal"
    assert almanac.row(schedule_id) == before
    assert (await almanac.call(almanac.ada, "pause", schedule_id=schedule_id)).schedules[0]["status"] == "paused"


async def test_a_project_that_is_closed_to_the_agent_is_not_found(almanac: Almanac) -> None:
    await almanac.fleet.call(almanac.owner, "create_project", slug="secret")
    await almanac.fleet.call(almanac.owner, "set_project_members", project="secret", agents=[])
    review = [{"type": "codebase_review", "project_id": "secret"}]
    for actor in (almanac.ada, almanac.owner):
        with pytest.raises(NotFound, match="there is no project secret"):
            await almanac.make(actor, schedule_actions=review)


async def test_what_is_made_is_planned_at_once_and_shown(almanac: Almanac) -> None:
    schedule_id = await almanac.make(
        cron_expression="30 9 * * MON-FRI", timezone="Europe/Berlin", description="every morning", max_executions=3,
        max_budget_per_run=1.5, notify_address="ALGO", missed="skip",
    )  # fmt: skip
    row = almanac.row(schedule_id)
    assert waiting(almanac) == [(f"schedule:{schedule_id}:1:{row.next_due_ms}", row.next_due_ms)]
    (shown,) = (await almanac.call(almanac.ada, "get", schedule_id=schedule_id)).schedules
    due = datetime.fromisoformat(shown["next_due"])
    assert (due.hour, due.minute, int(due.timestamp() * 1000)) == (9, 30, row.next_due_ms)
    assert (shown["timezone"], shown["missed"], shown["max_budget_per_run"]) == ("Europe/Berlin", "skip", 1.5)
    (listed,) = (await almanac.call(almanac.owner, "list")).schedules
    assert (listed["id"], listed["actions"], listed["due"]) == (schedule_id, ["custom"], "30 9 * * MON-FRI")
    assert [event.payload["change"] for event in almanac.events if event.name == "ScheduleChanged"] == ["created"]


async def test_an_interval_is_due_that_long_after_it_was_made(almanac: Almanac) -> None:
    row = almanac.row(await almanac.make(interval_minutes=90))
    assert row.next_due_ms == row.anchor_ms + 90 * MINUTE_MS


async def test_pausing_takes_the_plan_away_and_resuming_makes_a_new_one(almanac: Almanac) -> None:
    schedule_id = await almanac.make()
    with pytest.raises(Conflict, match="active already"):
        await almanac.call(almanac.ada, "resume", schedule_id=schedule_id)
    (paused,) = (await almanac.call(almanac.ada, "pause", schedule_id=schedule_id)).schedules
    assert (paused["status"], paused["next_due"], waiting(almanac)) == ("paused", None, [])
    with pytest.raises(Conflict, match="the schedule is paused"):
        await almanac.call(almanac.ada, "pause", schedule_id=schedule_id)
    (resumed,) = (await almanac.call(almanac.ada, "resume", schedule_id=schedule_id)).schedules
    assert resumed["status"] == "active"
    assert len(waiting(almanac)) == 1


async def test_an_update_changes_what_was_given_and_keeps_the_due_time_unless_that_was_given(almanac: Almanac) -> None:
    schedule_id = await almanac.make(max_executions=3)
    before = almanac.row(schedule_id)
    for bad in ({}, {"agent_id": "bob"}, {"cron_expression": "* * * * *"}, {"schedule_actions": []}):
        with pytest.raises((InvalidParams, ValidationFailed)):
            await almanac.call(almanac.ada, "update", schedule_id=schedule_id, **bad)
    assert almanac.row(schedule_id) == before
    await almanac.call(almanac.ada, "update", schedule_id=schedule_id, name="other", max_executions=None)
    after = almanac.row(schedule_id)
    assert (after.name, after.max_executions, after.next_due_ms) == ("other", None, before.next_due_ms)
    assert waiting(almanac) == [(f"schedule:{schedule_id}:2:{after.next_due_ms}", after.next_due_ms)]
    await almanac.call(almanac.ada, "update", schedule_id=schedule_id, interval_minutes=10)
    changed = almanac.row(schedule_id)
    assert (changed.cron, changed.next_due_ms) == (None, changed.anchor_ms + 10 * MINUTE_MS)
    await almanac.call(almanac.ada, "update", schedule_id=schedule_id, cron_expression=SELDOM, timezone="Asia/Tokyo")
    again = almanac.row(schedule_id)
    assert (again.cron, again.interval_ms, again.timezone) == (SELDOM, None, "Asia/Tokyo")


async def test_a_deleted_schedule_is_gone_with_its_history(almanac: Almanac) -> None:
    schedule_id = await almanac.make()
    await almanac.happen(schedule_id)
    await almanac.call(almanac.ada, "delete", schedule_id=schedule_id)
    assert (almanac.executions(), waiting(almanac)) == ([], [])
    with pytest.raises(NotFound):
        await almanac.call(almanac.ada, "get", schedule_id=schedule_id)


async def test_history_has_the_twenty_newest_with_short_ids_and_results(almanac: Almanac) -> None:
    schedule_id = await almanac.make()
    assert (await almanac.call(almanac.ada, "history", schedule_id=schedule_id)).note == "nothing was due yet"
    almanac.runtime.outcome = Outcome("done", output="x" * 300)
    schedule = almanac.row(schedule_id)
    for due_ms in range(25):
        almanac.change(lambda tx, due_ms=due_ms: add_execution(tx, schedule, due_ms, "skipped", "missed"))
    row = await almanac.happen(schedule_id)
    shown = (await almanac.call(almanac.ada, "history", schedule_id=schedule_id)).executions
    assert len(shown) == 20
    assert {len(each["id"]) for each in shown} == {8}
    assert (shown[0]["id"], len(shown[0]["result"])) == (row.id[:8], 100)
    (whole,) = (await almanac.call(almanac.ada, "history", execution_id=row.id[:8])).executions
    assert (whole["id"], len(whole["steps"][0]["result"])) == (row.id, 300)
    for short in ("", row.id[:7], "%" * 8, "________"):
        with pytest.raises(NotFound):
            await almanac.call(almanac.ada, "history", execution_id=short)


async def test_approve_runs_what_was_asked_for_and_deny_does_not(almanac: Almanac) -> None:
    action = [{"type": "work_task", "description": "first"}]
    schedule_id = await almanac.make(schedule_actions=action, approval_policy="owner_approve", interval_minutes=10)
    execution = await almanac.happen(schedule_id)
    asked = [event for event in almanac.events if event.name == "ScheduleApprovalRequested"]
    assert [event.subject for event in asked] == [execution.id]
    (listed,) = (await almanac.call(almanac.owner, "list")).executions
    assert listed["status"] == "awaiting_approval"
    later = [{"type": "work_task", "description": "second"}]
    await almanac.call(almanac.ada, "update", schedule_id=schedule_id, schedule_actions=later)
    await almanac.call(almanac.owner, "approve", execution_id=listed["id"])
    await almanac.work()
    done = almanac.executions()[0]
    assert (done.status, done.decided_by) == ("completed", almanac.owner.subject)
    assert [given["description"] for given in almanac.deeds.of("create_work_task")] == ["first"]
    with pytest.raises(Conflict, match="is completed"):
        await almanac.call(almanac.owner, "deny", execution_id=execution.id)
    second = await almanac.happen(schedule_id)
    (denied,) = (await almanac.call(almanac.owner, "deny", execution_id=second.id)).executions
    await almanac.work()
    assert denied["status"] == "denied"
    assert len(almanac.deeds.of("create_work_task")) == 1


@pytest.mark.parametrize("policy", ["auto", "owner_approve", "council_approve"])
async def test_who_has_to_agree_depends_on_policy_and_action(almanac: Almanac, policy: str) -> None:
    asks = {"work_task", "github_suggest", "fork_repo", "codebase_review", "dependency_audit", "improvement_loop"}
    full = {"repos": ["a/b"], "description": "x", "to_agent_id": "bob", "message": "x", "prompt": "x"}
    every = asks | {"star_repo", "review_prs", "send_message", "memory_maintenance", "reputation_attestation", "custom"}
    made = {
        kind: await almanac.make(schedule_actions=[{"type": kind, **full}], approval_policy=policy) for kind in every
    }
    for schedule_id in made.values():
        almanac.due(schedule_id)
    await almanac.work()
    waiting_for = {kind for kind, each in made.items() if almanac.executions(each)[0].status == "awaiting_approval"}
    assert waiting_for == {"auto": set(), "owner_approve": asks, "council_approve": every}[policy]


async def test_the_listing_is_clean_and_small(almanac: Almanac) -> None:
    tool = almanac.platform.registry.require("corvid_manage_schedule")
    assert lint(tool) == []
    assert tokens(tool) <= 430

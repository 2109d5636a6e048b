"""What a second reading of schedules found."""

from dataclasses import replace
from typing import Any, cast

import pytest
import sqlalchemy as sa

from rookery.core.errors import Conflict
from rookery.domains.schedules import planning, store
from rookery.domains.schedules.tables import schedules
from rookery.identity.store import IdentityStore
from rookery.jobs import by_hand
from rookery.jobs.tables import jobs
from rookery.lifecycle.sessions import Outcome
from tests.domains.schedules.almanac import Almanac

HELD = frozenset({"manage_schedule", "create_work_task", "ping"})


def cancel_by_hand(almanac: Almanac, kind: str) -> None:
    """As `rookery jobs cancel` does."""
    job_id = almanac.rows(sa.select(jobs.c.id).where(jobs.c.kind == kind, jobs.c.state == "waiting"))[0].id
    almanac.change(lambda tx: by_hand.cancel(tx, "default", almanac.platform.kinds, job_id))


async def test_a_session_of_a_schedule_has_no_more_scopes_than_the_token_that_made_it(almanac: Almanac) -> None:
    token = await almanac.fleet.call(
        almanac.owner, "create_token", name="narrow", agent="default", scopes=["schedule:manage"]
    )
    ada = almanac.fleet.actor(token=token.secret, source="http")
    await almanac.happen(await almanac.make(ada))
    assert almanac.fleet.names(almanac.runtime.asked[0][0]) == {"manage_schedule"}


async def test_a_session_of_a_schedule_is_held_to_what_its_maker_was_held_to(almanac: Almanac) -> None:
    ada = almanac.fleet.actor(scope_file=HELD, depth=2, source="agent")
    await almanac.happen(await almanac.make(ada))
    actor = almanac.runtime.asked[0][0]
    assert (actor.scope_file, actor.depth, actor.source, actor.scheduler) == (HELD, 2, "agent", True)


async def test_a_tool_of_a_schedule_is_called_with_what_its_maker_was_held_to(almanac: Almanac) -> None:
    ada = almanac.fleet.actor(scope_file=HELD)
    work = {"type": "work_task", "description": "mend it"}
    await almanac.happen(await almanac.make(ada, schedule_actions=[work]))
    ((_, actor, _),) = almanac.deeds.done
    assert (actor.scope_file, actor.scheduler) == (HELD, False)


async def test_whoever_changes_the_actions_is_whom_they_are_held_to(almanac: Almanac) -> None:
    made = await almanac.make()
    narrow = almanac.fleet.actor(scope_file=HELD)
    await almanac.call(narrow, "update", schedule_id=made, name="another")
    await almanac.happen(made)
    await almanac.call(
        narrow, "update", schedule_id=made, schedule_actions=[{"type": "custom", "prompt": "everything"}]
    )
    await almanac.happen(made)
    assert [asked[0].scope_file for asked in almanac.runtime.asked] == [None, HELD]


async def test_a_due_time_that_was_cancelled_by_hand_is_followed_by_the_next(almanac: Almanac) -> None:
    made = await almanac.make(interval_minutes=5)
    before = almanac.row(made).next_due_ms
    cancel_by_hand(almanac, "schedules.fire")
    after = almanac.row(made)
    assert (after.status, after.next_due_ms) == ("active", before + 5 * 60_000)
    assert [(row.due_ms, row.status, row.result) for row in almanac.executions(made)] == [
        (before, "skipped", "cancelled by hand")
    ]
    waiting = sa.select(jobs.c.due_ms).where(jobs.c.kind == "schedules.fire", jobs.c.state == "waiting")
    assert [row.due_ms for row in almanac.rows(waiting)] == [after.next_due_ms]


async def test_what_a_session_says_is_kept_whatever_it_is(almanac: Almanac) -> None:
    almanac.runtime.outcome = Outcome("done", output="fine\0 \udcff", cost_usd=float("nan"))
    done = await almanac.happen(await almanac.make())
    assert (done.status, done.cost_micros) == ("completed", 0)
    assert "fine" in done.result
    almanac.runtime.outcome = Outcome("failed", error="bad\0 \udcff", cost_usd=-1.0)
    failed = await almanac.happen(await almanac.make())
    assert (failed.status, failed.cost_micros) == ("failed", 0)
    assert "bad" in failed.result
    assert len(almanac.runtime.asked) == 2


async def test_a_session_that_never_ends_fails_its_step(almanac: Almanac) -> None:
    facts = cast("dict[str, Any]", almanac.fleet.platform.calls.facts)
    facts["settings"] = replace(facts["settings"], agent_timeout_ms=100)
    almanac.runtime.gate.clear()
    done = await almanac.happen(await almanac.make())
    assert done.status == "failed"
    assert "did not end within 0.1 s" in done.result
    assert almanac.runtime.stopped


async def test_an_agent_has_so_many_schedules_and_no_more(almanac: Almanac, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store, "MOST_SCHEDULES", 2)
    for _ in range(2):
        await almanac.make()
    with pytest.raises(Conflict, match="2 schedules"):
        await almanac.make()
    assert len(almanac.rows(sa.select(schedules.c.id))) == 2
    await almanac.make(await almanac.agent("bob"))
    await almanac.make(almanac.owner)


@pytest.mark.parametrize("name", ["project", "rights"])
async def test_what_was_taken_from_the_agent_since_is_not_done(almanac: Almanac, name: str) -> None:
    await almanac.fleet.call(almanac.owner, "create_project", slug="shop")
    work: dict[str, Any] = {"type": "work_task", "description": "mend it", "project_id": "shop"}
    look: dict[str, Any] = {"type": "custom", "prompt": "look", "project_id": "shop"}
    made = await almanac.make(schedule_actions=[work, *([look] if name == "project" else [])])
    if name == "project":
        almanac.change(lambda tx: IdentityStore(tx, "default").set_members("shop", []))
    else:
        await almanac.fleet.call(almanac.owner, "update_agent", agent="default", permissions=["ping"])
    done = await almanac.happen(made)
    assert done.status == "failed"
    assert (almanac.deeds.done, almanac.runtime.asked) == ([], [])


async def test_actions_that_were_changed_while_consent_is_asked_for_are_not_what_is_agreed_to(
    almanac: Almanac,
) -> None:
    made = await almanac.make(
        approval_policy="owner_approve", schedule_actions=[{"type": "work_task", "description": "small"}]
    )
    waits = await almanac.happen(made)
    assert waits.status == "awaiting_approval"
    await almanac.call(
        almanac.ada, "update", schedule_id=made, schedule_actions=[{"type": "work_task", "description": "large"}]
    )
    await almanac.call(almanac.owner, "approve", execution_id=waits.id)
    await almanac.work()
    assert [given["description"] for given in almanac.deeds.of("create_work_task")] == ["small"]


async def test_whoever_is_asked_sees_what_for(almanac: Almanac) -> None:
    steps = [
        {"type": "work_task", "description": "remove the tests"},
        {"type": "fork_repo", "repos": ["acme/shop"]},
        {"type": "custom", "prompt": "x" * 1000},
    ]
    await almanac.happen(await almanac.make(approval_policy="owner_approve", schedule_actions=steps))
    (waits,) = (await almanac.call(almanac.owner, "list")).executions
    assert waits["agent_id"] == almanac.ada.agent
    first = '{"type": "work_task", "description": "remove the tests"}; {"type": "fork_repo", "repos": ["acme/shop"]}; '
    assert waits["asks"].startswith(f'{first}{{"type": "custom", "prompt": "xxx')
    assert len(waits["asks"]) < 450


async def test_of_a_schedule_that_runs_for_years_the_newest_executions_are_kept(
    almanac: Almanac, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(planning, "KEPT", 3)
    other = await almanac.make()
    await almanac.happen(other)
    made = await almanac.make(
        approval_policy="owner_approve", schedule_actions=[{"type": "work_task", "description": "wait"}]
    )
    waits = await almanac.happen(made)
    dues = [(await almanac.happen(made)).due_ms for _ in range(5)]
    kept = almanac.executions(made)
    assert [row.due_ms for row in kept] == [waits.due_ms, *dues[-3:]]
    assert [row.status for row in kept] == ["awaiting_approval", "skipped", "skipped", "skipped"]
    assert len(almanac.executions(other)) == 1

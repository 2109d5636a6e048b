import time
from typing import Any

import pytest
import sqlalchemy as sa

from rookery.core.actor import Actor
from rookery.core.errors import Conflict, InvalidParams, NotFound, PermissionDenied
from rookery.core.tool import PROFILES
from rookery.domains.tracker.tables import issue_changes
from rookery.identity.tables import EPOCH
from tests.domains.tracker.desk import Desk
from tests.domains.tracker.leasing import claimed, run_out


async def claim(desk: Desk, actor: Actor, **wanted: Any) -> Any:
    return await desk.call(actor, "claim_issue", **wanted)


async def refusal(desk: Desk, actor: Actor, kind: type[Exception] = Conflict, **wanted: Any) -> str:
    """What the caller is told. Nothing was written."""
    before = desk.rows(sa.select(issue_changes)), desk.fleet.platform.database.epoch(EPOCH)
    with pytest.raises(kind) as caught:
        await claim(desk, actor, **wanted)
    assert (desk.rows(sa.select(issue_changes)), desk.fleet.platform.database.epoch(EPOCH)) == before
    return str(caught.value)


@pytest.mark.parametrize("wanted", [{"minutes": 0}, {"minutes": 1441}, {"fence": 0}, {"issue_id": ""}])
async def test_wrong_arguments_are_refused(desk: Desk, wanted: dict[str, Any]) -> None:
    await desk.issue(status="todo")
    await refusal(desk, desk.actor("worker"), InvalidParams, **wanted)


async def test_a_number_without_an_issue_is_refused(desk: Desk) -> None:
    await desk.issue(status="todo")
    await refusal(desk, desk.actor("worker"), InvalidParams, fence=1)


async def test_only_profiles_that_work_on_issues_have_it(desk: Desk) -> None:
    issue = await desk.issue(status="todo")
    having = {profile for profile in PROFILES.values() if "claim_issue" in desk.fleet.names(desk.actor(profile))}
    assert having == {"worker", "researcher", "architect", "planner"}
    await refusal(desk, desk.actor("judge"), PermissionDenied, issue_id=issue.id)


async def test_what_is_not_in_the_project_is_not_found(desk: Desk) -> None:
    await desk.project("other")
    theirs = await desk.issue(status="todo", project="other")
    far = await desk.call(desk.stranger, "create_issue", title="far away")
    for name in ("SYM-999", "nonsense", theirs.identifier, theirs.id, far.id):
        assert name in await refusal(desk, desk.actor("worker"), NotFound, issue_id=name)


async def test_who_holds_it_and_until_when_is_said(desk: Desk) -> None:
    issue = await desk.issue(status="todo")
    await desk.call(desk.owner, "create_agent", name="ada")
    await claimed(desk, issue, "one", agent="ada")
    told = await refusal(desk, desk.actor("worker", session="two"), issue_id=issue.identifier)
    until = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(desk.reload(issue).lease_until_ms / 1000))
    assert told == f"{issue.identifier} cannot be claimed: ada (worker) holds it until {until}"


async def test_what_it_waits_for_is_said(desk: Desk) -> None:
    first, second = await desk.issue(status="review"), await desk.issue(status="todo")
    last = await desk.issue(status="todo", depends_on=[first.id, second.id])
    told = await refusal(desk, desk.actor("worker"), issue_id=last.id)
    assert told == f"{last.identifier} waits for {first.identifier} (review), {second.identifier} (todo)"


@pytest.mark.parametrize("status", ["in_progress", "review", "blocked", "done", "cancelled"])
async def test_what_is_not_open_for_work_cannot_be_claimed(desk: Desk, status: str) -> None:
    issue = await desk.issue(status=status)
    told = await refusal(desk, desk.actor("worker"), issue_id=issue.id)
    assert status.replace("_", " ") in told
    assert desk.reload(issue) == issue


async def test_a_parent_says_that_it_waits_for_its_subtasks(desk: Desk) -> None:
    issue = await desk.issue(status="in_progress")
    await desk.call(desk.actor("worker", issue), "create_subtask", title="a part")
    assert "waits for its subtasks" in await refusal(desk, desk.actor("worker"), issue_id=issue.id)


async def test_a_worker_cannot_claim_what_needs_planning(desk: Desk) -> None:
    issue = await desk.issue(status="todo", labels=["needs-planning"])
    assert "waits for a planner" in await refusal(desk, desk.actor("worker"), issue_id=issue.id)
    await refusal(desk, desk.actor("worker"), NotFound)
    assert (await claim(desk, desk.actor("planner"), issue_id=issue.id)).identifier == issue.identifier


async def test_a_session_bound_to_an_issue_finds_no_other(desk: Desk) -> None:
    bound, other = await desk.issue(status="todo"), await desk.issue(status="todo")
    actor = desk.actor("worker", bound, session="one")
    told = [await refusal(desk, actor, NotFound, issue_id=name) for name in (other.identifier, "SYM-999")]
    assert told == [f"there is no issue {other.identifier}", "there is no issue SYM-999"]


async def test_a_session_that_holds_one_gets_no_second(desk: Desk) -> None:
    first, second = await desk.issue(status="todo"), await desk.issue(status="todo")
    unaware = desk.actor("worker", session="one")
    holder = await claimed(desk, first, "one")
    for actor in (holder, unaware):
        assert f"holds {first.identifier} until" in await refusal(desk, actor, issue_id=second.identifier)
    await desk.call(holder, "release_issue")
    assert (await claim(desk, desk.actor("worker", session="one"), issue_id=second.id)).fence == 1


async def test_an_old_number_does_not_renew(desk: Desk) -> None:
    issue = await desk.issue(status="todo")
    await claimed(desk, issue, "one")
    run_out(desk, issue)
    await claimed(desk, issue, "two")
    for session in ("one", "two"):
        actor = desk.actor("worker", session=session)
        assert "its number is 2, not 1" in await refusal(desk, actor, issue_id=issue.id, fence=1)


async def test_another_session_of_the_same_agent_needs_the_number(desk: Desk) -> None:
    issue = await desk.issue(status="todo")
    await claimed(desk, issue, "one")
    other = desk.actor("worker", session="two")
    await refusal(desk, other, issue_id=issue.id)
    taken = await claim(desk, other, issue_id=issue.id, fence=1)
    assert (taken.fence, taken.renewed) == (1, True)
    assert desk.reload(issue).lease_session == "two"
    assert desk.actor("worker", session="one").issue is None
    assert desk.actor("worker", session="two").issue == issue.id


async def test_another_agent_is_refused_even_with_the_number(desk: Desk) -> None:
    issue = await desk.issue(status="todo")
    await desk.call(desk.owner, "create_agent", name="ada")
    await claimed(desk, issue, "one")
    await refusal(desk, desk.actor("worker", session="one", agent="ada"), issue_id=issue.id, fence=1)
    await refusal(desk, desk.owner, issue_id=issue.id, fence=1)


async def test_nothing_to_claim_is_said(desk: Desk) -> None:
    await desk.issue(status="todo", phase="research")
    assert await refusal(desk, desk.actor("worker"), NotFound) == "no issue is ready for a worker"


async def test_a_claim_is_a_lease_with_a_number_and_an_end(desk: Desk) -> None:
    issue = await desk.issue(status="todo")
    began = time.time_ns() // 1_000_000
    made = await claim(desk, desk.actor("worker", session="one"), issue_id=issue.identifier.lower(), minutes=5)
    ended = time.time_ns() // 1_000_000
    assert (made.identifier, made.fence, made.renewed) == (issue.identifier, 1, False)
    # The two clocks of a test are of one machine, but a database rounds.
    assert began + 300_000 - 1 <= made.until_ms <= ended + 300_000 + 1
    row = desk.reload(issue)
    actor = desk.actor("worker", session="one")
    assert (row.status, row.lease_subject, row.lease_session) == ("in_progress", actor.subject, "one")
    history = desk.rows(sa.select(issue_changes).where(issue_changes.c.issue_id == issue.id))
    assert [(line.field, line.old, line.new, line.why) for line in history] == [
        ("status", "todo", "in_progress", "claimed by default (worker)")
    ]


async def test_the_holder_renews_with_the_same_number_and_a_later_end(desk: Desk) -> None:
    issue = await desk.issue(status="todo")
    first = await claim(desk, desk.actor("worker", session="one"), issue_id=issue.id)
    holder = desk.actor("worker", session="one")
    again = await claim(desk, holder, minutes=60)
    sooner = await claim(desk, holder, issue_id=issue.id, minutes=1, fence=1)
    assert (again.fence, again.renewed, sooner.fence, sooner.renewed) == (1, True, 1, True)
    assert sooner.until_ms == again.until_ms > first.until_ms


async def test_asking_twice_without_an_issue_gives_the_same_one(desk: Desk) -> None:
    for _ in range(2):
        await desk.issue(status="todo")
    actor = desk.actor("worker", session="one")
    first, again = await claim(desk, actor), await claim(desk, actor)
    assert (again.identifier, again.fence, again.renewed) == (first.identifier, 1, True)


async def test_an_abandoned_issue_goes_to_the_next_who_asks(desk: Desk) -> None:
    issue = await desk.issue(status="todo")
    await claimed(desk, issue, "one")
    run_out(desk, issue)
    taken = await claim(desk, desk.actor("worker", session="two"))
    assert (taken.identifier, taken.fence, taken.renewed) == (issue.identifier, 2, False)
    last = desk.rows(sa.select(issue_changes).order_by(issue_changes.c.seq.desc()).limit(1))[0]
    assert (last.field, last.why) == ("held_by", "claimed: the lease before had run out")


async def test_a_late_worker_cannot_write(desk: Desk) -> None:
    issue = await desk.issue(status="todo")
    late = desk.actor("worker", issue, session="one")
    await claim(desk, late)
    run_out(desk, issue)
    await claimed(desk, issue, "two")
    held = desk.reload(issue)
    refused: list[tuple[str, dict[str, Any]]] = [
        ("update_issue_status", {"status": "review"}),
        ("update_issue_status", {"status": "review", "fence": 1}),
        ("add_comment", {"content": "done", "fence": 1}),
        ("create_subtask", {"title": "a part"}),
        ("create_subtask", {"title": "a part", "fence": 1}),
        ("release_issue", {}),
        ("release_issue", {"fence": 1}),
    ]
    for tool, arguments in refused:
        with pytest.raises(Conflict):
            await desk.call(late, tool, **arguments)
    assert desk.reload(issue) == held
    moved = await desk.call(desk.actor("worker", session="two"), "update_issue_status", status="review", fence=2)
    assert moved.status == "review"
    assert desk.reload(issue).lease_until_ms is None


async def test_without_a_name_each_profile_gets_the_first_of_its_own_phases(desk: Desk) -> None:
    for phase in ("grooming", "architecture", "research", "ready"):
        await desk.issue(phase, status="todo", phase=phase)
    for profile, phase in (("worker", "ready"), ("planner", "grooming"), ("researcher", "architecture")):
        made = await claim(desk, desk.actor(profile, session=profile))
        assert (await desk.call(desk.owner, "get_issue_status", issue_id=made.identifier)).labels == [f"phase:{phase}"]
    await refusal(desk, desk.actor("architect"), NotFound)


async def test_who_was_given_an_issue_claims_it_without_naming_it(desk: Desk) -> None:
    await desk.issue("urgent", status="todo", priority=1)
    given = await desk.issue("given", status="in_progress")
    made = await claim(desk, desk.actor("worker", given, session="one"))
    assert (made.identifier, made.fence) == (given.identifier, 1)


async def test_a_person_can_claim(desk: Desk) -> None:
    issue = await desk.issue(status="in_progress")
    made = await claim(desk, desk.person(), issue_id=issue.id)
    assert (made.fence, desk.reload(issue).lease_name) == (1, "owner")


async def test_only_a_claim_that_binds_a_session_wakes_the_others(desk: Desk) -> None:
    bound, free = await desk.issue(status="todo"), await desk.issue(status="todo")
    database = desk.fleet.platform.database
    began = database.epoch(EPOCH)
    await claim(desk, desk.actor("worker", bound, session="one"))
    unaware = desk.actor("worker", session="two")
    assert database.epoch(EPOCH) == began
    await claim(desk, unaware, issue_id=free.id)
    assert database.epoch(EPOCH) == began + 1
    for actor in (unaware, desk.actor("worker", session="two")):
        await claim(desk, actor, issue_id=free.id)
    assert database.epoch(EPOCH) == began + 1

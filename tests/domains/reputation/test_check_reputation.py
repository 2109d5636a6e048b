from typing import Any, cast

import pytest
import sqlalchemy as sa

from rookery.core.errors import InvalidParams, NotFound, PermissionDenied
from rookery.domains.reputation.tables import agent_reputation
from rookery.repute.tables import reputation_events
from tests.domains.reputation.bench import FRESH, Bench
from tests.domains.tracker.claimant import claimant
from tests.domains.tracker.desk import Desk
from tests.domains.work.workshop import Workshop
from tests.jobs.working import running_worker, settled
from tests.platform_fixtures import Fleet
from tests.sessions.stage import use_sessions


async def test_agents_of_others_and_of_nobody_are_not_found(bench: Bench) -> None:
    ada = await bench.agent("ada")
    for wanted in ("nobody", "agt_000", "ada\ud800"[:3] + "x"):
        with pytest.raises(NotFound):
            await bench.look(ada, agent_id=wanted)
    with pytest.raises(NotFound):
        await bench.look(bench.stranger, agent_id=ada.agent)
    assert bench.rows(sa.select(agent_reputation)) == []


async def test_whoever_is_no_agent_says_whose_reputation_is_wanted(bench: Bench) -> None:
    with pytest.raises(InvalidParams, match="agent_id"):
        await bench.look(bench.fleet.owner)
    with pytest.raises(InvalidParams, match="1 to 200 characters"):
        await bench.look(bench.fleet.owner, agent_id="")


async def test_a_fresh_agent_scores_55_and_is_trusted_a_little(bench: Bench) -> None:
    ada = await bench.agent("ada")
    told = await bench.look(ada)
    assert (told["overall_score"], told["trust_level"], told["components"]) == (55, "medium", FRESH)
    assert (told["agent_id"], told["agent"], told["attestation_hash"], told["events"]) == (ada.agent, "ada", None, [])
    assert told["computed_at"].endswith("+00:00")
    [row] = bench.rows(sa.select(agent_reputation))
    assert (row.tenant, row.agent_id, row.overall_score, row.trust_level) == ("default", ada.agent, 55, "medium")


async def test_others_look_by_name_or_id_and_the_score_is_kept_once(bench: Bench) -> None:
    ada, bob = await bench.agent("ada"), await bench.agent("bob")
    bench.note(ada, "security_violation", -20, times=3)
    for wanted in ("ADA", ada.agent):
        told = await bench.look(bob, agent_id=wanted)
        assert (told["agent_id"], told["overall_score"], told["trust_level"]) == (ada.agent, 43, "low")
    assert (await bench.look(bench.fleet.owner, agent_id="ada"))["overall_score"] == 43
    [row] = bench.rows(sa.select(agent_reputation))
    assert (row.agent_id, row.security_compliance, row.overall_score) == (ada.agent, 40, 43)


async def test_what_is_older_than_its_window_counts_no_more(bench: Bench) -> None:
    ada = await bench.agent("ada")
    bench.note(ada, "task_failed", -2, times=3, days_ago=91)
    bench.note(ada, "credit_spent", -10, days_ago=91)
    bench.note(ada, "security_violation", -20, days_ago=91)
    bench.note(ada, "session_completed", days_ago=31)
    assert await bench.parts(ada) == {}
    bench.note(ada, "security_violation", -20, days_ago=89)
    bench.note(ada, "session_completed", days_ago=29)
    bench.note(ada, "review_received", 4, days_ago=400)
    assert await bench.parts(ada) == {"security_compliance": 80, "activity_level": 10, "peer_rating": 75}


async def test_the_last_ten_events_are_told_newest_first(bench: Bench) -> None:
    ada = await bench.agent("ada")
    for number in range(12):
        bench.note(ada, "credit_earned", number + 1)
    told = (await bench.look(ada))["events"]
    assert [each["impact"] for each in told] == list(range(12, 2, -1))
    assert (told[0]["type"], told[0]["about"]) == ("credit_earned", {})
    assert told[0]["created_at"]


async def test_refused_calls_move_security_compliance_once_a_tool_and_day(bench: Bench, fleet: Fleet) -> None:
    ada, bob = await bench.agent("ada"), await bench.agent("bob")
    for _ in range(3):
        with pytest.raises(PermissionDenied):
            await fleet.call(ada, "grant_credits", wallet_address="w", amount=1)
    assert await bench.parts(ada) == {"security_compliance": 80}
    with pytest.raises(PermissionDenied):
        await fleet.call(ada, "create_agent", name="eve")
    told = await bench.look(ada)
    assert (told["components"]["security_compliance"], told["overall_score"]) == (60, 47)
    assert [each["about"] for each in told["events"]] == [
        {"tool": "create_agent", "layer": "principal"},
        {"tool": "grant_credits", "layer": "role"},
    ]
    assert await bench.parts(bob) == {}


async def test_a_call_at_the_wrong_moment_is_no_violation(bench: Bench, fleet: Fleet) -> None:
    await bench.agent("ada")
    unbound = fleet.actor(agent="ada", profile="judge")
    with pytest.raises(PermissionDenied, match="none is bound"):
        await fleet.call(unbound, "approve_phase", phase="research", artifact_hash="0" * 64)
    with pytest.raises(NotFound):
        await fleet.call(unbound, "no_such_tool")
    with pytest.raises(InvalidParams):
        await fleet.call(fleet.actor(agent="ada"), "check_reputation", nothing="such")
    assert bench.rows(sa.select(reputation_events)) == []


async def test_sessions_in_which_an_agent_acts_move_its_activity(bench: Bench, fleet: Fleet) -> None:
    ada = await bench.agent("ada")
    for session in ("ses-1", "ses-2"):
        await fleet.call(fleet.actor(agent="ada", session=session), "ping")
    with pytest.raises(NotFound):
        await fleet.call(fleet.actor(agent="ada", session="ses-1"), "check_reputation", agent_id="nobody")
    with pytest.raises(PermissionDenied):
        await fleet.call(fleet.actor(agent="ada", session="ses-3", profile="judge"), "create_subtask", title="x")
    assert (await bench.look(ada))["components"]["activity_level"] == 0
    for key in ("a", "b"):
        await fleet.call(fleet.actor(agent="ada", session="ses-3"), "save_memory", key=key, content="tea")
    await fleet.call(fleet.actor(as_owner=True, session="ses-4"), "ping")
    told = await bench.look(ada)
    assert (told["components"]["activity_level"], told["events"][0]["about"]) == (10, {"source": "stdio"})


async def test_of_the_sessions_of_an_hour_one_counts(bench: Bench) -> None:
    ada = await bench.agent("ada")
    bench.note(ada, "session_completed", days_ago=1, times=12)
    assert await bench.parts(ada) == {"activity_level": 10}
    bench.note(ada, "session_completed", days_ago=2)
    assert await bench.parts(ada) == {"activity_level": 20}


async def test_credits_that_come_and_go_move_the_credit_pattern(bench: Bench, fleet: Fleet) -> None:
    ada = await bench.agent("ada")
    await bench.agent("bob")
    cast("dict[str, Any]", fleet.platform.calls.facts)["runtime"] = None
    wallet = f"agent:{ada.agent}"
    await fleet.call(fleet.owner, "grant_credits", wallet_address=wallet, amount=5)
    assert await bench.parts(ada) == {"credit_pattern": 100}
    for text in ("tea?", "milk?"):
        await fleet.call(ada, "send_message", to_agent="bob", message=text)
        await fleet.call(fleet.owner, "grant_credits", wallet_address=wallet, amount=1, reference=text)
    spent = [each["impact"] for each in (await bench.look(ada))["events"] if each["type"] == "credit_spent"]
    assert sum(spent) < 0
    earned, gone = 7, -sum(spent)
    assert (await bench.look(ada))["components"]["credit_pattern"] == min(100, (100 * earned + gone) // (2 * gone))


async def test_tasks_that_an_agent_gives_itself_are_told_and_not_counted(workshop: Workshop, bench: Bench) -> None:
    await workshop.open()
    ada = await workshop.new_agent("ada")
    for script in ("!write a.txt one", "!write b.txt two", "!write c.txt three"):
        await workshop.work(script, actor=ada)
    told = await bench.look(ada)
    assert told["components"]["task_completion"] == 50
    assert [each["impact"] for each in told["events"] if each["type"] == "task_completed"] == [0, 0, 0]


async def test_the_end_of_work_tasks_moves_task_completion_and_activity(workshop: Workshop, bench: Bench) -> None:
    await workshop.open()
    worker, person = workshop.agent(), workshop.person()
    use_sessions(workshop.fleet.platform)
    await workshop.work("!write a.txt one", actor=person)
    await workshop.work("!say nothing was done", actor=person)
    told = await bench.look(worker)
    assert told["components"]["task_completion"] == 50
    assert told["components"]["activity_level"] >= 10
    await workshop.work("!write b.txt two", actor=person)
    told = await bench.look(worker)
    assert told["components"]["task_completion"] == 67
    kinds = [each["type"] for each in told["events"]]
    assert (kinds.count("task_completed"), kinds.count("task_failed"), kinds.count("session_completed")) == (2, 1, 3)


async def test_tasks_that_another_agent_gives_are_counted(workshop: Workshop, bench: Bench) -> None:
    await workshop.open()
    ada, bob = await workshop.new_agent("ada"), await workshop.new_agent("bob")
    async with running_worker(workshop.fleet.platform):
        for name in ("a", "b", "c"):
            await workshop.call(bob, "send_message", to_agent="ada", message=f"[WORK] !write {name}.txt x")
        await settled(workshop.fleet.platform, within_s=60)
    told = await bench.look(ada)
    assert [each["impact"] for each in told["events"] if each["type"] == "task_completed"] == [5, 5, 5]
    assert told["components"]["task_completion"] == 100
    assert "task_completion" not in await bench.parts(bob)


async def test_a_task_that_is_cancelled_has_failed_once(workshop: Workshop, bench: Bench) -> None:
    await workshop.open()
    ada = await workshop.new_agent("ada")
    made = await workshop.create(actor=ada)
    await workshop.call(ada, "cancel_work_task", task_id=made.id)
    await workshop.done()
    assert [each["type"] for each in (await bench.look(ada))["events"]] == ["task_failed"]


async def test_an_improvement_is_told_as_one(workshop: Workshop, bench: Bench) -> None:
    await workshop.open()
    ada = await workshop.new_agent("ada")
    for number, script in enumerate(("!write a.txt one", "!say nothing was done")):
        await workshop.create(script, ada, source_id=f"improvement:exe_1:0:{number}")
        await workshop.done()
    told = [(each["type"], each["impact"]) for each in (await bench.look(ada))["events"]]
    assert [each for each in told if each[0] not in ("session_completed", "credit_spent")] == [
        ("task_failed", 0),
        ("improvement_loop_failed", -2),
        ("task_completed", 0),
        ("improvement_loop_completed", 5),
    ]


async def test_verdicts_of_judges_move_the_peer_rating(desk: Desk, bench: Bench) -> None:
    await bench.agent("ada")
    await bench.agent("mae")
    at = await claimant(desk, agent="ada")
    judge = at.bound("judge", agent="mae")
    await at.claim()
    given = {"phase": "research", "artifact_hash": at.arguments()["artifact_hash"]}
    await desk.call(judge, "reject_phase", **given, reason="too short")
    ada, mae = desk.fleet.actor(agent="ada"), desk.fleet.actor(agent="mae")
    assert await bench.parts(ada) == {"peer_rating": 0}
    await at.claim()
    await desk.call(judge, "approve_phase", **given)
    told = await bench.look(ada)
    assert told["components"]["peer_rating"] == 50
    assert [each["about"]["verdict"] for each in told["events"]] == ["approved", "rejected"]
    assert await bench.parts(mae) == {}


async def test_the_work_of_people_is_not_rated(desk: Desk, bench: Bench) -> None:
    at = await claimant(desk)
    await at.claim(desk.fleet.actor(as_owner=True, project="repo", issue=at.issue.id, worktree=str(at.folder),
                                    cwd=str(at.folder)))  # fmt: skip
    given = {"phase": "research", "artifact_hash": at.arguments()["artifact_hash"]}
    await desk.call(at.bound("judge"), "approve_phase", **given)
    assert bench.rows(sa.select(reputation_events)) == []

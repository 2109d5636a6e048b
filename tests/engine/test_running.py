"""An attempt from its queue to its end: real jobs, a real repository, and agents that play scripts."""

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
import sqlalchemy as sa

from rookery.engine.outcomes import UNCLAIMED
from rookery.engine.tables import dispatches
from rookery.jobs.tables import jobs
from tests.domains.tracker.desk import git
from tests.engine.crew import Crew, Started, build, call, claim_ready, write_artifact
from tests.platform_fixtures import Fleet

IDLE = "the agent ended without claiming that the phase is complete"


@pytest.mark.anyio
async def test_an_agent_that_reaches_for_other_issues_and_phases_is_refused_and_goes_back_empty_handed(
    crew: Crew,
) -> None:
    await crew.open()
    issue, other = await crew.todo("mine"), await crew.todo("another's")
    await crew.project("elsewhere")
    foreign = await crew.issue("of another project", status="todo", project="elsewhere")

    def reaches(started: Started) -> Sequence[str]:
        return [
            "!write a.txt one",
            "!commit work",
            call("claim_issue", issue_id=other.identifier),
            call("claim_issue", issue_id=foreign.identifier),
            claim_ready(started, completed_phase="research"),
            claim_ready(started, issue_id=other.identifier),
            claim_ready(started, project_path=str(started.folder.parent)),
        ]

    crew.runtime.script = reaches
    row = await crew.dispatched(issue)
    assert crew.came_to(row) == ("ended", "idle", IDLE)
    (run,) = crew.runs()
    refused = [event.payload for event in crew.events(run.id) if event.subtype == "tool_result"]
    assert [event["is_error"] for event in refused] == [True] * 5
    assert [crew.standing(each) for each in (issue, other, foreign)] == [("todo", None)] * 3
    (comment,) = crew.said(issue)
    assert comment.startswith("The worker ended with nothing done. It was refused `complete_phase`: ")
    assert "is neither the bound worktree nor the project's root" in comment
    assert [crew.said(each) for each in (other, foreign)] == [[], []]


@pytest.mark.anyio
async def test_a_session_that_ends_without_a_claim_gives_the_issue_back_and_says_why(crew: Crew) -> None:
    await crew.open()
    crew.play("!say I looked at it")
    issue = await crew.todo()
    row = await crew.dispatched(issue)
    assert crew.came_to(row) == ("ended", "idle", IDLE)
    assert crew.standing(issue) == ("todo", None)
    assert crew.reasons(issue)[-1] == f"idle: {IDLE}"
    assert crew.said(issue) == []


@pytest.mark.anyio
async def test_a_session_that_fails_gives_the_issue_back_and_says_why(crew: Crew) -> None:
    await crew.open()
    crew.play("!spend 0.5", "!fail the disk is full")
    issue = await crew.todo()
    row = await crew.dispatched(issue)
    assert crew.came_to(row) == ("ended", "failed", "the disk is full")
    assert crew.standing(issue) == ("todo", None)
    (run,) = crew.runs()
    assert (run.id, run.issue_id, run.status, run.cost_micros) == (row.run_id, issue.id, "failed", 500_000)
    assert (run.kind, run.profile, run.phase, run.key) == ("orchestrator", "worker", "ready", f"dispatch:{row.id}")


@pytest.mark.anyio
async def test_a_session_that_takes_too_long_is_stopped_and_timed_out(crew: Crew) -> None:
    await crew.open(run_limit_s=1)
    crew.play("!wait 60")
    issue = await crew.todo()
    row = await crew.dispatched(issue)
    assert crew.came_to(row) == ("ended", "timed_out", "the session did not end within 1 s")
    assert (crew.runs()[0].status, crew.standing(issue)) == ("timed_out", ("todo", None))


@pytest.mark.anyio
async def test_an_agent_of_which_nothing_is_heard_has_stalled(
    database_url: str, make_fleet: Callable[..., Fleet], tmp_path: Path
) -> None:
    crew = Crew(make_fleet(database_url, extra={}, session_stall_s=0.2), tmp_path)
    await crew.open()
    crew.play("!wait 60")
    issue = await crew.todo()
    row = await crew.dispatched(issue)
    assert crew.came_to(row) == ("ended", "stalled", "nothing was heard of the agent for 0.2 s")
    assert (crew.runs()[0].status, crew.standing(issue)) == ("stalled", ("todo", None))


@pytest.mark.anyio
async def test_a_worker_gets_its_worktree_its_lease_and_its_prompt_and_its_claim_succeeds(crew: Crew) -> None:
    await crew.open(build)
    issue = await crew.todo("login fails")
    row = await crew.dispatched(issue)
    assert crew.came_to(row) == ("ended", "succeeded", None)
    assert crew.standing(issue) == ("in_progress", f"dispatch:{row.id}")
    assert row.fence == 1
    (started,) = crew.runtime.started
    assert (started.actor.profile, started.actor.phase, started.actor.issue) == ("worker", "ready", issue.id)
    assert str(started.folder) == row.workspace == started.actor.worktree
    assert git(started.folder, "log", "-1", "--format=%s").strip() == "add a.txt"
    assert started.prompt.startswith(f"# {issue.identifier}: work on ready\n\n# Where you work\n")
    assert git(crew.repository, "status", "--porcelain") == ""
    (done,) = await crew.advance()
    assert done.outcome == "pr_opened"
    assert crew.standing(issue) == ("review", None)


@pytest.mark.anyio
async def test_a_claim_counts_though_the_agent_fails_after_it(crew: Crew) -> None:
    await crew.open(lambda started: [*build(started), "!fail tripped on the way out"])
    issue = await crew.todo()
    row = await crew.dispatched(issue)
    assert crew.came_to(row) == ("ended", "succeeded", None)
    assert crew.runs()[0].status == "failed"
    assert [done.outcome for done in await crew.advance()] == ["pr_opened"]


@pytest.mark.anyio
async def test_an_agent_that_needs_a_person_has_done_what_it_could(crew: Crew) -> None:
    await crew.open()
    crew.play(call("update_issue_status", status="blocked", reason="which of the two logins?"))
    issue = await crew.todo()
    row = await crew.dispatched(issue)
    assert crew.came_to(row) == ("ended", "succeeded", None)
    assert crew.standing(issue) == ("blocked", None)


@pytest.mark.anyio
async def test_an_issue_that_its_agent_puts_into_review_without_a_claim_does_not_wait_there(crew: Crew) -> None:
    await crew.open()
    crew.play(call("update_issue_status", status="review", reason="looks fine to me"))
    issue = await crew.todo()
    row = await crew.dispatched(issue)
    assert crew.came_to(row) == ("ended", "idle", UNCLAIMED)
    assert (crew.standing(issue), crew.reasons(issue)[-1]) == (("todo", None), f"idle: {UNCLAIMED}")


@pytest.mark.anyio
async def test_an_agent_that_gives_its_issue_back_was_idle(crew: Crew) -> None:
    await crew.open()
    crew.play(call("release_issue", reason="too hard"))
    issue = await crew.todo()
    row = await crew.dispatched(issue)
    assert crew.came_to(row) == ("ended", "idle", IDLE)
    assert crew.standing(issue) == ("todo", None)


@pytest.mark.anyio
@pytest.mark.parametrize("phase", ["research", "architecture", "grooming"])
async def test_every_phase_has_its_role_and_its_artifact(crew: Crew, phase: str) -> None:
    await crew.open(write_artifact)
    issue = await crew.todo(phase=phase)
    row = await crew.dispatched(issue)
    assert crew.came_to(row) == ("ended", "succeeded", None)
    assert [done.outcome for done in await crew.advance()] == ["awaiting_verdict"]
    assert crew.standing(issue) == ("review", None)


@pytest.mark.anyio
async def test_the_next_attempt_works_on_in_the_same_worktree_with_the_next_number(crew: Crew) -> None:
    await crew.open()
    crew.play("!write half.txt begun", "!fail tired")
    issue = await crew.todo()
    first = await crew.dispatched(issue)
    crew.runtime.script = build
    second = await crew.dispatched(issue, attempt=2)
    assert (first.workspace, first.fence, second.fence) == (second.workspace, 1, 2)
    assert crew.came_to(second) == ("ended", "succeeded", None)
    assert git(second.workspace, "show", "--format=", "--name-only").split() == ["a.txt", "half.txt"]
    assert "# The attempt before this one\n\nIt ended as failed" in crew.runtime.prompts[1]
    assert "> tired" in crew.runtime.prompts[1]


@pytest.mark.anyio
async def test_what_nobody_foresaw_is_a_failed_attempt_and_no_other(crew: Crew) -> None:
    await crew.open()
    issue = await crew.todo()
    row = await crew.dispatched(issue, role="juggler")
    assert crew.came_to(row) == ("ended", "failed", "INVALID_PARAMS: there is no agent type juggler")
    assert crew.standing(issue) == ("todo", None)


@pytest.mark.anyio
async def test_without_a_runtime_the_attempt_fails_and_says_which_setting_is_missing(crew: Crew) -> None:
    await crew.open()
    crew.platform.calls.facts["runtime"] = None  # pyright: ignore[reportIndexIssue]
    issue = await crew.todo()
    row = await crew.dispatched(issue)
    told = "No agent could be started: no runtime for agents is set up (the setting runtime names one)"
    assert crew.came_to(row) == ("ended", "failed", told)
    assert (crew.standing(issue), crew.said(issue)) == (("todo", None), [told])


@pytest.mark.anyio
async def test_model_turns_and_time_of_the_project_are_those_of_the_session(crew: Crew) -> None:
    await crew.open(models={"worker": "opus"}, max_turns=7, run_limit_s=120)
    row = await crew.dispatched(await crew.todo())
    (started,) = crew.runtime.started
    assert (started.how["model"], started.how["max_turns"], started.how["key"]) == ("opus", 7, f"dispatch:{row.id}")
    assert crew.runs()[0].base_ms == 120_000


@pytest.mark.anyio
async def test_a_run_may_cost_the_least_of_what_is_left_to_everybody(crew: Crew) -> None:
    await crew.open(run_budget_usd=5.0, issue_budget_usd=1.0, daily_budget_usd=30.0)
    crew.play("!spend 0.75", "!fail dear")
    issue = await crew.todo()
    await crew.dispatched(issue)
    row = await crew.dispatched(issue, attempt=2)
    assert [started.how["budget_usd"] for started in crew.runtime.started] == [1.0, 0.25]
    assert crew.came_to(row) == ("ended", "failed", "the budget of 0.25 dollars is used up")
    third = await crew.dispatched(issue, attempt=3)
    assert crew.came_to(third) == ("ended", "cancelled", "the budget of the issue is used up")
    assert len(crew.runtime.started) == 2


@pytest.mark.anyio
async def test_what_is_left_of_a_day_is_shared_and_promised_to_nobody_twice(crew: Crew) -> None:
    await crew.open(daily_budget_usd=1.0, max_agents=4)
    first = await crew.dispatched(await crew.todo())
    assert crew.runtime.started[0].how["budget_usd"] == 0.25
    # As if it were still at work.
    crew.change(sa.update(dispatches).where(dispatches.c.id == first.id).values(state="running"))
    await crew.dispatched(await crew.todo())
    assert crew.runtime.started[1].how["budget_usd"] == 0.25


@pytest.mark.anyio
async def test_every_attempt_is_one_job_that_is_done(crew: Crew) -> None:
    await crew.open()
    await crew.dispatched(await crew.todo())
    mine = jobs.c.kind == "orchestrator.run"
    (job,) = crew.rows(sa.select(jobs).where(mine))
    assert (job.state, job.failures, job.losses, job.queue) == ("done", 0, 0, "runs")
    assert crew.count(dispatches) == 1

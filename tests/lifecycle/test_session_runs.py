"""Every session is a run: however it ends there is a record of it, paid for once, with nothing held back for ever."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
import sqlalchemy as sa

from rookery.jobs.store import Jobs
from rookery.jobs.tables import jobs
from rookery.ledger.store import wallet_of
from rookery.lifecycle.run_store import NewRun
from rookery.lifecycle.run_tables import agent_runs
from rookery.lifecycle.session_store import LOST, SessionRuns
from rookery.lifecycle.sessions import Outcome
from tests.jobs.working import running_worker, settled
from tests.lifecycle.session_trials import LIMIT_S, Abandoned, Broken, Trials

pytestmark = pytest.mark.anyio


async def wallet(trials: Trials, amount: int = 0) -> str:
    """The wallet of the agent that works, with so many credits."""
    own = wallet_of(trials.fleet.actor().agent or "")
    if amount:
        trials.books.do(lambda ledger: ledger.grant(own, amount, "start"))
    return own


async def test_a_session_that_ends_is_a_run_with_all_that_is_known(trials: Trials) -> None:
    actor, issue = trials.fleet.actor(), await trials.fleet.issue()
    run = await trials.done("!say one", "!spend 0.5", "!say two", issue=issue)
    assert (run.status, run.error, run.kind, run.turns, run.cost_micros) == ("succeeded", None, "work", 3, 500_000)
    assert (run.agent, run.project_id, run.issue_id) == (actor.agent, actor.project, issue)
    assert (run.key, run.attempt) == (f"trial:{run.job_id}", 1)
    assert run.session == run.key
    assert run.created_ms == run.started_ms <= run.ended_ms
    assert (run.base_ms, run.deadline_ms - run.started_ms) == (1_800_000, 1_800_000)


async def test_tokens_and_turns_are_taken_from_the_outcome_as_far_as_they_are_numbers(trials: Trials) -> None:
    def ended(**outcome: Any) -> tuple[int, int, int]:
        new = NewRun(project_id="prj-1", key="k")
        run = trials.write(lambda tx: SessionRuns(tx, "default").begin(new, 1_000, 1))
        run = trials.write(
            lambda tx: SessionRuns(tx, "default").finish(run.id, "succeeded", Outcome("done", **outcome))
        )
        return run.turns, run.input_tokens, run.output_tokens

    assert ended(turns=3, input_tokens=100, output_tokens=20) == (3, 100, 20)
    assert ended(turns=-1, input_tokens=float("nan"), output_tokens=2**80) == (0, 0, 10**12)
    assert ended() == (1, 0, 0)


async def test_an_issue_of_another_project_is_not_that_of_the_run(trials: Trials) -> None:
    await trials.call("create_project", slug="shop")
    there = trials.fleet.actor(as_owner=True, project="shop")
    issue = (await trials.fleet.call(there, "create_issue", title="a leak")).id
    assert (await trials.done("!say x", issue=issue)).issue_id is None
    assert (await trials.done("!say x", issue="iss-unknown")).issue_id is None


@pytest.mark.parametrize("starts", [False, True])
async def test_a_session_that_breaks_has_failed_and_holds_nothing_back(trials: Trials, starts: bool) -> None:
    own = await wallet(trials, 10)
    broken = Broken(starts=starts)
    trials.use(broken)
    run = await trials.done("hello", max_turns=4)
    told = "broken off: the pipe broke" if starts else "not started: no such program"
    assert (run.status, run.error, run.turns) == ("failed", told, 0)
    assert (broken.stopped, trials.books.numbers(own)) == (int(starts), (10, 0, 10, 0))


async def test_a_session_that_fails_is_told_and_paid_for(trials: Trials) -> None:
    own = await wallet(trials, 10)
    run = await trials.done("!spend 0.25", "!fail it rains", "!say never")
    assert (run.status, run.error, run.cost_micros, run.turns) == ("failed", "it rains", 250_000, 2)
    assert trials.books.numbers(own) == (8, 0, 10, 2)


async def test_whoever_is_unwanted_is_stopped(trials: Trials) -> None:
    run = await trials.done("!wait 3000", unwanted=True)
    assert (run.status, run.error) == ("cancelled", "stopped before its end")


async def test_a_cancelled_job_stops_its_session_and_what_that_cost_counts(trials: Trials) -> None:
    own = await wallet(trials, 10)
    job_id = trials.defer("!spend 0.75", "!wait 3000", max_turns=5)
    async with running_worker(trials.fleet.platform):
        await trials.until(lambda: any(run.session for run in trials.runs), "the session began")
        assert trials.books.numbers(own) == (5, 5, 10, 0)
        trials.write(lambda tx: Jobs(tx, "default").cancel(job_id))
        await settled(trials.fleet.platform)
    (run,) = trials.runs
    assert (run.status, run.cost_micros, run.turns) == ("cancelled", 750_000, 2)
    assert trials.books.numbers(own) == (8, 0, 10, 2)


@pytest.mark.parametrize("turns", range(10))
async def test_a_job_that_is_cancelled_just_when_its_session_starts_leaves_none(trials: Trials, turns: int) -> None:
    runtime = Abandoned(turns)
    trials.use(runtime)
    trials.defer("hello")
    async with running_worker(trials.fleet.platform), asyncio.timeout(LIMIT_S):
        await runtime.stopped.wait()
    (run,) = trials.runs
    assert run.status in ("cancelled", "failed")


async def test_a_session_whose_time_is_over_is_stopped_and_what_it_cost_counts(
    make_trials: Callable[..., Trials],
) -> None:
    trials = make_trials(agent_timeout_ms=300)
    run = await trials.done("!spend 0.5", "!wait 3000")
    assert (run.status, run.error) == ("timed_out", "the session did not end within 0.3 s")
    assert (run.cost_micros, run.turns) == (500_000, 2)


@pytest.mark.parametrize(("had", "left"), [(10, (6, 0, 10, 4)), (4, (0, 0, 4, 4)), (3, (0, 0, 3, 3))])
@pytest.mark.parametrize("max_turns", [None, 4, 9])
async def test_every_turn_is_paid_for_as_far_as_there_are_credits(
    trials: Trials, had: int, left: tuple[int, ...], max_turns: int | None
) -> None:
    own = await wallet(trials, had)
    run = await trials.done("!say a", "!say b", "!say c", "!say d", max_turns=max_turns)
    assert (run.status, run.turns, trials.books.numbers(own)) == ("succeeded", 4, left)
    trials.books.check()


async def test_without_credits_or_a_price_nothing_is_charged(trials: Trials) -> None:
    own = await wallet(trials)
    await trials.done("!say a")
    assert (trials.books.types(own), trials.books.check()) == ([], {})
    await wallet(trials, 5)
    await trials.call("credit_config", key="credits_per_turn", value=0)
    await trials.done("!say a")
    assert trials.books.types(own) == ["grant"]


async def test_sessions_side_by_side_never_promise_the_same_credits(trials: Trials) -> None:
    own = await wallet(trials, 25)
    for _ in range(12):
        trials.defer("!say a", "!say b", "!say c", max_turns=3)
    async with running_worker(trials.fleet.platform, concurrency=6):
        await settled(trials.fleet.platform)
    assert [run.status for run in trials.runs] == ["succeeded"] * 12
    assert trials.books.numbers(own) == (0, 0, 25, 25)
    trials.books.check()


async def test_a_run_that_nobody_looks_after_is_ended_by_the_next_and_its_credits_are_free(trials: Trials) -> None:
    own = await wallet(trials, 10)
    job_id = trials.defer("!say later")
    new = NewRun(project_id="prj-1", agent=trials.fleet.actor().agent, key="k", job_id=job_id, attempt=0)
    dead = trials.write(lambda tx: SessionRuns(tx, "default").begin(new, 60_000, 4))
    assert trials.books.numbers(own) == (6, 4, 10, 0)
    assert (await trials.done("!say now")).status == "succeeded"
    lost, *others = trials.runs
    assert (lost.id, lost.status, lost.error, lost.ended_ms is not None) == (dead.id, "stalled", LOST, True)
    assert [run.status for run in others] == ["succeeded"] * 2
    assert trials.books.numbers(own) == (8, 0, 10, 2)
    late = trials.write(lambda tx: SessionRuns(tx, "default").finish(dead.id, "succeeded", Outcome("done", turns=3)))
    assert (late.status, late.turns, trials.books.numbers(own)) == ("stalled", 3, (5, 0, 10, 5))
    trials.books.check()


@pytest.mark.parametrize(
    ("job", "status"),
    [
        ({}, "running"),
        ({"attempt": 2}, "stalled"),
        ({"state": "waiting"}, "stalled"),
        ({"state": "done"}, "stalled"),
        ({"lease_ms": 5}, "stalled"),
    ],
)
async def test_a_run_is_lost_when_its_job_is_no_longer_the_same_workers(
    trials: Trials, job: dict[str, Any], status: str
) -> None:
    job_id = trials.defer("!say x")
    held = {"state": "running", "attempt": 1, "lease_ms": 2**60, **job}
    trials.write(lambda tx: tx.run(sa.update(jobs).where(jobs.c.id == job_id).values(**held)))
    new = NewRun(project_id="prj-1", key="k", job_id=job_id)
    trials.write(lambda tx: SessionRuns(tx, "default").begin(new, 60_000, 1))
    trials.write(lambda tx: SessionRuns(tx, "other").end_lost())
    assert trials.runs[0].status == "running"
    trials.write(lambda tx: SessionRuns(tx, "default").end_lost())
    assert trials.runs[0].status == status


async def test_a_run_of_somebody_elses_making_is_not_taken_for_lost(trials: Trials) -> None:
    trials.write(lambda tx: SessionRuns(tx, "default").begin(NewRun(project_id="prj-1"), 60_000, 1))
    trials.write(lambda tx: SessionRuns(tx, "default").end_lost())
    assert [row.status for row in trials.rows(sa.select(agent_runs.c.status))] == ["running"]


async def test_the_agent_that_a_session_is_given_knows_its_run(trials: Trials) -> None:
    run = await trials.done('!call save_memory {"key": "k", "content": "c"}')
    (memory,) = trials.rows(sa.text("SELECT run_id FROM memories"))
    assert memory.run_id == run.id

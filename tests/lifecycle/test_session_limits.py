"""However a runtime hangs and however a worker ends: a run ends in time, and its credits are free again."""

import asyncio
from collections.abc import Callable

import pytest
import sqlalchemy as sa

from rookery.jobs.store import Jobs
from rookery.jobs.tables import jobs
from rookery.ledger.store import wallet_of
from rookery.lifecycle import session_runs
from rookery.lifecycle.run_store import NewRun
from rookery.lifecycle.session_store import END_LOST, SessionRuns
from tests.jobs.working import running_worker, settled
from tests.lifecycle.session_trials import Hanging, Trials

pytestmark = pytest.mark.anyio
NAMES = ("message_id", "execution_id", "schedule_id", "task_id", "run_id", "node_id")
ARGS: dict[str, str] = dict.fromkeys(NAMES, "none")
"""Of whatever kind of job."""


@pytest.fixture(autouse=True)
def _soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session_runs, "STOP_S", 0.2, raising=False)


async def test_a_start_that_never_ends_is_over_with_the_sessions_time(make_trials: Callable[..., Trials]) -> None:
    trials, hanging = make_trials(agent_timeout_ms=300), Hanging("start")
    trials.use(hanging)
    own = wallet_of(trials.fleet.actor().agent or "")
    trials.books.do(lambda ledger: ledger.grant(own, 10, "start"))
    async with asyncio.timeout(20):
        run = await trials.done("hello", max_turns=4)
    assert (run.status, run.error) == ("timed_out", "the session did not start within 0.3 s")
    assert trials.books.numbers(own) == (10, 0, 10, 0)
    hanging.gate.set()
    await trials.until(lambda: hanging.stopped, "what started after all is stopped")


async def test_a_stop_that_never_ends_keeps_nobody(make_trials: Callable[..., Trials]) -> None:
    trials, hanging = make_trials(agent_timeout_ms=300), Hanging("stop")
    trials.use(hanging)
    async with asyncio.timeout(20):
        run = await trials.done("hello")
    assert (run.status, run.error, hanging.stopped) == ("timed_out", "the session did not end within 0.3 s", 1)
    hanging.gate.set()


async def test_a_job_that_is_cancelled_while_its_session_starts_waits_for_no_runtime(trials: Trials) -> None:
    hanging = Hanging("start")
    trials.use(hanging)
    job_id = trials.defer("hello")
    async with asyncio.timeout(20), running_worker(trials.fleet.platform):
        await trials.until(lambda: trials.runs, "the run began")
        trials.write(lambda tx: Jobs(tx, "default").cancel(job_id))
        await settled(trials.fleet.platform)
    hanging.gate.set()
    assert [run.status for run in trials.runs] == ["failed"]
    await trials.until(lambda: hanging.stopped, "what started after all is stopped")


async def lost(trials: Trials, kind: str) -> tuple[str, int]:
    """The wallet of an agent of whose credits some are held for a run that a dead worker has left, and its job."""
    agent = trials.fleet.actor().agent or ""
    own = wallet_of(agent)
    trials.books.do(lambda ledger: ledger.grant(own, 10, "start"))
    job_id = trials.write(lambda tx: Jobs(tx, "default").defer(kind, ARGS))
    held = {"state": "running", "attempt": 1, "lease_ms": 5, "worker": "dead", "losses": 99}
    trials.write(lambda tx: tx.run(sa.update(jobs).where(jobs.c.id == job_id).values(**held)))
    new = NewRun(project_id="prj-1", agent=agent, key="k", job_id=job_id, attempt=1)
    trials.write(lambda tx: SessionRuns(tx, "default").begin(new, 60_000, 4))
    assert trials.books.numbers(own) == (6, 4, 10, 0)
    return own, job_id


@pytest.mark.parametrize("kind", ["messages.deliver", "schedules.execute", "work.run", "workflows.agent_session"])
async def test_a_job_that_is_given_up_holds_nothing_back(trials: Trials, kind: str) -> None:
    own, job_id = await lost(trials, kind)
    async with running_worker(trials.fleet.platform):
        await settled(trials.fleet.platform)
    assert trials.write(lambda tx: Jobs(tx, "default").of(job_id)).state == "failed"
    assert [run.status for run in trials.runs] == ["stalled"]
    assert trials.books.numbers(own) == (10, 0, 10, 0)


async def test_lost_runs_are_found_within_the_hour_though_nobody_starts_a_session(trials: Trials) -> None:
    own, job_id = await lost(trials, "nobody.knows")
    looking = sa.select(jobs).where(jobs.c.kind == END_LOST).order_by(jobs.c.id)
    (found,) = trials.rows(looking)
    assert 0 < found.due_ms - trials.runs[0].started_ms <= 3_660_000
    alive = {"state": "running", "lease_ms": 2**60}
    trials.write(lambda tx: tx.run(sa.update(jobs).where(jobs.c.id == job_id).values(**alive)))
    await look(trials)
    assert [run.status for run in trials.runs] == ["running"]
    trials.write(lambda tx: tx.run(sa.update(jobs).where(jobs.c.id == job_id).values(state="cancelled")))
    await look(trials)
    assert [run.status for run in trials.runs] == ["stalled"]
    assert trials.books.numbers(own) == (10, 0, 10, 0)
    assert [row.state for row in trials.rows(looking)][-1] == "done"


async def look(trials: Trials) -> None:
    """What looks for lost runs does so now; as if it were another hour, it may be asked for again."""
    due = {"due_ms": 0, "key": None}
    waits = (jobs.c.kind == END_LOST, jobs.c.state == "waiting")
    trials.write(lambda tx: tx.run(sa.update(jobs).where(*waits).values(**due)))
    async with running_worker(trials.fleet.platform):
        await trials.until(
            lambda: not trials.rows(sa.select(jobs.c.id).where(*waits, jobs.c.due_ms == 0)), "somebody has looked"
        )

"""An agent at work that is paused is told and then stopped; one that would begin does not, until it is resumed."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from rookery.asks.store import Asks
from rookery.db.tx import Tx
from rookery.jobs.store import Jobs, Row
from rookery.lifecycle import session_runs
from rookery.lifecycle.sessions import Outcome
from rookery.sessions.writing import kept_after
from tests.jobs.working import running_worker, settled
from tests.lifecycle.pause_desk import REASON, PauseDesk
from tests.lifecycle.session_trials import Hanging, Trials

pytestmark = pytest.mark.anyio
GO_ON = "!ask Shall I go on? | yes"
"""The agent waits here until the test has done what it wants to."""
SAID = f"everything was paused by owner: {REASON}"


@pytest.fixture
def trials(make_trials: Callable[..., Trials]) -> Trials:
    return make_trials(pause_grace_s=0.2)


@pytest.fixture
def desk(trials: Trials) -> PauseDesk:
    return PauseDesk(trials.fleet)


def job_of(trials: Trials, job_id: int) -> Row:
    found = trials.database.direct(lambda tx: Jobs(tx, "default").of(job_id))
    assert found is not None
    return found


async def at_work(trials: Trials) -> Row:
    """The run of the session that has begun."""
    return await trials.until(lambda: next((run for run in trials.runs if run.session), None), "an agent is at work")


async def put_off(trials: Trials, job_id: int) -> Row:
    """The job, once it waits for the resume."""
    return await trials.until(lambda: row if (row := job_of(trials, job_id)).waits_for else None, "it is put off")


async def let_go_on(trials: Trials, count: int = 1) -> None:
    """Answer the agents that wait."""

    def answer(tx: Tx) -> None:
        for ask in Asks(tx, "default").page("open", 10):
            Asks(tx, "default").answer(ask.id, "yes", "owner", "test")

    def asked(tx: Tx) -> bool:
        return len(Asks(tx, "default").page("open", 10)) == count

    await trials.until(lambda: trials.database.direct(asked), "they wait")
    trials.write(answer)


def events(trials: Trials, run: Row, *names: str) -> list[Any]:
    kept = trials.database.direct(lambda tx: kept_after(tx, "default", run.key, 0, 1000))
    return [event.data for event in kept if event.name in names]


async def test_nothing_begins_while_it_is_paused_and_it_begins_with_the_resume(trials: Trials, desk: PauseDesk) -> None:
    await desk.pause()
    job_id = trials.defer("!say hello")
    async with running_worker(trials.fleet.platform):
        waiting = await put_off(trials, job_id)
        assert (waiting.error, waiting.failures, list(trials.runs)) == (SAID, 0, [])
        await desk.resume()
        await settled(trials.fleet.platform)
    assert job_of(trials, job_id).state == "done"
    assert [run.status for run in trials.runs] == ["succeeded"]


async def test_an_agent_at_work_is_told_then_stopped_and_begins_again_with_the_resume(
    trials: Trials, desk: PauseDesk
) -> None:
    job_id = trials.defer("!spend 0.5", "!wait 3000")
    async with running_worker(trials.fleet.platform):
        run = await at_work(trials)
        await desk.pause()
        waiting = await put_off(trials, job_id)
        [stopped] = trials.runs
        assert (stopped.status, stopped.error, stopped.cost_micros) == ("cancelled", SAID, 500_000)
        assert (waiting.error, waiting.failures, waiting.losses) == (SAID, 0, 0)
        assert [told["text"] for told in events(trials, run, "system")] == [
            f"{SAID}; the agent only looks on, and is stopped soon"
        ]
        assert [(done["reason"], done["error"]) for done in events(trials, run, "done")] == [
            ("stopped", f"stopped: {SAID}")
        ]
        await desk.resume()
        await trials.until(lambda: len(trials.runs) == 2 and trials.runs[1].session, "it works again")


async def test_while_it_is_given_time_its_tools_are_refused_with_the_reason(make_trials: Callable[..., Trials]) -> None:
    trials = make_trials(pause_grace_s=3000)
    desk = PauseDesk(trials.fleet)
    trials.defer(GO_ON, "!call save_memory {}", "!call ping {}", '!use Bash {"command": "rm -r ."}', "!wait 3000")
    async with running_worker(trials.fleet.platform):
        run = await at_work(trials)
        await desk.pause()
        await let_go_on(trials)
        results = await trials.until(
            lambda: found if len(found := events(trials, run, "tool_result")) == 3 else None, "it tries"
        )
        assert [(each["is_error"], SAID in each["text"]) for each in results] == [
            (True, True), (False, False), (True, True),
        ]  # fmt: skip
        assert trials.runs[0].status == "running"


async def test_a_pause_that_is_taken_back_in_time_counts_for_nothing(make_trials: Callable[..., Trials]) -> None:
    trials = make_trials(pause_grace_s=3000)
    desk = PauseDesk(trials.fleet)
    job_id = trials.defer(GO_ON, '!use Bash {"command": "make"}')
    async with running_worker(trials.fleet.platform):
        run = await at_work(trials)
        await desk.pause()
        await trials.until(lambda: events(trials, run, "system"), "it is told")
        await desk.resume()
        await trials.until(lambda: len(events(trials, run, "system")) == 2, "it is told of that too")
        await let_go_on(trials)
        await settled(trials.fleet.platform)
    assert (job_of(trials, job_id).state, [each.status for each in trials.runs]) == ("done", ["succeeded"])
    assert [told["text"] for told in events(trials, run, "system")][1:] == ["it was resumed, and the agent goes on"]
    assert [each["is_error"] for each in events(trials, run, "tool_result")] == [False]


async def test_what_ends_by_itself_because_it_was_told_is_not_taken_for_done(
    make_trials: Callable[..., Trials],
) -> None:
    trials = make_trials(pause_grace_s=3000)
    desk = PauseDesk(trials.fleet)
    job_id = trials.defer(GO_ON, "!say I was told to stop")
    async with running_worker(trials.fleet.platform):
        await at_work(trials)
        await desk.pause()
        await let_go_on(trials)
        await put_off(trials, job_id)
    assert [(run.status, run.error) for run in trials.runs] == [("cancelled", SAID)]


@pytest.mark.parametrize(("paused", "held"), [("ada", ["ada"]), ("bob", ["bob"])])
async def test_only_who_is_paused_is_stopped(trials: Trials, desk: PauseDesk, paused: str, held: list[str]) -> None:
    for name in ("ada", "bob"):
        await trials.call("create_agent", name=name)
    made = {name: trials.defer(GO_ON, agent=name) for name in ("ada", "bob")}
    async with running_worker(trials.fleet.platform):
        await trials.until(lambda: len([run for run in trials.runs if run.session]) == 2, "both are at work")
        await desk.pause(agent=paused)
        await put_off(trials, made[paused])
        await let_go_on(trials)
        await settled(trials.fleet.platform)
    assert [name for name, job_id in made.items() if job_of(trials, job_id).state != "done"] == held


@pytest.mark.parametrize("where", ["start", "stop"])
async def test_a_runtime_that_does_not_obey_is_not_waited_for(
    trials: Trials, desk: PauseDesk, monkeypatch: pytest.MonkeyPatch, where: str
) -> None:
    monkeypatch.setattr(session_runs, "STOP_S", 0.2)
    hanging = Hanging(where)
    trials.use(hanging)
    job_id = trials.defer("anything")
    async with running_worker(trials.fleet.platform):
        await trials.until(lambda: trials.runs, "it begins")
        await desk.pause()
        await put_off(trials, job_id)
        assert [(run.status, run.error) for run in trials.runs] == [("cancelled", SAID)]
        hanging.gate.set()
        await trials.until(lambda: hanging.stopped, "what came late is stopped as well")


async def test_a_job_that_acts_as_a_paused_agent_is_put_off_before_it_does_anything(
    trials: Trials, desk: PauseDesk
) -> None:
    class Never:
        async def start_session(self, *given: Any, **how: Any) -> Any:
            raise AssertionError("nothing is started")

    trials.use(Never())
    await trials.call("create_agent", name="ada")
    await desk.pause(agent="ada")
    job_id = trials.defer("anything", agent="ada")
    async with running_worker(trials.fleet.platform):
        await put_off(trials, job_id)
    assert list(trials.runs) == []


async def test_a_resume_between_the_look_and_the_putting_off_is_not_missed(trials: Trials, desk: PauseDesk) -> None:
    """The agent is told when it begins, and resumed before its job is put back: nobody will release that job again."""

    class Resuming:
        id = "ses-resuming"

        async def start_session(self, *given: Any, **how: Any) -> "Resuming":
            return self

        async def wait(self) -> Outcome:
            return Outcome("done") if resumed else await asyncio.get_running_loop().create_future()

        async def stop(self) -> None:
            await desk.resume()
            resumed.append(True)

    resumed: list[bool] = []
    trials.use(Resuming())
    job_id = trials.defer("anything")
    async with running_worker(trials.fleet.platform):
        await at_work(trials)
        await desk.pause()
        await trials.until(lambda: job_of(trials, job_id).state == "done", "it is done without another resume")
    assert [run.status for run in trials.runs] == ["cancelled", "succeeded"]

"""What is paused in one process is stopped in every other, begins nowhere, and goes on with the resume."""

import asyncio
import subprocess
import sys
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from tests.lifecycle import session_trials
from tests.lifecycle.pause_desk import REASON, PauseDesk
from tests.lifecycle.session_trials import LIMIT_S, Trials
from tests.lifecycle.test_paused_sessions import at_work, events, job_of, let_go_on, put_off
from tests.platform_fixtures import Fleet
from tests.warm import start

pytestmark = pytest.mark.anyio
ROOT = Path(__file__).parents[2]
SAID = f"everything was paused by owner: {REASON}"


@pytest.fixture
def trials(database_url: str, make_fleet: Callable[..., Fleet]) -> Trials:
    return Trials(make_fleet(database_url, extra={"trial": session_trials}))


@asynccontextmanager
async def elsewhere(trials: Trials) -> AsyncGenerator[None]:
    """A worker process, ended with the block."""
    settings = trials.fleet.platform.settings
    command = [sys.executable, "-m", "tests.lifecycle.paused_worker", settings.database_url, settings.home]
    process = start(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        assert await asyncio.to_thread(process.stdout.readline) == "up\n"
        yield
    finally:
        process.kill()
        process.wait(LIMIT_S)
        process.stdout.close()


async def test_an_agent_in_another_process_is_told_stopped_and_started_again(trials: Trials) -> None:
    desk = PauseDesk(trials.fleet)
    first = trials.defer("!ask Shall I go on? | yes", "!say well")
    async with elsewhere(trials):
        run = await at_work(trials)
        await desk.pause()
        waiting = await put_off(trials, first)
        assert (waiting.error, waiting.failures, waiting.losses) == (SAID, 0, 0)
        assert [(each.status, each.error) for each in trials.runs] == [("cancelled", SAID)]
        assert [told["text"].partition(";")[0] for told in events(trials, run, "system")] == [SAID]
        second = trials.defer("!say me too")
        assert (await put_off(trials, second)).error == SAID
        await desk.resume()
        await let_go_on(trials)
        for job_id in (first, second):
            await trials.until(lambda job_id=job_id: job_of(trials, job_id).state == "done", "both are done")
    assert sorted(each.status for each in trials.runs) == ["cancelled", "succeeded", "succeeded"]


async def test_what_was_paused_before_a_process_started_is_paused_in_it(trials: Trials) -> None:
    desk = PauseDesk(trials.fleet)
    await desk.pause(agent="default")
    job_id = trials.defer("!say hello")
    async with elsewhere(trials):
        await put_off(trials, job_id)
        assert list(trials.runs) == []
        await desk.resume(agent="default")
        await trials.until(lambda: job_of(trials, job_id).state == "done", "it is done")

"""What is due while its agent is paused is done with the resume, once, and has failed for nobody."""

import pytest

from tests.domains.schedules.almanac import Almanac
from tests.jobs.working import running_worker, settled
from tests.lifecycle.pause_desk import PauseDesk

ACTIONS = [{"type": "star_repo", "repos": ["a/b"]}, {"type": "custom", "prompt": "look around"}]


@pytest.mark.parametrize("action", ACTIONS, ids=["a call", "a session"])
async def test_an_execution_waits_for_the_resume(almanac: Almanac, action: dict[str, object]) -> None:
    desk = PauseDesk(almanac.fleet)
    await desk.pause()
    schedule = await almanac.make(almanac.owner, schedule_actions=[action])
    almanac.due(schedule)
    await almanac.work()
    [execution] = almanac.executions()
    assert (execution.status, almanac.deeds.done, almanac.runtime.asked) == ("running", [], [])
    async with running_worker(almanac.platform):
        await desk.resume()
        await settled(almanac.platform)
    [execution] = almanac.executions()
    assert execution.status == "completed"
    assert len(almanac.deeds.done) + len(almanac.runtime.asked) == 1

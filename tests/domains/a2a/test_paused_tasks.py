"""A task for an agent that is paused waits for the resume, and its sender is told of no failure."""

from tests.domains.a2a.outpost import Outpost
from tests.domains.a2a.test_tasks import submit, task
from tests.domains.messages.post_office import until
from tests.jobs.working import running_worker, settled
from tests.lifecycle.pause_desk import PauseDesk

PUT_OFF = "SELECT 1 FROM jobs WHERE waits_for IS NOT NULL"


async def test_a_task_of_a_paused_agent_is_done_after_the_resume(outpost: Outpost) -> None:
    desk = PauseDesk(outpost.fleet)
    submit(outpost, "!say done")
    await desk.pause()
    async with running_worker(outpost.platform):
        await until(lambda: outpost.platform.database.direct(lambda tx: tx.first(PUT_OFF)), "it is put off")
        assert (task(outpost).state, outpost.runtime.asked) == ("working", [])
        await desk.resume()
        await settled(outpost.platform)
    assert (task(outpost).state, task(outpost).answer) == ("completed", "done")

"""A message to a paused agent waits for the resume; nobody is blamed, and the answer comes then."""

import asyncio

from tests.domains.messages.post_office import PostOffice, until
from tests.jobs.working import running_worker
from tests.lifecycle.pause_desk import PauseDesk


async def test_a_message_to_a_paused_agent_is_answered_after_the_resume(office: PostOffice) -> None:
    desk = PauseDesk(office.fleet)
    await desk.pause(agent="bob")
    async with running_worker(office.platform):
        sending = asyncio.create_task(office.post("bob", "!say tea at four"))
        waiting = "SELECT 1 FROM jobs WHERE waits_for IS NOT NULL"
        await until(lambda: office.platform.database.direct(lambda tx: tx.first(waiting)), "it is put off")
        assert (office.runtime.asked, sending.done()) == ([], False)
        await desk.resume(agent="bob")
        answer = await asyncio.wait_for(sending, 30)
    assert "tea at four" in str(answer)
    assert len(office.runtime.asked) == 1

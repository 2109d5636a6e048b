"""A node whose agent is paused waits for the resume, and one that was at work begins anew."""

from collections.abc import Callable

import pytest

from tests.domains.workflows.workshop import Workshop, chain, node
from tests.lifecycle.pause_desk import PauseDesk
from tests.platform_fixtures import Fleet


@pytest.fixture
def shop(database_url: str, make_fleet: Callable[..., Fleet]) -> Workshop:
    return Workshop(make_fleet(database_url, extra={}, pause_grace_s=0.1))


async def test_a_node_at_work_is_stopped_by_a_pause_and_done_after_the_resume(shop: Workshop) -> None:
    desk = PauseDesk(shop.fleet)
    run_id = await shop.start(shop.owner, chain(node("a", "agent_session", prompt="wait for it", maxTurns=1)), {})
    async with shop.working():
        await shop.until(lambda: bool(shop.talks.all))
        await desk.pause()
        await shop.until(lambda: shop.talks.all[0].stopped)
        await desk.resume()
        await shop.until(lambda: len(shop.talks.all) == 2)
        shop.talks.all[1].go.set()
        await shop.until("completed", run_id)

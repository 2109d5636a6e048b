"""A work task whose agent is paused stops where it is and goes on from there, with no attempt used up."""

from collections.abc import Callable
from pathlib import Path

import pytest

from rookery.asks.store import Asks
from rookery.lifecycle.run_tables import agent_runs
from tests.domains.messages.post_office import until
from tests.domains.work.workshop import Workshop
from tests.jobs.working import running_worker, settled
from tests.lifecycle.pause_desk import PauseDesk
from tests.platform_fixtures import Fleet

pytestmark = pytest.mark.anyio
PUT_OFF = "SELECT 1 FROM jobs WHERE waits_for IS NOT NULL"


@pytest.fixture
def workshop(database_url: str, make_fleet: Callable[..., Fleet], tmp_path: Path) -> Workshop:
    return Workshop(make_fleet(database_url, extra={}, pause_grace_s=0.1), tmp_path)


async def put_off(workshop: Workshop) -> None:
    database = workshop.fleet.platform.database
    await until(lambda: database.direct(lambda tx: tx.first(PUT_OFF)), "the task is put off")


async def test_nobody_begins_a_task_while_the_project_is_paused(workshop: Workshop) -> None:
    await workshop.open()
    desk = PauseDesk(workshop.fleet)
    made = await workshop.create("!write a.txt a")
    await desk.pause(project="shop")
    async with running_worker(workshop.fleet.platform):
        await put_off(workshop)
        assert (workshop.row(made.id).status, workshop.worktrees.exists()) == ("pending", False)
        await desk.resume(project="shop")
        await settled(workshop.fleet.platform)
    assert workshop.row(made.id).status == "completed"


async def test_a_task_at_work_is_stopped_and_goes_on_in_its_tree(workshop: Workshop) -> None:
    await workshop.open()
    desk = PauseDesk(workshop.fleet)
    script = ("!append n.txt line", "!commit step", "!ask Shall I go on? | yes")
    made = await workshop.create("\n".join(script))
    async with running_worker(workshop.fleet.platform):
        await until(lambda: workshop.row(made.id).session_id, "it works")
        await until(lambda: _asks(workshop), "it asks")
        await desk.pause()
        await put_off(workshop)
        stopped = workshop.row(made.id)
        assert (stopped.status, stopped.iteration) == ("running", 1)
        await desk.resume()
        await until(lambda: _asks(workshop), "it asks again")
        await _answer(workshop)
        await settled(workshop.fleet.platform)
    done = workshop.row(made.id)
    assert (done.status, done.iteration, done.error) == ("completed", 1, None)
    assert workshop.shown(done.branch_name, "n.txt") == "line\nline"
    runs = workshop.rows(agent_runs.select().order_by(agent_runs.c.created_ms))
    assert [run.status for run in runs] == ["cancelled", "succeeded"]


def _asks(workshop: Workshop) -> list[str]:
    return [ask.id for ask in workshop.fleet.platform.database.direct(lambda tx: Asks(tx, "default").page("open", 9))]


async def _answer(workshop: Workshop) -> None:
    for ask_id in _asks(workshop):
        workshop.fleet.platform.database.direct(
            lambda tx, ask_id=ask_id: Asks(tx, "default").answer(ask_id, "yes", "owner", "test"), write=True
        )

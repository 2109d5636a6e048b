"""cancel_work_task: a task that is not wanted any more ends at once, and nobody works on it afterwards."""

import asyncio
import time

import pytest
import sqlalchemy as sa

from rookery.core.errors import Conflict, NotFound
from rookery.jobs.tables import jobs
from tests.domains.work.workshop import Workshop, git
from tests.jobs.working import running_worker, settled


@pytest.mark.anyio
async def test_a_task_of_another_agent_is_not_found_and_goes_on(workshop: Workshop) -> None:
    await workshop.open()
    made = await workshop.create()
    for other in (await workshop.new_agent("eve"), workshop.stranger):
        with pytest.raises(NotFound):
            await workshop.call(other, "cancel_work_task", task_id=made.id)
    assert workshop.row(made.id).status == "pending"


@pytest.mark.anyio
async def test_cancelling_twice_is_a_conflict(workshop: Workshop) -> None:
    await workshop.open()
    made = await workshop.create()
    await workshop.call(workshop.agent(), "cancel_work_task", task_id=made.id)
    with pytest.raises(Conflict, match="the work task is failed already"):
        await workshop.call(workshop.agent(), "cancel_work_task", task_id=made.id)


@pytest.mark.anyio
async def test_a_completed_task_stays_completed(workshop: Workshop) -> None:
    await workshop.open()
    task = await workshop.work("!write a.txt x")
    with pytest.raises(Conflict, match="is completed and cannot become failed"):
        await workshop.call(workshop.person(), "cancel_work_task", task_id=task.id)


@pytest.mark.anyio
async def test_a_task_that_waits_never_starts(workshop: Workshop) -> None:
    await workshop.open()
    made = await workshop.create("!write a.txt x")
    shown = await workshop.call(workshop.person(), "cancel_work_task", task_id=made.id)
    assert (shown.status, shown.error) == ("failed", "cancelled by owner")
    await workshop.done()
    assert [(row.kind, row.state) for row in workshop.rows(sa.select(jobs).order_by(jobs.c.id))] == [
        ("work.run", "cancelled"),
        ("work.end", "done"),
    ]
    assert git(workshop.repository, "branch", "--list", "agent/*") == ""


@pytest.mark.anyio
async def test_a_task_under_way_is_stopped_and_what_it_did_is_kept(workshop: Workshop) -> None:
    await workshop.open()
    made = await workshop.create("!write a.txt x\n!wait 600\n!write b.txt y")
    async with running_worker(workshop.fleet.platform):
        await written(workshop, made.id, "a.txt")
        started = time.monotonic()
        await workshop.call(workshop.agent(), "cancel_work_task", task_id=made.id)
        await settled(workshop.fleet.platform)
        assert time.monotonic() - started < 10
    row = workshop.row(made.id)
    assert (row.status, row.error, row.worktree_dir) == ("failed", "cancelled by default", None)
    assert workshop.shown(row.branch_name, "a.txt") == "x"
    assert not (workshop.worktrees / made.id).exists()
    states = {row.kind: row.state for row in workshop.rows(sa.select(jobs).where(jobs.c.kind.like("work.%")))}
    assert states == {"work.run": "cancelled", "work.end": "done"}


@pytest.mark.anyio
async def test_of_two_who_cancel_at_once_one_is_told_so(workshop: Workshop) -> None:
    await workshop.open()
    made = await workshop.create()
    calls = (workshop.call(workshop.agent(), "cancel_work_task", task_id=made.id) for _ in range(2))
    answers = await asyncio.gather(*calls, return_exceptions=True)
    assert sorted(type(answer).__name__ for answer in answers) == ["Conflict", "WorkTask"]


async def written(workshop: Workshop, task_id: str, name: str) -> None:
    """Wait until the agent has written a file."""
    deadline = time.monotonic() + 30
    while not (workshop.worktrees / task_id / name).exists():
        assert time.monotonic() < deadline
        await asyncio.sleep(0.01)

"""Tasks and their jobs: ends that come early, workers that die, and rows that are old."""

import asyncio

import pytest
import sqlalchemy as sa

from rookery.core.errors import Conflict
from rookery.domains.a2a import inbound
from rookery.domains.a2a.inbound import Incoming
from rookery.domains.a2a.jobs import task_key
from rookery.domains.a2a.store import DAY_MS, Row, Tasks
from rookery.domains.a2a.tables import tasks
from rookery.jobs.store import Jobs
from rookery.lifecycle.run_tables import agent_runs
from rookery.lifecycle.sessions import Outcome
from tests.domains.a2a.outpost import Outpost
from tests.domains.messages.post_office import Gated
from tests.jobs.working import running_worker, settled


def submit(outpost: Outpost, text: str, **more: object) -> Row:
    incoming = Incoming(text=text, **more)  # pyright: ignore[reportArgumentType]
    calls = outpost.platform.calls
    return outpost.platform.database.direct(lambda tx: inbound.submit(tx, calls, outpost.agent(), incoming), write=True)


def task(outpost: Outpost) -> Row:
    (row,) = outpost.rows("tasks")
    return row


async def test_a_task_that_nobody_has_begun_can_be_cancelled(outpost: Outpost) -> None:
    row = submit(outpost, "!say hi")
    cancelled = outpost.platform.database.direct(lambda tx: inbound.cancel(tx, outpost.agent(), row.id), write=True)
    assert cancelled.state == "canceled"
    async with running_worker(outpost.platform):
        await settled(outpost.platform)
    assert outpost.runtime.asked == []
    with pytest.raises(Conflict, match="the task is canceled"):
        outpost.platform.database.direct(lambda tx: inbound.cancel(tx, outpost.agent(), row.id), write=True)


async def test_a_worker_that_goes_leaves_the_task_to_the_next(outpost: Outpost) -> None:
    gated = Gated(Outcome("done", output="never"))
    outpost.use(gated)
    row = submit(outpost, "!say done")
    async with running_worker(outpost.platform):
        await asyncio.wait_for(gated.started.wait(), 20)
    assert task(outpost).state == "working"
    outpost.use(outpost.runtime)  # pyright: ignore[reportArgumentType]
    async with running_worker(outpost.platform):
        await settled(outpost.platform)
    assert (task(outpost).state, task(outpost).answer) == ("completed", "done")
    runs = outpost.platform.database.direct(lambda tx: tx.all(sa.select(agent_runs).order_by(agent_runs.c.created_ms)))
    assert [(run.kind, run.status, run.key) for run in runs] == [
        ("a2a", "cancelled", task_key(row.id)),
        ("a2a", "succeeded", task_key(row.id)),
    ]


@pytest.mark.parametrize(
    ("outcome", "why"),
    [
        (Outcome("done", output="  "), "the session ended without an answer"),
        (Outcome("failed", error="secret"), "the session of default failed"),
    ],
)
async def test_an_end_without_an_answer_is_a_failure(outpost: Outpost, outcome: Outcome, why: str) -> None:
    gated = Gated(outcome)
    gated.gate.set()
    outpost.use(gated)
    submit(outpost, "x")
    async with running_worker(outpost.platform):
        await settled(outpost.platform)
    assert (task(outpost).state, task(outpost).error) == ("failed", why)


async def test_an_agent_that_is_gone_fails_its_tasks(outpost: Outpost) -> None:
    submit(outpost, "x")
    outpost.change(sa.update(tasks).values(agent_id="agt-gone"))
    async with running_worker(outpost.platform):
        await settled(outpost.platform)
    assert (task(outpost).state, task(outpost).error) == ("failed", "default cannot do it here")


async def test_a_job_that_is_cancelled_by_hand_cancels_its_task(outpost: Outpost) -> None:
    gated = Gated(Outcome("done", output="never"))
    outpost.use(gated)
    row = submit(outpost, "x")
    async with running_worker(outpost.platform):
        await asyncio.wait_for(gated.started.wait(), 20)
        await outpost.platform.database.change(lambda tx: Jobs(tx, "default").cancel_key(task_key(row.id)))
        await settled(outpost.platform)
    assert task(outpost).state == "canceled"


def test_an_answer_is_kept_as_far_as_both_databases_can(outpost: Outpost) -> None:
    row = submit(outpost, "x")
    outpost.platform.database.direct(
        lambda tx: Tasks(tx, "default").end(row.id, "completed", answer="a\0b\ud800" + "c" * 200_000), write=True
    )
    assert task(outpost).answer == "ab?" + "c" * 99_997
    again = outpost.platform.database.direct(lambda tx: Tasks(tx, "default").end(row.id, "failed"), write=True)
    assert again is None


def test_tasks_of_long_ago_are_forgotten_once_they_are_over(outpost: Outpost) -> None:
    over, waits = submit(outpost, "over"), submit(outpost, "waits")
    outpost.platform.database.direct(lambda tx: Tasks(tx, "default").end(over.id, "failed"), write=True)
    outpost.change(sa.update(tasks).values(created_ms=tasks.c.created_ms - 91 * DAY_MS, limit_ms=None))
    new = submit(outpost, "new")
    assert {row.id for row in outpost.rows("tasks")} == {waits.id, new.id}


def test_depth_decides_which_places_a_task_may_take(outpost: Outpost) -> None:
    for depth in (None, 2, 3):
        submit(outpost, f"at {depth}", depth=depth)
    kinds = outpost.platform.database.direct(lambda tx: [row.kind for row in Jobs(tx, "default").page()])
    assert kinds[::-1] == ["a2a.run_task", "a2a.run_task", "a2a.run_task_deep"]

"""work_task nodes: one task however often the worker dies, and waiting for it takes no worker's room."""

from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from rookery.asks.tables import asks
from rookery.domains.work.tables import work_tasks
from rookery.jobs.tables import jobs
from rookery.lifecycle import session_calls
from tests.domains.workflows.workshop import Workshop, chain, node


@pytest.fixture
async def shop(workshop: Workshop, tmp_path: Path) -> Workshop:
    """A workshop with a project that has a folder."""
    await workshop.fleet.call(workshop.owner, "create_project", slug="shop", path=str(tmp_path))
    return workshop


def task(**config: Any) -> dict[str, Any]:
    return chain(node("t", "work_task", **({"description": "mend {{what}}", "projectId": "shop"} | config)))


def tasks(shop: Workshop) -> list[Any]:
    return list(shop.rows(sa.select(work_tasks).order_by(work_tasks.c.created_ms)))


def end_task(shop: Workshop, task_id: str, status: str, error: str | None = None) -> None:
    shop.change(sa.update(work_tasks).where(work_tasks.c.id == task_id).values(status=status, error=error))
    hurry(shop)


def hurry(shop: Workshop) -> None:
    """Whoever sleeps before it looks again looks now."""
    mine = (jobs.c.kind.like("workflows.%"), jobs.c.state == "waiting")
    shop.change(sa.update(jobs).where(*mine).values(due_ms=0))


def pending(shop: Workshop, key: str = "%") -> bool:
    """Whether a job of workflows with such a key waits or runs."""
    mine = (jobs.c.kind.like("workflows.%"), jobs.c.key.like(key), jobs.c.state.in_(["waiting", "running"]))
    return bool(shop.rows(sa.select(jobs.c.id).where(*mine)))


async def test_a_project_without_a_folder_fails_the_node(shop: Workshop) -> None:
    run_id = await shop.start(shop.owner, task(projectId="default"), {"what": "x"})
    assert "has no folder" in (await shop.ended(run_id, "failed"))["error"]


async def test_a_node_makes_a_task_and_does_not_wait_for_it(shop: Workshop) -> None:
    ada = await shop.agent("ada")
    run = await shop.ended(await shop.start(ada, task(), {"what": "the door"}))
    (made,) = tasks(shop)
    assert (made.description, made.agent_id) == ("mend the door", ada.agent)
    told = {"workTaskId": made.id, "branchName": made.branch_name, "status": "pending"}
    assert run["nodes"][1]["output"] == told
    assert run["nodes"][1]["work_task_id"] == made.id


async def test_a_node_started_over_makes_no_second_task(shop: Workshop) -> None:
    run_id = await shop.start(shop.owner, task(waitForCompletion=True), {"what": "x"})
    async with shop.working():
        await shop.until(lambda: len(tasks(shop)) == 1)
        await shop.until(lambda: pending(shop, "await:%"))
        again = sa.update(jobs).where(jobs.c.kind == "workflows.work_task").values(state="waiting", ended_ms=None)
        shop.change(again)
        hurry(shop)
        await shop.until(lambda: bool(shop.rows(sa.select(jobs).where(jobs.c.key.like("node:%"), jobs.c.attempt == 2))))
        end_task(shop, tasks(shop)[0].id, "completed")
        await shop.until("completed", run_id)
    assert len(tasks(shop)) == 1


async def test_a_node_waits_for_its_task_without_a_workers_room(shop: Workshop) -> None:
    run_id = await shop.start(shop.owner, task(waitForCompletion=True), {"what": "x"})
    async with shop.working(concurrency=1):
        await shop.until(lambda: len(tasks(shop)) == 1)
        await shop.until(lambda: not shop.rows(sa.select(jobs).where(jobs.c.state == "running")))
        assert (await shop.status(run_id))["current"] == ["t"]
        end_task(shop, tasks(shop)[0].id, "completed")
        await shop.until("completed", run_id)
    assert (await shop.status(run_id))["nodes"][1]["output"]["status"] == "completed"


async def test_a_task_that_fails_is_made_anew_and_then_fails_the_run(shop: Workshop) -> None:
    run_id = await shop.start(shop.owner, task(waitForCompletion=True, retries=1, retryDelayMs=0), {"what": "x"})
    async with shop.working():
        for number in (1, 2):
            await shop.until(lambda number=number: len(tasks(shop)) == number)
            await shop.until(lambda: pending(shop, "await:%"))
            end_task(shop, next(row.id for row in tasks(shop) if row.status == "pending"), "failed", "it broke")
        await shop.until("failed", run_id)
    assert "it broke" in (await shop.status(run_id))["error"]
    assert len({row.source_id for row in tasks(shop)}) == 2


async def test_a_cancelled_run_looks_at_its_task_no_more(shop: Workshop) -> None:
    run_id = await shop.start(shop.owner, task(waitForCompletion=True), {"what": "x"})
    async with shop.working():
        await shop.until(lambda: pending(shop, "await:%"))
        await shop.do(shop.owner, "cancel", run_id=run_id)
        await shop.until(lambda: not pending(shop))
    assert (await shop.status(run_id))["status"] == "cancelled"


async def waiting_at_the_gate(shop: Workshop, monkeypatch: pytest.MonkeyPatch) -> tuple[str, Any]:
    """A run whose node needs an approval. A call is held, and comes back, as long as the test takes."""
    monkeypatch.setattr(session_calls, "AGAIN_S", 0.02)
    ada = await shop.agent("ada")
    run_id = await shop.start(ada, task(), {"what": "the door"})
    await shop.fleet.call(shop.owner, "update_agent", agent="ada", mode="ask")
    return run_id, sa.select(asks).where(asks.c.kind == "approval")


async def test_a_node_comes_back_to_the_gate_until_its_task_is_approved(
    shop: Workshop, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_id, asking = await waiting_at_the_gate(shop, monkeypatch)
    async with shop.working():
        await shop.until(lambda: bool(shop.rows(asking)))
        await shop.fleet.call(shop.owner, "answer_ask", ask_id=shop.rows(asking)[0].id, answer="approve")
        await shop.until("completed", run_id)
    assert [made.description for made in tasks(shop)] == ["mend the door"]


async def test_the_ask_of_a_node_ends_with_its_run(shop: Workshop, monkeypatch: pytest.MonkeyPatch) -> None:
    run_id, asking = await waiting_at_the_gate(shop, monkeypatch)
    async with shop.working():
        await shop.until(lambda: bool(shop.rows(asking)))
        await shop.do(shop.owner, "cancel", run_id=run_id)
        await shop.until(lambda: [row.status for row in shop.rows(asking)] == ["withdrawn"])
    assert tasks(shop) == []

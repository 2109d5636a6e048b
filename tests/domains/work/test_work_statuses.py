from tests.domains.work.workshop import Workshop
from tests.statuses import statuses_of


async def test_a_task_is_created_with_one_status(workshop: Workshop) -> None:
    await workshop.open()
    heard = statuses_of(workshop.fleet)
    task, again = [await workshop.create(source_id="the same") for _ in range(2)]
    assert task.id == again.id
    assert heard["create_work_task"] == [f"work task {task.id} is pending"] * 2

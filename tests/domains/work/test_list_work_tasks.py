"""list_work_tasks: an agent's own tasks, newest first; for people everybody's."""

import pytest

from rookery.core.errors import InvalidParams
from tests.domains.work.workshop import Workshop


@pytest.mark.anyio
@pytest.mark.parametrize("arguments", [{"status": "done"}, {"limit": 0}, {"limit": 51}, {"agent_id": "x"}])
async def test_unknown_states_and_limits_are_refused(workshop: Workshop, arguments: dict[str, object]) -> None:
    with pytest.raises(InvalidParams):
        await workshop.call(workshop.fleet.owner, "list_work_tasks", **arguments)


@pytest.mark.anyio
async def test_an_agent_sees_only_its_own(workshop: Workshop) -> None:
    await workshop.open()
    ada = await workshop.new_agent("ada")
    mine = [(await workshop.create(f"task {number}", ada)).id for number in range(3)]
    other = await workshop.create()
    assert [task["id"] for task in (await workshop.call(ada, "list_work_tasks")).tasks] == mine[::-1]
    everybody = (await workshop.call(workshop.person("default"), "list_work_tasks")).tasks
    assert {task["id"] for task in everybody} == {*mine, other.id}
    assert (await workshop.call(workshop.stranger, "list_work_tasks")).tasks == []


@pytest.mark.anyio
async def test_tasks_of_a_closed_project_are_not_listed(workshop: Workshop) -> None:
    await workshop.open()
    await workshop.create()
    await workshop.call(workshop.fleet.owner, "set_project_members", project="shop", agents=[])
    assert (await workshop.call(workshop.agent(project="default"), "list_work_tasks")).tasks == []


@pytest.mark.anyio
async def test_one_state_and_a_limit_can_be_asked_for(workshop: Workshop) -> None:
    await workshop.open()
    first = await workshop.create("x" * 300)
    await workshop.create()
    await workshop.call(workshop.agent(), "cancel_work_task", task_id=first.id)
    failed = (await workshop.call(workshop.agent(), "list_work_tasks", status="failed")).tasks
    assert [(task["id"], len(task["description"])) for task in failed] == [(first.id, 201)]
    assert len((await workshop.call(workshop.agent(), "list_work_tasks", limit=1)).tasks) == 1

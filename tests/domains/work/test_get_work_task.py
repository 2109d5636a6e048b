"""get_work_task: its own agent and people see a task, nobody else."""

from dataclasses import replace

import pytest

from rookery.core.errors import InvalidParams, NotFound
from tests.domains.work.workshop import Workshop


@pytest.mark.anyio
async def test_a_task_of_another_agent_tenant_or_closed_project_is_not_found(workshop: Workshop) -> None:
    await workshop.open()
    made = await workshop.create()
    outsider = replace(workshop.agent(), kind="external", agent=None, scopes=frozenset({"work:read"}))
    for other in (await workshop.new_agent("eve"), workshop.stranger, outsider):
        with pytest.raises(NotFound, match=f"there is no work task {made.id}"):
            await workshop.call(other, "get_work_task", task_id=made.id)
    await workshop.call(workshop.fleet.owner, "set_project_members", project="shop", agents=[])
    with pytest.raises(NotFound):
        await workshop.call(workshop.agent(project="default"), "get_work_task", task_id=made.id)


@pytest.mark.anyio
@pytest.mark.parametrize("task_id", ["wtk-0", "work", "w" * 200])
async def test_an_id_that_no_task_has_is_not_found(workshop: Workshop, task_id: str) -> None:
    with pytest.raises(NotFound, match="there is no work task"):
        await workshop.call(workshop.fleet.owner, "get_work_task", task_id=task_id)
    with pytest.raises(InvalidParams):
        await workshop.call(workshop.fleet.owner, "get_work_task", task_id="")


@pytest.mark.anyio
async def test_its_agent_and_people_see_all_of_it(workshop: Workshop) -> None:
    await workshop.open()
    made = await workshop.create("fix the login", source_id="mine")
    seen = await workshop.call(workshop.agent(), "get_work_task", task_id=made.id)
    assert (seen.status, seen.description, seen.source_id) == ("pending", "fix the login", "mine")
    assert (seen.branch_name, seen.iteration, seen.error) == (made.branch_name, 0, None)
    assert (await workshop.call(workshop.person("default"), "get_work_task", task_id=made.id)).id == made.id

"""create_work_task: who may have work done, where, and how often in a day."""

import asyncio
from dataclasses import replace

import pytest
import sqlalchemy as sa

from rookery.core.errors import InvalidParams, NotFound, PermissionDenied, RateLimited, ValidationFailed
from rookery.core.lint import lint, tokens
from rookery.domains.work.tables import work_days, work_tasks
from rookery.jobs.tables import jobs
from tests.domains.work.workshop import Workshop

MESSAGE = "Rate limit exceeded: maximum {} work tasks per day."


@pytest.mark.anyio
async def test_a_project_without_a_folder_is_refused(workshop: Workshop) -> None:
    with pytest.raises(ValidationFailed, match="project default has no folder to work in"):
        await workshop.create(actor=workshop.agent(project="default"))
    assert (workshop.count(), workshop.count(jobs), workshop.count(work_days)) == (0, 0, 0)


@pytest.mark.anyio
async def test_an_unknown_a_foreign_and_a_closed_project_are_not_found(workshop: Workshop) -> None:
    await workshop.open()
    with pytest.raises(NotFound, match="there is no project nowhere"):
        await workshop.create(project_id="nowhere")
    await workshop.call(workshop.fleet.owner, "create_project", slug="secret", path=str(workshop.repository))
    await workshop.call(workshop.fleet.owner, "set_project_members", project="secret", agents=[])
    with pytest.raises(NotFound, match="there is no project secret"):
        await workshop.create(project_id="secret")
    shop = (await workshop.call(workshop.fleet.owner, "list_projects")).projects[-1]
    with pytest.raises(NotFound):
        await workshop.create(actor=workshop.stranger, project_id=shop.id)
    assert workshop.count() == 0


@pytest.mark.anyio
@pytest.mark.parametrize(
    "arguments",
    [
        {"description": " \n"},
        {"description": "x" * 20_001},
        {"description": "x", "source_id": ""},
        {"description": "x", "project_id": "p" * 201},
        {"description": "x", "agent": "ada"},
        {"description": "a\0b"},
    ],
)
async def test_bad_arguments_are_refused(workshop: Workshop, arguments: dict[str, str]) -> None:
    await workshop.open()
    with pytest.raises(InvalidParams):
        await workshop.call(workshop.agent(), "create_work_task", **arguments)
    assert workshop.count() == 0


@pytest.mark.anyio
async def test_whoever_is_no_agent_of_ours_cannot_have_one_work(workshop: Workshop) -> None:
    await workshop.open()
    outsider = replace(workshop.agent(), kind="external", agent=None, scopes=frozenset({"work:create"}))
    with pytest.raises(PermissionDenied, match="this caller is none") as refusal:
        await workshop.create(actor=outsider)
    assert refusal.value.layer == "principal"


@pytest.mark.anyio
async def test_a_task_waits_with_its_branch_named(workshop: Workshop) -> None:
    await workshop.open()
    made = await workshop.create("  Fix the login: it fails for Ada  ")
    assert made.status == "pending"
    assert made.branch_name.startswith("agent/default/fix-the-login-it-fails-for-ada-")
    row = workshop.row(made.id)
    assert (row.description, row.iteration, row.source) == ("Fix the login: it fails for Ada", 0, "stdio")
    (job,) = workshop.rows(sa.select(jobs))
    assert (job.kind, job.key, job.lock_key) == ("work.run", f"work:{made.id}", f"work:{row.project_id}")


@pytest.mark.anyio
async def test_the_seeds_spelling_and_the_slug_of_another_project_work(workshop: Workshop) -> None:
    await workshop.open()
    made = await workshop.call(
        workshop.agent(project="default"), "corvid_create_work_task", description="x", project_id="SHOP"
    )
    assert workshop.row(made.id).status == "pending"


@pytest.mark.anyio
async def test_for_a_person_the_default_agent_works(workshop: Workshop) -> None:
    await workshop.open()
    made = await workshop.create(actor=workshop.person())
    assert workshop.row(made.id).agent_id == workshop.agent().agent
    assert workshop.row(made.id).requester["kind"] == "human"


@pytest.mark.anyio
async def test_one_key_is_one_task_even_at_the_same_moment(workshop: Workshop) -> None:
    await workshop.open()
    made = await asyncio.gather(*(workshop.create(f"try {number}", source_id="node-7") for number in range(8)))
    assert len({task.id for task in made}) == 1
    assert (workshop.count(), workshop.count(jobs)) == (1, 1)
    assert [row.created for row in workshop.rows(sa.select(work_days))] == [1]
    ada = await workshop.new_agent("ada")
    assert (await workshop.create(actor=ada, source_id="node-7")).id != made[0].id


@pytest.fixture
def narrow(workshop: Workshop) -> Workshop:
    """The same workshop with room for three tasks a day."""
    settings = replace(workshop.fleet.platform.settings, work_task_max_per_day=3)
    workshop.fleet.platform.calls.facts["settings"] = settings  # pyright: ignore[reportIndexIssue]
    return workshop


@pytest.mark.anyio
async def test_of_many_calls_at_once_no_more_pass_than_the_day_has_room_for(narrow: Workshop) -> None:
    await narrow.open()
    answers = await asyncio.gather(*(narrow.create(f"task {n}") for n in range(12)), return_exceptions=True)
    refused = [answer for answer in answers if isinstance(answer, RateLimited)]
    assert (len(refused), narrow.count(), narrow.count(jobs)) == (9, 3, 3)
    assert {refusal.message for refusal in refused} == {MESSAGE.format(3)}
    ada = await narrow.new_agent("ada")
    assert (await narrow.create(actor=ada)).status == "pending"
    assert len(await asyncio.gather(*(narrow.create(actor=ada) for _ in range(2)))) == 2


@pytest.mark.anyio
async def test_a_known_key_is_answered_when_the_day_is_full(narrow: Workshop) -> None:
    await narrow.open()
    first = await narrow.create(source_id="k")
    await narrow.create()
    await narrow.create()
    with pytest.raises(RateLimited):
        await narrow.create(source_id="other")
    assert (await narrow.create(source_id="k")).id == first.id


@pytest.mark.anyio
async def test_the_next_day_has_room_again(narrow: Workshop) -> None:
    await narrow.open()
    for _ in range(3):
        await narrow.create()
    with pytest.raises(RateLimited):
        await narrow.create()
    narrow.change(sa.update(work_days).values(day=work_days.c.day - 1))
    await narrow.create()
    assert [row.created for row in narrow.rows(sa.select(work_days))] == [1]


@pytest.mark.anyio
async def test_the_101st_task_of_a_day_is_refused_in_the_words_of_the_seed(workshop: Workshop) -> None:
    await workshop.open()
    agent = workshop.agent()
    for _ in range(4):
        await asyncio.gather(*(workshop.create(actor=agent) for _ in range(25)))
    assert workshop.count() == 100
    with pytest.raises(RateLimited) as refusal:
        await workshop.create(actor=agent)
    assert refusal.value.message == "Rate limit exceeded: maximum 100 work tasks per day."
    assert workshop.rows(sa.select(sa.func.count()).select_from(work_tasks))[0][0] == 100


@pytest.mark.anyio
async def test_what_the_asking_session_was_held_to_is_kept(workshop: Workshop) -> None:
    await workshop.open()
    held = workshop.agent(scheduler=True, depth=2, scope_file=frozenset({"create_work_task", "ping"}))
    row = workshop.row((await workshop.create(actor=held)).id)
    assert (row.requester["scheduler"], row.requester["depth"]) == (True, 2)
    assert row.requester["scope_file"] == ["create_work_task", "ping"]


def test_the_listing_of_the_four_tools_stays_short(workshop: Workshop) -> None:
    names = ("create_work_task", "get_work_task", "list_work_tasks", "cancel_work_task")
    declared = [workshop.fleet.platform.registry.require(name) for name in names]
    assert [fault for tool in declared for fault in lint(tool)] == []
    assert sum(tokens(tool) for tool in declared) <= 430

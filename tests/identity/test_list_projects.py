from rookery.core.actor import Actor
from tests.identity.callers import agents_are_refused, own
from tests.platform_fixtures import Fleet


async def test_an_agent_does_not_see_the_projects(fleet: Fleet) -> None:
    await agents_are_refused(fleet, "list_projects")


async def test_the_projects_of_the_tenant_are_listed_and_no_other(fleet: Fleet, stranger: Actor) -> None:
    await fleet.call(stranger, "create_project", slug="secret")
    shop = await own(fleet, "create_project", slug="webshop", name="Web shop")
    found = (await own(fleet, "list_projects")).projects
    assert [project.slug for project in found] == ["default", "webshop"]
    assert found[1] == shop

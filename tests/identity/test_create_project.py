from rookery.core.actor import Actor
from rookery.core.errors import Conflict, InvalidParams, ValidationFailed
from tests.identity.callers import agents_are_refused, fails_with, own
from tests.platform_fixtures import Fleet


async def test_an_agent_cannot_create_projects(fleet: Fleet) -> None:
    await agents_are_refused(fleet, "create_project", slug="mine")


async def test_a_session_can_be_bound_to_a_new_project_by_slug_or_id(fleet: Fleet) -> None:
    shop = await own(fleet, "create_project", slug="webshop", path="/srv/webshop")
    assert (shop.name, shop.path) == ("webshop", "/srv/webshop")
    for binding in ({"project": shop.id}, {"project": "webshop"}, {"project_slug": "WebShop"}):
        assert fleet.actor(**binding).project == shop.id
    assert fleet.actor(project="webshop").project_slug == "webshop"
    assert fleet.actor().project_slug == "default"


async def test_a_slug_is_taken_whatever_its_case_but_not_across_tenants(fleet: Fleet, stranger: Actor) -> None:
    await own(fleet, "create_project", slug="webshop", name="Web shop")
    await fails_with(Conflict, fleet, "create_project", slug="WEBSHOP")
    await fails_with(InvalidParams, fleet, "create_project", slug="web shop")
    theirs = await fleet.call(stranger, "create_project", slug="webshop")
    assert fleet.actor(project="webshop").project != theirs.id


async def test_a_folder_is_absolute_since_servers_and_workers_start_in_folders_of_their_own(fleet: Fleet) -> None:
    for path in ("webshop", ".", ""):
        await fails_with(ValidationFailed, fleet, "create_project", slug="webshop", path=path)
    assert (await own(fleet, "create_project", slug="webshop", path="/srv/webshop/")).path == "/srv/webshop"

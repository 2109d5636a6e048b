from rookery.core.actor import Actor
from rookery.core.errors import Conflict, NotFound
from rookery.identity.presets import PRESETS
from tests.identity.callers import agents_are_refused, fails_with, is_not_found, own
from tests.platform_fixtures import Fleet


async def test_an_agent_cannot_delete_bundles(fleet: Fleet) -> None:
    await agents_are_refused(fleet, "delete_bundle", bundle="devops")


async def test_a_preset_cannot_be_deleted(fleet: Fleet) -> None:
    for preset in PRESETS.values():
        for name in (preset.id, preset.name):
            await fails_with(Conflict, fleet, "delete_bundle", bundle=name)


async def test_the_bundles_of_another_tenant_are_not_found(fleet: Fleet, stranger: Actor) -> None:
    theirs = await fleet.call(stranger, "save_bundle", name="theirs", tools=["get_issue"])
    await fleet.call(stranger, "assign_bundle", bundle="theirs", agent="default")
    for name in (theirs.id, "theirs"):
        await is_not_found(fleet, fleet.owner, "delete_bundle", bundle=name)
    assert "get_issue" in fleet.names(fleet.actor(tenant="other"))


async def test_deleting_takes_the_bundle_from_every_holder_and_only_the_bundle(fleet: Fleet) -> None:
    usual = fleet.names(fleet.actor())
    made = await own(fleet, "save_bundle", name="tracker", tools=["get_issue", "ping"], prompt="Be brief.")
    await own(fleet, "assign_bundle", bundle="tracker", agent="default")
    await own(fleet, "assign_bundle", bundle=made.id, project="default")
    assert fleet.names(fleet.actor()) == usual | {"get_issue"}
    done = await own(fleet, "delete_bundle", bundle="tracker")
    assert (done.id, done.done) == (made.id, "deleted")
    assert fleet.names(fleet.actor()) == usual
    assert fleet.actor().prompt_additions == ""
    await fails_with(NotFound, fleet, "delete_bundle", bundle="tracker")
    await own(fleet, "save_bundle", name="tracker", tools=["get_issue"])
    assert fleet.names(fleet.actor()) == usual

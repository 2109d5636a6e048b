import asyncio

from rookery.core.actor import Actor
from rookery.core.errors import Conflict, InvalidParams
from rookery.identity.presets import PRESETS
from tests.identity.callers import agents_are_refused, fails_with, own
from tests.platform_fixtures import Fleet


async def test_an_agent_cannot_make_bundles(fleet: Fleet) -> None:
    await agents_are_refused(fleet, "save_bundle", name="mine", tools=["ping"])


async def test_a_bundle_carries_no_privileged_tools(fleet: Fleet) -> None:
    error = await fails_with(InvalidParams, fleet, "save_bundle", name="b", tools=["ping", "corvid_grant_credits"])
    assert "grant_credits" in error.message
    assert "grant_tool" in (error.hint or "")
    assert [bundle.name for bundle in (await own(fleet, "list_bundles")).bundles if not bundle.preset] == []


async def test_a_preset_cannot_be_replaced_under_any_of_its_names(fleet: Fleet) -> None:
    for preset in PRESETS.values():
        for name in (preset.id, preset.id.removeprefix("preset-"), preset.name):
            await fails_with(Conflict, fleet, "save_bundle", name=name, tools=["ping"])


async def test_saving_again_replaces_what_the_bundle_holds_for_its_holders_too(fleet: Fleet, stranger: Actor) -> None:
    first = await own(fleet, "save_bundle", name="tracker", tools=["get_issue"])
    await own(fleet, "assign_bundle", bundle="tracker", agent="default")
    assert "get_issue" in fleet.names(fleet.actor())
    second = await own(fleet, "save_bundle", name="tracker", tools=["delete_everything"], description="new")
    assert second.id == first.id
    assert {"get_issue", "delete_everything"} & fleet.names(fleet.actor()) == {"delete_everything"}
    theirs = await fleet.call(stranger, "save_bundle", name="tracker", tools=["ping"])
    assert theirs.id != first.id
    assert "delete_everything" in fleet.names(fleet.actor())


async def test_many_who_save_one_bundle_at_once_make_one(fleet: Fleet) -> None:
    owner = fleet.owner
    saved = await asyncio.gather(*(fleet.call(owner, "save_bundle", name="tracker", tools=["ping"]) for _ in range(8)))
    assert len({bundle.id for bundle in saved}) == 1


async def test_a_bundle_needs_a_name_and_known_tools(fleet: Fleet) -> None:
    await fails_with(InvalidParams, fleet, "save_bundle", name="", tools=["ping"])
    await fails_with(InvalidParams, fleet, "save_bundle", name="b", tools=["nope"])
    await fails_with(InvalidParams, fleet, "save_bundle", name="b")
    assert (await own(fleet, "save_bundle", name="b", tools=[])).tools == []

from rookery.core.actor import Actor
from rookery.identity.presets import PRESETS
from tests.identity.callers import agents_are_refused, own
from tests.platform_fixtures import Fleet


async def test_an_agent_does_not_see_the_bundles(fleet: Fleet) -> None:
    await agents_are_refused(fleet, "list_bundles")


async def test_the_nine_presets_come_first_then_custom_ones_by_name(fleet: Fleet, stranger: Actor) -> None:
    await fleet.call(stranger, "save_bundle", name="theirs", tools=["ping"])
    for name in ("zeta", "alpha"):
        await own(fleet, "save_bundle", name=name, tools=["ping"], prompt=f"about {name}")
    listed = (await own(fleet, "list_bundles")).bundles
    assert {bundle.id for bundle in listed[:9]} == set(PRESETS)
    assert len(PRESETS) == 9
    assert [bundle.preset for bundle in listed] == [True] * 9 + [False] * 2
    names = [bundle.name for bundle in listed]
    assert names[:9] == sorted(names[:9])
    assert names[9:] == ["alpha", "zeta"]
    assert (listed[9].tools, listed[9].prompt) == (["ping"], "about alpha")


async def test_a_preset_holds_only_tools_that_are_there_and_none_that_is_privileged(fleet: Fleet) -> None:
    registry = fleet.platform.registry
    for bundle in (await own(fleet, "list_bundles")).bundles:
        assert registry.unknown(bundle.tools) == []
        assert [name for name in bundle.tools if registry.require(name).tier == "privileged"] == []
    held = {bundle.id: set(bundle.tools) for bundle in (await own(fleet, "list_bundles")).bundles}
    assert held["preset-researcher"] == {"web_search", "deep_research", "save_memory", "recall_memory"}
    assert held["preset-communicator"] == {"send_message", "list_agents", "discover_agent", "invoke_remote_agent"}
    assert held["preset-coder"] == set()

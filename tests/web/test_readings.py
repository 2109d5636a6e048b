"""What a page leaves in the audit log: who has read what, once for a while, and every change and refusal."""

from rookery.core.actor import Actor
from rookery.web.readings import LASTS_S, Readings
from tests.platform_fixtures import Fleet
from tests.web.guest import Guest


async def recorded(fleet: Fleet, tool: str) -> int:
    found = await fleet.call(fleet.owner, "list_audit_records", tool=tool, limit=100)
    return len(found.records)


async def test_a_page_that_is_drawn_again_and_again_is_recorded_once(fleet: Fleet, guest: Guest) -> None:
    owner = guest.signed_in()
    before = await recorded(fleet, "look_at_asks")
    for _ in range(5):
        assert (await owner.get("/asks")).status_code == 200
    once = await recorded(fleet, "look_at_asks") - before
    assert once >= 1
    await owner.get("/asks")
    assert await recorded(fleet, "look_at_asks") - before == once


async def test_another_browser_leaves_records_of_its_own(fleet: Fleet, guest: Guest) -> None:
    first, second = guest.signed_in(), guest.signed_in()
    await first.get("/asks")
    before = await recorded(fleet, "look_at_asks")
    await second.get("/asks")
    assert await recorded(fleet, "look_at_asks") > before


def test_after_a_while_the_same_is_written_down_again(fleet: Fleet) -> None:
    now = [0.0]
    readings, tool = Readings(lambda: now[0]), fleet.platform.registry.require("list_asks")
    owner: Actor = fleet.owner
    assert not readings.seen("web-1", owner, tool, {})
    assert readings.seen("web-1", owner, tool, {})
    assert not readings.seen("web-1", owner, tool, {"limit": 5})
    now[0] = LASTS_S
    assert not readings.seen("web-1", owner, tool, {})

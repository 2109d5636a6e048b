"""The switch that stops agents, and the banner that says so on every page."""

import pytest

from rookery.core.errors import PermissionDenied
from tests.platform_fixtures import Fleet
from tests.web.guest import Guest
from tests.web.site import Viewer


async def test_whoever_is_not_signed_in_or_only_looks_on_pauses_nothing(guest: Guest) -> None:
    owner = guest.signed_in()
    assert (await guest.post("/pause", {"what": "all"})).status_code == 303
    await owner.post("/people/add", {"name": "vera", "role": "viewer"})
    vera = owner.signed_in("vera")
    assert "Pause agents" not in await vera.words("/")
    assert (await vera.post("/pause", {"what": "all"})).status_code == 403
    assert (await owner.client.post("/pause", data={"what": "all"})).status_code == 403
    assert "is paused" not in await owner.words("/")


@pytest.mark.parametrize("what", ["", "project:", "people:ada", "all:x"])
async def test_a_form_that_does_not_say_what_pauses_nothing(owner: Guest, what: str) -> None:
    assert (await owner.post("/pause", {"what": what})).status_code == 400
    assert "is paused" not in await owner.words("/")


async def test_what_is_not_there_cannot_be_paused(owner: Guest) -> None:
    assert (await owner.post("/pause", {"what": "agent:nobody"})).status_code == 404


async def test_everything_is_paused_with_a_reason_and_resumed(fleet: Fleet, owner: Guest) -> None:
    await owner.post("/pause", {"what": "all", "reason": "<b>the shop burns</b>"})
    for path in ("/", "/orchestrator", "/asks"):
        words = await owner.words(path)
        assert "Everything is paused. owner did it" in words
        assert "<b>the shop burns</b>" in words
    with pytest.raises(PermissionDenied):
        await fleet.call(fleet.actor(agent="default"), "save_memory", key="k", content="c")
    answer = await owner.post("/resume", {"what": "all"})
    assert answer.status_code == 303
    assert "is paused" not in await owner.words("/")


async def test_a_project_and_an_agent_are_paused_by_themselves(owner: Guest) -> None:
    await owner.post("/pause", {"what": "project:default"})
    await owner.post("/pause", {"what": "agent:default", "reason": "odd"})
    words = await owner.words("/asks")
    assert "The project default is paused." in words
    assert "The agent default is paused." in words
    page = (await owner.get("/asks")).text
    assert page.count('action="/resume"') == 2


async def test_a_viewer_sees_the_banner_without_a_button(owner: Guest) -> None:
    await owner.post("/people/add", {"name": "vera", "role": "viewer"})
    await owner.post("/pause", {"what": "all"})
    page = (await owner.signed_in("vera").get("/")).text
    assert "is paused" in page
    assert 'action="/resume"' not in page


def test_a_person_stops_everything_from_home_and_lets_it_go_on_from_another_page(viewer: Viewer) -> None:
    page = viewer.open("/")
    other = viewer.new_page()
    other.goto("/orchestrator")
    page.locator(".pause-switch summary").press("Enter")
    page.get_by_label("Why").fill("looking into the bill")
    viewer.check()
    page.get_by_role("button", name="Pause", exact=True).press("Enter")
    page.locator("#pauses").get_by_text("Everything is paused.").wait_for()
    viewer.check()
    banner = other.locator("#pauses")
    banner.get_by_text("looking into the bill").wait_for()
    banner.get_by_role("button", name="Resume").click()
    other.locator("#notices").get_by_text("Agents work again.").wait_for()
    banner.get_by_text("Everything is paused.").wait_for(state="detached")
    page.locator("#pauses").get_by_text("Everything is paused.").wait_for(state="detached")
    viewer.check(axe=False)

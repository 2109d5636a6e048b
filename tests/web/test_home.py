"""Home, and what stands around every page."""

from tests.web.guest import Guest
from tests.web.site import Viewer


async def test_whoever_is_not_signed_in_sees_where_to_sign_in_and_nothing_else(guest: Guest) -> None:
    answer = await guest.get("/")
    assert (answer.status_code, answer.headers["location"]) == (303, "/sign-in")


async def test_a_form_without_its_token_changes_nothing(owner: Guest) -> None:
    answer = await owner.client.post("/sign-out", data={})
    assert answer.status_code == 403
    assert "Home" in await owner.words("/")


async def test_whoever_signs_out_is_signed_out(owner: Guest) -> None:
    assert (await owner.post("/sign-out")).status_code == 303
    assert (await owner.get("/")).status_code == 303


def test_the_owner_signs_in_with_a_link_and_sees_home(viewer: Viewer) -> None:
    page = viewer.open("/")
    assert page.get_by_role("heading", name="Home").is_visible()
    viewer.check()

"""The page People: who may do what, how somebody is let in, and who is signed in where."""

import contextlib
from collections.abc import Callable

import pytest
from playwright.sync_api import Error

from rookery.web.routing import addresses, menu
from tests.web.guest import Guest, words_of
from tests.web.site import Site, Viewer

OWNER_ONLY = ("/people/add", "/people/change", "/people/remove")


async def person(owner: Guest, name: str, role: str) -> Guest:
    """Somebody who was added by the owner, signed in."""
    added = await owner.post("/people/add", {"name": name, "role": role})
    assert added.status_code == 303, words_of(added.text)
    return owner.signed_in(name)


async def roles(owner: Guest) -> dict[str, str]:
    from rookery.identity.people_commands import list_people

    fleet = owner.fleet
    found = (await fleet.platform.calls.run(fleet.owner, list_people, {})).structured["people"]
    return {each["name"]: each["role"] for each in found}


@pytest.mark.parametrize("role", ["operator", "viewer"])
async def test_others_than_an_owner_change_nobody(owner: Guest, role: str) -> None:
    guest = await person(owner, "pat", role)
    for path in OWNER_ONLY:
        answer = await guest.post(path, {"person": "pat", "name": "pat2", "role": "owner"})
        assert answer.status_code == 403, path
    assert await roles(owner) == {"owner": "owner", "pat": role}


@pytest.mark.parametrize("role", ["operator", "viewer"])
async def test_others_than_an_owner_make_links_and_end_browsers_for_themselves_alone(owner: Guest, role: str) -> None:
    guest = await person(owner, "pat", role)
    assert (await guest.post("/people/link", {"person": "owner"})).status_code == 403
    assert (await guest.post("/browsers/end", {"person": "owner"})).status_code == 403
    assert "A sign-in link for pat" in words_of((await guest.post("/people/link")).text)
    page = await guest.words("/people")
    assert "Add a person" not in page
    assert "Remove" not in page
    assert page.count("Sign out") >= 1


async def test_a_viewer_sees_no_browser_of_others_and_cannot_end_it_by_its_id(owner: Guest) -> None:
    vera = await person(owner, "vera", "viewer")
    theirs = owner.fleet.platform.database.direct(_session_of_the_owner)
    assert theirs not in (await vera.get("/people")).text
    assert (await vera.post("/browsers/end", {"id": theirs})).status_code == 404
    assert (await owner.get("/people")).status_code == 200


def _session_of_the_owner(tx: object) -> str:
    from rookery.identity.signing_in import live_sessions
    from rookery.identity.store import IdentityStore

    return live_sessions(tx, "default", IdentityStore(tx, "default").owner().id)[0].id  # pyright: ignore


FOR_ALL = ("/sign-out", "/audit/verify")
"""What everybody may send: it ends their own session, or computes something and changes nothing."""


@pytest.mark.parametrize("role", ["viewer", "operator"])
async def test_a_viewer_sees_every_page_of_the_menu_and_no_form_that_changes_something(owner: Guest, role: str) -> None:
    guest = await person(owner, "pat", role)
    for address in menu():
        answer = await guest.get(address.path)
        assert answer.status_code == 200, (address.path, words_of(answer.text)[:400])
        if role == "viewer":
            forms = [part.partition(">")[0] for part in answer.text.split("<form")[1:]]
            changing = [each for each in forms if 'method="post"' in each and not any(one in each for one in FOR_ALL)]
            assert changing == [], address.path


async def test_a_viewer_is_refused_by_every_address_that_changes_something(owner: Guest) -> None:
    vera = await person(owner, "vera", "viewer")
    own = {*FOR_ALL, "/browsers/end", "/people/link"}
    let: list[str] = []
    for address in addresses():
        if address.method == "POST" and address.path not in own:
            path = address.path.replace("{", "").replace("}", "")
            answer = await vera.post(path, {})
            let += [address.path] if answer.status_code < 400 else []
    assert let == []


async def test_a_person_is_added_changed_and_removed(owner: Guest) -> None:
    vera = await person(owner, "vera", "viewer")
    ids = await _ids(owner)
    changed = {"person": ids["vera"], "name": "Vera K.", "role": "operator", "email": "Vera@Example.org"}
    assert (await owner.post("/people/change", changed)).status_code == 303
    page = await owner.words("/people")
    assert "Vera K. operator vera@example.org" in page
    assert (await owner.post("/people/remove", {"person": ids["vera"]})).status_code == 303
    assert "Vera K." not in await owner.words("/settings?tab=server")
    assert (await vera.get("/")).status_code == 303


async def _ids(owner: Guest) -> dict[str, str]:
    from rookery.identity.people_commands import list_people

    fleet = owner.fleet
    found = (await fleet.platform.calls.run(fleet.owner, list_people, {})).structured["people"]
    return {each["name"]: each["id"] for each in found}


async def test_a_role_counts_at_once_in_browsers_that_are_open(owner: Guest) -> None:
    pat = await person(owner, "pat", "owner")
    assert "Add a person" in await pat.words("/people")
    await owner.post("/people/change", {"person": "pat", "role": "viewer"})
    assert "Add a person" not in await pat.words("/people")
    assert (await pat.post("/people/add", {"name": "eve", "role": "owner"})).status_code == 403
    assert "eve" not in await roles(owner)


async def test_what_was_refused_is_shown_beside_what_was_sent(owner: Guest) -> None:
    answer = await owner.post("/people/add", {"name": "owner", "role": "operator", "email": "o@example.org"})
    assert answer.status_code == 409
    assert "somebody else has owner" in words_of(answer.text)
    assert 'value="o@example.org"' in answer.text
    assert '<option value="operator" selected>' in answer.text
    for wrong in ({"name": "<b>x</b>"}, {"name": ""}, {"name": "x", "email": "no"}, {"name": "x", "role": "king"}):
        answer = await owner.post("/people/add", {"role": "viewer", **wrong})
        assert answer.status_code == 400, wrong
        assert "<b>x</b>" not in answer.text


async def test_the_last_owner_can_neither_be_removed_nor_become_less(owner: Guest) -> None:
    assert "Remove owner" not in await owner.words("/people")
    assert (await owner.post("/people/remove", {"person": "owner"})).status_code == 409
    assert (await owner.post("/people/change", {"person": "owner", "role": "viewer"})).status_code == 409
    assert await roles(owner) == {"owner": "owner"}


async def test_signing_out_ends_one_browser_or_the_others_or_all_of_a_person(owner: Guest) -> None:
    second, third = owner.signed_in(), owner.signed_in()
    page = (await owner.get("/people")).text
    assert page.count(">this one<") == 1
    assert (await owner.post("/browsers/end", {"others": "yes"})).status_code == 303
    assert [(await each.get("/")).status_code for each in (owner, second, third)] == [200, 303, 303]
    vera = await person(owner, "vera", "viewer")
    assert (await owner.post("/browsers/end", {"person": "vera"})).status_code == 303
    assert (await vera.get("/")).status_code == 303
    fourth = owner.signed_in("vera")
    assert (await fourth.post("/browsers/end", {})).status_code == 303
    assert (await fourth.get("/")).status_code == 303


async def test_the_part_with_the_browsers_can_be_had_by_itself(owner: Guest) -> None:
    part = (await owner.part("/people", "browsers")).text
    assert part.strip().startswith("<section")
    assert "a test" in part
    assert "<html" not in part


def test_an_owner_adds_somebody_who_signs_in_with_the_link_and_only_looks(
    site: Site, viewer: Viewer, make_viewer: Callable[..., Viewer]
) -> None:
    page = viewer.open("/people")
    page.get_by_label("Name", exact=True).last.fill("Vera")
    page.get_by_role("button", name="Add", exact=True).click()
    page.get_by_text("Vera is added").wait_for()
    page.get_by_role("button", name="Sign-in link for Vera").click()
    address = page.locator("#handed-link").inner_text()
    viewer.check()
    other = make_viewer(site)
    other.page.goto(address)
    other.page.get_by_role("button", name="Sign in").click()
    other.page.locator("main#content").wait_for()
    other.open("/people")
    assert other.page.get_by_role("button", name="Add", exact=True).count() == 0
    other.check()
    page = viewer.open("/people")
    page.get_by_role("button", name="Remove Vera").click()
    page.get_by_role("button", name="Yes").click()
    page.get_by_text("Vera is removed").wait_for()
    # An open page may be on its way there by itself.
    with contextlib.suppress(Error):
        other.page.goto("/people")
    other.page.get_by_role("heading", name="Sign in").wait_for()
    viewer.check()

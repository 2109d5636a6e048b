"""Signing in by a link that works once, and what becomes of a session afterwards."""

import asyncio
import re

import pytest
import sqlalchemy as sa

from rookery.db.tx import Tx
from rookery.identity.browser_commands import make_sign_in_link
from rookery.identity.signing_in import LINK_LASTS_MS, SEEN_EVERY_MS, SESSION_ENDS_MS, SESSION_LASTS_MS
from rookery.identity.tables import sign_in_links, web_sessions
from rookery.web.attempts import FROM_ALL, FROM_ONE, WITHIN_S, Attempts
from rookery.web.signed_in import form_token
from tests.web.guest import Guest
from tests.web.site import Viewer

TOKEN = re.compile(r'name="csrf" value="([0-9a-f]{64})"')


async def link(guest: Guest, person: str | None = None) -> str:
    """The address of a new link, made as the owner makes it."""
    fleet = guest.fleet
    given = {} if person is None else {"person": person}
    made = await fleet.platform.calls.run(fleet.owner, make_sign_in_link, given)
    return made.structured["path"]


async def enter(guest: Guest, path: str, **how: str) -> int:
    """Open a link as a person does and press its button; the status of the answer."""
    found = TOKEN.search((await guest.get(path)).text)
    assert found is not None
    return (await guest.client.post(path, data={"csrf": found[1], **how})).status_code


def age(guest: Guest, table: sa.Table, **by: int) -> None:
    """Make the only row of a table so many milliseconds older."""
    moved = {name: table.c[name] - ms for name, ms in by.items()}
    guest.fleet.platform.database.direct(lambda tx: tx.run(sa.update(table).values(**moved)), write=True)


def sessions(guest: Guest) -> list[sa.Row[tuple[object, ...]]]:
    return list(guest.fleet.platform.database.direct(lambda tx: tx.all(sa.select(web_sessions))))


async def test_a_link_that_nobody_made_signs_nobody_in(guest: Guest) -> None:
    assert await enter(guest, "/sign-in/" + "x" * 43) == 403
    assert (await guest.get("/")).status_code == 303
    assert sessions(guest) == []


async def test_looking_at_a_link_does_not_use_it_up(guest: Guest) -> None:
    path = await link(guest)
    for _ in range(3):
        assert "signs this browser in, once" in (await guest.get(path)).text
    assert await enter(guest, path) == 303
    assert (await guest.get("/")).status_code == 200


async def test_a_link_works_once(guest: Guest) -> None:
    path = await link(guest)
    assert await enter(guest, path) == 303
    stranger = Guest(guest.fleet, guest.web)
    assert await enter(stranger, path) == 403
    assert (await stranger.get("/")).status_code == 303
    await stranger.close()


async def test_of_many_who_use_a_link_at_once_one_is_signed_in(guest: Guest) -> None:
    path = await link(guest)
    browsers = [Guest(guest.fleet, guest.web) for _ in range(6)]
    statuses = await asyncio.gather(*(enter(each, path) for each in browsers))
    assert sorted(statuses) == [303, *[403] * 5]
    assert len(sessions(guest)) == 1
    for each in browsers:
        await each.close()


async def test_a_link_is_over_after_a_quarter_of_an_hour(guest: Guest) -> None:
    path = await link(guest)
    age(guest, sign_in_links, expires_ms=LINK_LASTS_MS)
    assert await enter(guest, path) == 403


async def test_the_link_of_a_removed_person_signs_nobody_in(guest: Guest, owner: Guest) -> None:
    await owner.post("/people/add", {"name": "vera", "role": "viewer"})
    path = await link(guest, "vera")
    await owner.post("/people/remove", {"person": "vera"})
    assert await enter(guest, path) == 403


@pytest.mark.parametrize("token", ["", "0" * 64, form_token("another browser")])
async def test_a_page_elsewhere_cannot_sign_a_browser_in(guest: Guest, token: str) -> None:
    path = await link(guest)
    await guest.get(path)
    assert (await guest.client.post(path, data={"csrf": token})).status_code == 403
    bare = Guest(guest.fleet, guest.web)
    assert (await bare.client.post(path, data={"csrf": token})).status_code == 403
    await bare.close()
    assert sessions(guest) == []


async def test_whoever_signs_in_again_gets_another_session_and_the_first_is_over(guest: Guest) -> None:
    name = f"rookery_{guest.fleet.platform.settings.port}"
    assert await enter(guest, await link(guest)) == 303
    before = guest.client.cookies[name]
    assert await enter(guest, await link(guest)) == 303
    assert guest.client.cookies[name] != before
    thief = Guest(guest.fleet, guest.web, before)
    assert (await thief.get("/")).status_code == 303
    await thief.close()


async def test_too_many_attempts_have_to_wait_even_with_a_good_link(guest: Guest) -> None:
    for _ in range(FROM_ONE):
        assert await enter(guest, "/sign-in/" + "x" * 43) == 403
    path = await link(guest)
    found = TOKEN.search((await guest.get(path)).text)
    assert found is not None
    answer = await guest.client.post(path, data={"csrf": found[1]})
    assert (answer.status_code, answer.headers["retry-after"]) == (429, "60")
    assert sessions(guest) == []


def test_attempts_are_counted_for_an_address_and_for_all_and_those_that_worked_are_not() -> None:
    now = [0.0]
    attempts = Attempts(lambda: now[0])
    for _ in range(3 * FROM_ONE):
        assert attempts.begin("a")
        attempts.worked("a")
    assert [attempts.begin("a") for _ in range(FROM_ONE + 1)] == [True] * FROM_ONE + [False]
    assert attempts.begin("b")
    others = [attempts.begin(f"c{number}") for number in range(FROM_ALL)]
    assert others.count(True) == FROM_ALL - FROM_ONE - 1
    assert not attempts.begin("d")
    now[0] = WITHIN_S
    assert attempts.begin("a")


@pytest.mark.parametrize(
    ("wanted", "to"),
    [
        ("/asks?project=shop", "/asks?project=shop"),
        ("https://elsewhere.example", "/"),
        ("//elsewhere.example", "/"),
        ("/\\elsewhere.example", "/"),
        ("/a\tb", "/"),
    ],
)
async def test_afterwards_one_is_where_one_wanted_to_go_but_only_here(guest: Guest, wanted: str, to: str) -> None:
    path = await link(guest)
    found = TOKEN.search((await guest.get(path)).text)
    assert found is not None
    answer = await guest.client.post(path, params={"next": wanted}, data={"csrf": found[1]})
    assert (answer.status_code, answer.headers["location"]) == (303, to)


async def test_signing_in_and_out_is_in_the_audit_log(guest: Guest) -> None:
    assert await enter(guest, await link(guest)) == 303
    port = guest.fleet.platform.settings.port
    guest.token = guest.client.cookies[f"rookery_{port}"]
    assert (await guest.post("/sign-out")).status_code == 303
    found = await guest.fleet.call(guest.fleet.owner, "list_audit_records", limit=20)
    tools = [each.tool for each in found.records]
    assert [tools.count(name) for name in ("make_sign_in_link", "open_browser", "end_browser")] == [1, 1, 1]
    assert path_is_kept_nowhere(guest)


def path_is_kept_nowhere(guest: Guest) -> bool:
    """Whether the databases have digests and no tokens."""

    def look(tx: Tx) -> bool:
        rows = [*tx.all(sa.select(sign_in_links)), *tx.all(sa.select(web_sessions))]
        return all(len(row.digest) == 64 for row in rows)

    return guest.fleet.platform.database.direct(look)


async def test_a_session_that_is_used_lasts_longer_and_the_browser_is_told(owner: Guest) -> None:
    name = f"rookery_{owner.fleet.platform.settings.port}"
    assert name not in (await owner.get("/")).headers.get("set-cookie", "")
    age(owner, web_sessions, seen_ms=SEEN_EVERY_MS + 1000, expires_ms=SEEN_EVERY_MS + 1000)
    before = sessions(owner)[0].expires_ms
    told = (await owner.get("/")).headers.get_list("set-cookie")
    assert any(each.startswith(f"{name}=") and "Max-Age=1209600" in each for each in told)
    assert sessions(owner)[0].expires_ms > before


async def test_a_session_that_nobody_uses_is_over_after_two_weeks(owner: Guest) -> None:
    age(owner, web_sessions, expires_ms=SESSION_LASTS_MS + 1000)
    assert (await owner.get("/")).status_code == 303


async def test_however_much_it_is_used_a_session_is_over_after_three_months(owner: Guest) -> None:
    age(owner, web_sessions, created_ms=SESSION_ENDS_MS - 60_000, seen_ms=SEEN_EVERY_MS + 1000)
    assert (await owner.get("/")).status_code == 200
    row = sessions(owner)[0]
    assert row.expires_ms == row.created_ms + SESSION_ENDS_MS


async def test_the_cookie_is_for_the_server_alone_and_for_no_script(guest: Guest) -> None:
    path = await link(guest)
    found = TOKEN.search((await guest.get(path)).text)
    assert found is not None
    answer = await guest.client.post(path, data={"csrf": found[1]})
    cookie = next(
        each for each in answer.headers.get_list("set-cookie") if each.startswith("rookery_") and "Max-Age=1" in each
    )
    assert {"HttpOnly", "Path=/", "SameSite=lax"} <= set(cookie.split("; "))
    assert "Secure" not in cookie


def test_a_person_signs_in_by_a_link_and_out_again(viewer: Viewer) -> None:
    page = viewer.page
    viewer.check()
    page.locator("details.person summary").click()
    page.get_by_role("button", name="Sign out").click()
    page.get_by_role("heading", name="Sign in").wait_for()
    page.goto("/")
    assert page.get_by_text("rookery login").is_visible()
    viewer.check()

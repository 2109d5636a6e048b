"""The board without a browser: what it shows, what its forms change, and who is refused."""

import re
from typing import Any

from rookery.identity.people import People
from rookery.identity.store import IdentityStore
from tests.web.guest import Guest, words_of

HOSTILE = "<script>alert(1)</script> \u202eevil \x1b[31mred"


async def make(owner: Guest, title: str, status: str = "todo", **fields: Any) -> Any:
    """An issue of the default project, moved to a status."""
    fleet = owner.fleet
    made = await fleet.call(fleet.owner, "create_issue", title=title, **fields)
    road = {"todo": (), "in_progress": ("in_progress",), "review": ("in_progress", "review")}
    for step in road.get(status, ("in_progress", status) if status == "blocked" else ("in_progress", "review", status)):
        await fleet.call(fleet.owner, "set_issue_status", issue_id=made.id, status=step)
    return made


async def status_of(owner: Guest, issue: Any) -> str:
    return (await owner.fleet.call(owner.fleet.owner, "get_issue", issue_id=issue.id)).status


def viewer_of(owner: Guest) -> Guest:
    """Somebody who may look only."""
    people = owner.fleet.platform.database
    people.direct(lambda tx: People(tx, "default").add("Vera", "viewer", None), write=True)
    return owner.signed_in("Vera")


async def test_whoever_is_not_signed_in_sees_no_board_and_moves_nothing(guest: Guest) -> None:
    issue = await make(guest, "secret plan")
    assert (await guest.get("/board")).headers["location"] == "/sign-in?next=/board"
    assert (await guest.post("/board/move", {"move": f"{issue.id} cancelled"})).status_code == 303
    assert await status_of(guest, issue) == "todo"


async def test_a_form_without_its_token_moves_and_makes_nothing(owner: Guest) -> None:
    issue = await make(owner, "stays")
    answer = await owner.client.post("/board/move", data={"move": f"{issue.id} cancelled"})
    assert answer.status_code == 403
    assert (await owner.client.post("/board/issues", data={"title": "never made"})).status_code == 403
    assert await status_of(owner, issue) == "todo"
    assert "never made" not in await owner.words("/board")


async def test_a_viewer_sees_cards_and_no_way_to_change_them(owner: Guest) -> None:
    issue = await make(owner, "look at me")
    viewer = viewer_of(owner)
    page = (await viewer.get("/board")).text
    assert "look at me" in page
    assert 'name="move"' not in page
    assert "data-targets" not in page
    assert "New issue" not in page
    assert (await viewer.post("/board/move", {"move": f"{issue.id} cancelled"})).status_code == 403
    assert (await viewer.post("/board/issues", {"title": "mine"})).status_code == 403
    assert await status_of(owner, issue) == "todo"


async def test_an_issue_of_another_tenant_is_not_there_and_cannot_be_moved(owner: Guest) -> None:
    fleet = owner.fleet
    fleet.platform.database.direct(lambda tx: IdentityStore(tx, "other").set_up(), write=True)
    stranger = fleet.actor(tenant="other", as_owner=True)
    theirs = await fleet.call(stranger, "create_issue", title="theirs alone")
    assert "theirs alone" not in await owner.words("/board")
    assert (await owner.post("/board/move", {"move": f"{theirs.id} cancelled"})).status_code == 404
    assert (await fleet.call(stranger, "get_issue", issue_id=theirs.id)).status == "todo"


async def test_an_empty_board_says_what_to_do(owner: Guest) -> None:
    words = await owner.words("/board")
    assert "No issues yet" in words
    assert "create_issue" in words


async def test_cards_stand_in_columns_with_what_matters_about_them(owner: Guest) -> None:
    first = await make(owner, "first thing")
    await make(owner, "second thing", priority=1, labels=["backend"], depends_on=[first.id])
    await make(owner, "third thing", "blocked")
    await make(owner, "fourth thing", "done")
    words = await owner.words("/board")
    for shown in (
        "4 issues",
        "To do 2",
        "Blocked 1",
        "Done 1",
        "Urgent",
        "Normal",
        "backend",
        f"After {first.identifier}",
    ):
        assert shown in words
    assert "Waits for a person" in words
    assert re.search(r"second thing.*first thing", words)


async def test_what_agents_write_is_harmless_on_a_card(owner: Guest) -> None:
    await make(owner, HOSTILE, labels=["<b>bold</b>"])
    page = (await owner.get("/board")).text
    assert "<script>alert" not in page
    assert "<b>bold" not in page
    assert "\u202e" not in page
    assert "\x1b" not in page
    assert "&lt;script&gt;" in page


async def test_filters_are_in_the_address_and_nonsense_is_ignored(owner: Guest) -> None:
    await make(owner, "login fails", labels=["backend"])
    await make(owner, "charts overflow", priority=1)
    words = await owner.words("/board?label=backend")
    assert "login fails" in words
    assert "charts overflow" not in words
    assert "1 issue matches" in words
    assert "charts overflow" in await owner.words("/board?text=OVERFLOW&priority=1&sort=newest")
    words = await owner.words("/board?phase=nonsense&priority=9&sort=%00&label=%20")
    assert "login fails" in words
    assert "charts overflow" in words


async def test_a_long_column_comes_in_parts(owner: Guest) -> None:
    for number in range(52):
        await make(owner, f"thing {number:02}")
    page = (await owner.get("/board")).text
    assert page.count('class="board-card p') == 50
    more = re.search(r'hx-get="([^"]*part=more[^"]*)"', page)
    assert more is not None
    address = more[1].replace("&amp;", "&")
    rest = await owner.get(address, headers={"HX-Request": "true"})
    assert rest.text.count('class="board-card p') == 2
    assert "<html" not in rest.text
    assert "part=more" not in rest.text
    whole = words_of((await owner.get(address.replace("&part=more", ""))).text)
    assert "thing 51" in whole
    assert "thing 01" not in whole


async def test_a_person_moves_a_card_where_the_state_machine_lets_them(owner: Guest) -> None:
    issue = await make(owner, "goes on")
    answer = await owner.post("/board/move?label=x", {"move": f"{issue.id} in_progress"})
    assert (answer.status_code, answer.headers["location"]) == (303, "/board?label=x")
    assert await status_of(owner, issue) == "in_progress"
    refused = await owner.post("/board/move", {"move": f"{issue.id} done"}, headers={"HX-Request": "true"})
    assert refused.status_code == 409
    assert "cannot become done" in refused.headers["hx-trigger"]
    assert await status_of(owner, issue) == "in_progress"


async def test_a_reason_is_kept_as_a_comment(owner: Guest) -> None:
    issue = await make(owner, "stops", "in_progress")
    await owner.post("/board/move", {"move": f"{issue.id} blocked", "reason": "which key?"})
    (comment,) = (await owner.fleet.call(owner.fleet.owner, "get_issue", issue_id=issue.id)).comments
    assert comment["content"] == "**blocked**: which key?"


async def test_a_move_that_names_nothing_is_refused(owner: Guest) -> None:
    for nonsense in ("", "iss-1", "iss-1 nowhere", "  done"):
        assert (await owner.post("/board/move", {"move": nonsense})).status_code in (400, 404, 422)


async def test_an_issue_is_made_from_the_board(owner: Guest) -> None:
    first = await make(owner, "comes first")
    fields = {"title": "comes later", "labels": "docs, docs ,ui", "depends_on": first.identifier, "priority": "2"}
    assert (await owner.post("/board/issues", fields)).status_code == 303
    words = await owner.words("/board?priority=2")
    for shown in ("comes later", "docs", "ui", f"After {first.identifier}"):
        assert shown in words
    refused = await owner.post("/board/issues", {"title": ""}, headers={"HX-Request": "true"})
    assert "refused" in refused.headers["hx-trigger"]


async def test_the_columns_can_be_had_by_themselves(owner: Guest) -> None:
    await make(owner, "alone")
    part = await owner.part("/board", "columns")
    assert "alone" in part.text
    assert "<html" not in part.text

"""An issue's page without a browser: who is refused, what it shows, and what its forms change."""

import re
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from rookery.domains.tracker.tables import comments
from rookery.web.issue_forms import edited, listed
from tests.domains.tracker.claimant import claimant, sha256
from tests.domains.tracker.desk import Desk
from tests.web.guest import Guest, words_of
from tests.web.reviewing import reviewed, somebody

HOSTILE = "<script>alert(1)</script> \u202eevil \x1b[31mred [x](javascript:alert(1)) ![p](https://evil.example/p.png)"
FORMS = ("/edit", "/status", "/comments", "/artifacts/research/verdict")


async def made(guest: Guest, title: str = "Log in with a passkey", **fields: Any) -> str:
    return (await guest.fleet.call(guest.fleet.owner, "create_issue", title=title, **fields)).identifier


async def field(guest: Guest, identifier: str, name: str) -> Any:
    return getattr(await guest.fleet.call(guest.fleet.owner, "get_issue", issue_id=identifier), name)


def shown_fields(page: str) -> dict[str, str]:
    """What the edit form would send if nobody touched it."""
    hidden = dict(re.findall(r'name="was_(\w+)" value="([^"]*)"', page))
    return {**{f"was_{name}": value for name, value in hidden.items()}, **hidden}


async def test_nobody_sees_or_changes_it_without_signing_in(guest: Guest) -> None:
    issue = await made(guest, "secret plan")
    for path in ("", "/artifacts/research", "/timeline/comment/1"):
        answer = await guest.get(f"/issues/{issue}{path}")
        assert answer.headers["location"].startswith("/sign-in")
    for path in FORMS:
        assert (await guest.post(f"/issues/{issue}{path}", {"content": "x", "status": "cancelled"})).status_code == 303
    assert await field(guest, issue, "status") == "todo"


async def test_a_viewer_reads_everything_and_has_no_form(owner: Guest) -> None:
    issue = await made(owner, description="for **everybody**")
    viewer = somebody(owner, "viewer")
    page = (await viewer.get(f"/issues/{issue}")).text
    assert "for <strong>everybody</strong>" in page
    assert "<textarea" not in page
    given = {"content": "x", "status": "cancelled", "verdict": "approve", "title": "mine", "was_title": "theirs"}
    for path in FORMS:
        assert (await viewer.post(f"/issues/{issue}{path}", given)).status_code == 403
    assert (await field(owner, issue, "status"), await field(owner, issue, "comments")) == ("todo", [])


async def test_forms_without_their_token_change_nothing(owner: Guest) -> None:
    issue = await made(owner)
    for path in FORMS:
        answer = await owner.client.post(f"/issues/{issue}{path}", data={"content": "x", "status": "cancelled"})
        assert answer.status_code == 403
    assert await field(owner, issue, "status") == "todo"


async def test_what_is_not_there_is_not_found(owner: Guest) -> None:
    issue = await made(owner)
    for path in ("/issues/NO-1", f"/issues/{issue}/diff", f"/issues/{issue}/artifacts/research"):
        assert (await owner.get(path)).status_code == 404
    for path in ("artifacts/nothing", "timeline/comment/9", "timeline/nothing/1"):
        assert (await owner.get(f"/issues/{issue}/{path}")).status_code == 404
    assert (await owner.get(f"/issues/{issue}?cursor=strange")).status_code == 400


async def test_hostile_words_are_shown_harmless_in_every_field(owner: Guest) -> None:
    other = await made(owner, HOSTILE)
    issue = await made(owner, HOSTILE, description=HOSTILE, labels=["<b>label"], depends_on=[other])
    bound = owner.fleet.actor(as_owner=True, issue=issue)
    await owner.fleet.call(bound, "add_comment", content=HOSTILE)
    await owner.fleet.call(
        bound, "add_finding", category="bug", summary=HOSTILE[:100], details=HOSTILE, files=["<i>.py"]
    )
    page = (await owner.get(f"/issues/{issue}")).text
    inside = page.partition("<main")[2]
    assert not any(
        evil in inside for evil in ("<script>alert", "<b>label", "<i>.py", 'src="https://evil', 'javascript:alert(1)"')
    )
    texts = re.sub(r"<textarea.*?</textarea>|<input[^>]*>", "", inside, flags=re.S)
    assert not re.search("[\u202e\x1b]", texts)


async def test_a_person_edits_moves_and_comments(owner: Guest) -> None:
    other = await made(owner, "First this")
    issue = await made(owner, description="\n\tindented\nas it was")
    page = (await owner.get(f"/issues/{issue}")).text
    unchanged = await owner.post(f"/issues/{issue}/edit", shown_fields(page))
    assert unchanged.status_code == 303
    assert await field(owner, issue, "history") in (None, [])
    new = {**shown_fields(page), "title": "Log in by face", "priority": "1", "size": "M", "labels": "ui, login"}
    assert (await owner.post(f"/issues/{issue}/edit", {**new, "depends_on": other})).status_code == 303
    found = await owner.fleet.call(owner.fleet.owner, "get_issue", issue_id=issue)
    assert (found.title, found.priority, found.size, found.labels[1:]) == ("Log in by face", 1, "M", ["login", "ui"])
    assert [each["identifier"] for each in found.depends_on] == [other]
    assert found.description == "\n\tindented\nas it was"
    assert (
        await owner.post(f"/issues/{issue}/status", {"status": "in_progress", "reason": "go on"})
    ).status_code == 303
    refused = await owner.post(f"/issues/{issue}/status", {"status": "backlog"})
    assert (refused.status_code, "cannot become backlog" in words_of(refused.text)) == (409, True)
    assert (await owner.post(f"/issues/{issue}/comments", {"content": "Use **WebAuthn**."})).status_code == 303
    assert (await owner.post(f"/issues/{issue}/comments", {"content": " "})).status_code == 400
    shown = (await owner.get(f"/issues/{issue}")).text
    assert "Use <strong>WebAuthn</strong>." in shown
    assert "changed status : todo → in progress" in words_of(shown)
    assert f'href="/issues/{other}"' in shown


def test_only_what_was_changed_in_the_form_is_sent() -> None:
    given = {
        "title": "a",
        "was_title": "a",
        "description": "x\r\ny",
        "was_description": "x\ny",
        "priority": "2",
        "was_priority": "3",
    }
    assert edited(given) == {"priority": 2}
    assert edited({"labels": "", "was_labels": "a, b", "size": "", "was_size": "S"}) == {"labels": []}
    assert edited({"title": "new"}) == {}
    assert listed(" a, b\nc,, ") == ["a", "b", "c"]


async def test_thousands_of_entries_come_in_pages_and_by_kind(owner: Guest) -> None:
    issue = await made(owner)
    row = await owner.fleet.call(owner.fleet.owner, "get_issue", issue_id=issue)
    common = {"tenant": "default", "issue_id": row.id, "author": "a", "subject": "a"}
    many = [
        {**common, "id": f"cmt_{number}", "content": f"word {number} " * 500, "created_ms": row.created_ms + number}
        for number in range(3000)
    ]
    owner.fleet.platform.database.direct(lambda tx: tx.run(sa.insert(comments), many), write=True)
    page = (await owner.get(f"/issues/{issue}?kind=comment")).text
    assert page.count('<li class="entry') == 50
    assert len(page) < 600_000
    assert "word 2999" in page
    assert "Read all of it" in page
    older = re.search(r'href="([^"]*cursor=[^"]*)#timeline"', page)
    assert older is not None
    second = (await owner.get(older[1].replace("&amp;", "&"))).text
    assert "word 2949" in second
    assert "word 2950 " not in second
    part = (await owner.part(f"/issues/{issue}?kind=run", "timeline")).text
    assert "Nothing of this kind yet" in part
    assert "<html" not in part


async def test_a_claimed_artifact_is_read_and_judged_by_its_hash(owner: Guest, tmp_path: Path) -> None:
    desk = Desk(owner.fleet, tmp_path)
    claim = await claimant(desk, "research")
    await claim.claim()
    home = f"/issues/{claim.issue.identifier}"
    track = words_of((await owner.part(home, "track")).text)
    assert "research waits for a verdict" in track
    page = (await owner.get(f"{home}/artifacts/research")).text
    assert sha256(claim.file) in page
    assert "What there is to say." in page
    stale = {"hash": "0" * 64, "reason": "fine", "verdict": "approve"}
    assert (await owner.post(f"{home}/artifacts/research/verdict", stale)).status_code == 409
    given = {
        **stale,
        "hash": sha256(claim.file),
        "verdict": "reject",
        "reason": "Too thin",
        "fix_instructions": "Measure.",
    }
    assert (await owner.post(f"{home}/artifacts/research/verdict", given)).status_code == 303
    words = await owner.words(home)
    assert "research sent back" in words
    assert "Too thin" in words


async def test_the_page_of_a_reviewed_issue_leads_to_its_change_and_says_why_it_waits(
    owner: Guest, tmp_path: Path
) -> None:
    at = await reviewed(owner, tmp_path)
    page = (await owner.get(f"/issues/{at.issue.identifier}")).text
    assert f'href="/issues/{at.issue.identifier}/diff"' in page
    words = words_of(page)
    assert "ready waits for a verdict" in words
    assert "not enabled:" in words
    facts = words_of((await owner.part(f"/issues/{at.issue.identifier}", "facts")).text)
    assert "Cost $0.00" in facts

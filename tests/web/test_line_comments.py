"""The diff page without a browser: who is refused, what it shows, comments on lines, and decisions."""

from pathlib import Path

from rookery.domains.tracker.diff import MAX_DIFF_BYTES
from rookery.identity.store import IdentityStore
from tests.domains.tracker.desk import Desk
from tests.domains.tracker.prompting import told
from tests.domains.tracker.reviewing import Author
from tests.web.guest import Guest, words_of
from tests.web.reviewing import reviewed, somebody
from tests.web.test_diff_view import added

FORM = {"revision": "1", "file": "0", "side": "new", "line": "3", "content": "Ask for the passkey **first**."}


def place(at: Author) -> str:
    return f"/issues/{at.issue.identifier}/diff"


async def test_nobody_reads_or_decides_without_signing_in(guest: Guest, tmp_path: Path) -> None:
    at = await reviewed(guest, tmp_path)
    for path in ("", "/files/0", "/text"):
        assert (await guest.get(place(at) + path)).headers["location"].startswith("/sign-in")
    for path in ("/comments", "/approve", "/reject", "/merge", "/comments/lin-1/remove"):
        assert (await guest.post(place(at) + path, FORM)).status_code == 303
    assert (at.prs()[0].status, at.comments()) == ("open", [])


async def test_a_viewer_reads_and_has_no_form(owner: Guest, tmp_path: Path) -> None:
    at = await reviewed(owner, tmp_path)
    viewer = somebody(owner, "viewer")
    page = (await viewer.get(place(at))).text
    assert "everybody is let in" in words_of(page)
    assert "<textarea" not in page
    for path in ("/comments", "/approve", "/reject", "/merge"):
        assert (await viewer.post(place(at) + path, {**FORM, "reason": "x"})).status_code == 403
    assert at.prs()[0].status == "open"


async def test_a_form_without_its_token_and_an_issue_of_another_tenant_are_refused(
    owner: Guest, tmp_path: Path
) -> None:
    at = await reviewed(owner, tmp_path)
    for path in ("/comments", "/approve", "/reject", "/merge"):
        assert (await owner.client.post(place(at) + path, data={**FORM, "reason": "x"})).status_code == 403
    owner.fleet.platform.database.direct(lambda tx: IdentityStore(tx, "other").set_up(), write=True)
    elsewhere = owner.fleet.actor(tenant="other", as_owner=True)
    theirs = await owner.fleet.call(elsewhere, "create_issue", title="secret of others")
    for path in (f"/issues/{theirs.id}", f"/issues/{theirs.id}/diff", f"/issues/{theirs.id}/diff/text"):
        answer = await owner.get(path)
        assert answer.status_code == 404
        assert "secret of others" not in answer.text
    assert at.prs()[0].status == "open"


async def test_the_page_explains_the_risk_and_shows_the_gates(owner: Guest, tmp_path: Path) -> None:
    at = await reviewed(owner, tmp_path)
    words = await owner.words(place(at))
    for said in (
        "optional gates failed: Lint",
        "passed Tests required",
        "failed Lint optional, ended with 2",
        "login.py is ugly",
    ):
        assert said in words
    assert "It cannot be merged yet: it has to be approved first." in words


async def test_comments_stand_at_their_lines_and_reach_the_next_worker_with_the_rejection(
    owner: Guest, tmp_path: Path
) -> None:
    at = await reviewed(owner, tmp_path)
    answer = await owner.post(f"{place(at)}/comments", {**FORM, "view": "split"})
    assert "view=split#lin-" in answer.headers["location"]
    await owner.post(f"{place(at)}/comments", {**FORM, "line": "2", "content": "<script>alert(1)</script> No comment."})
    page = (await owner.get(f"{place(at)}?view=split")).text
    assert "Ask for the passkey <strong>first</strong>." in page
    assert "<script>alert" not in page
    assert (await owner.post(f"{place(at)}/reject", {"revision": "1", "reason": " "})).status_code == 400
    rejected = await owner.post(
        f"{place(at)}/reject", {"revision": "1", "reason": "Too open", "fix_instructions": "Ask."}
    )
    assert rejected.status_code == 303
    assert at.status() == "todo"
    await at.again()
    brief = await told(Desk(owner.fleet, tmp_path), at.actor, "work_on_phase")
    for words in ("Too open", "Ask for the passkey **first**.", "`src/login.py`, line 3: `return True`", "No comment."):
        assert words in brief


async def test_a_comment_can_be_taken_back_and_one_beside_the_change_is_refused(owner: Guest, tmp_path: Path) -> None:
    at = await reviewed(owner, tmp_path)
    for wrong in ({"line": "99"}, {"file": "7"}, {"line": "x"}, {"content": " "}, {"revision": "2"}, {"revision": ""}):
        assert (await owner.post(f"{place(at)}/comments", {**FORM, **wrong})).status_code in (400, 404, 409)
    made = await owner.post(f"{place(at)}/comments", FORM)
    comment = made.headers["location"].rpartition("#")[2]
    assert (await owner.post(f"{place(at)}/comments/{comment}/remove")).status_code == 303
    assert "Ask for the passkey" not in await owner.words(place(at))


async def test_what_changed_since_the_page_was_loaded_is_neither_approved_nor_rejected_nor_merged(
    owner: Guest, tmp_path: Path
) -> None:
    at = await reviewed(owner, tmp_path)
    await owner.post(f"{place(at)}/reject", {"revision": "1", "reason": "again"})
    await at.again()
    at.tree.commit("src/more.py", "x = 1\n")
    await at.open()
    for path in ("approve", "reject", "comments"):
        answer = await owner.post(f"{place(at)}/{path}", {**FORM, "reason": "x"})
        assert (answer.status_code, "is at revision 2, not 1" in words_of(answer.text)) == (409, True)
    assert (await owner.post(f"{place(at)}/approve", {"revision": "2"})).status_code == 303
    stale = await owner.post(f"{place(at)}/merge", {"revision": "1", "method": "merge"})
    assert "is at revision 2, not 1" in words_of(stale.text)
    older = words_of((await owner.get(f"{place(at)}?revision=1")).text)
    assert "Revision 2 has replaced this one" in older
    assert "src/more.py" not in older
    part = words_of((await owner.part(f"{place(at)}?revision=1", "standing")).text)
    assert "Revision 2 has replaced this one" in part
    assert (await owner.post(f"{place(at)}/merge", {"revision": "2", "method": "octopus"})).status_code == 400
    merged = await owner.post(f"{place(at)}/merge", {"revision": "2", "method": "merge"})
    assert merged.status_code == 303
    assert at.status() == "done"
    assert (at.repository / "src" / "more.py").exists()


async def test_a_person_sends_back_with_comments_what_a_judge_has_approved(owner: Guest, tmp_path: Path) -> None:
    at = await reviewed(owner, tmp_path)
    await at.desk.call(at.bound("judge"), "approve_pr", reason="all gates pass")
    words = await owner.words(place(at))
    assert "approved" in words
    assert "by default" in words
    assert "waits to be merged" in await owner.words(f"/issues/{at.issue.identifier}")
    assert (await owner.post(f"{place(at)}/comments", FORM)).status_code == 303
    assert "Reject revision 1" in await owner.words(place(at))
    answer = await owner.post(f"{place(at)}/reject", {"revision": "1", "reason": "everybody is let in"})
    assert answer.status_code == 303
    assert (at.prs()[0].status, at.status()) == ("rejected", "todo")
    await at.again()
    brief = await told(at.desk, at.actor, "work_on_phase")
    assert "everybody is let in" in brief
    assert "Ask for the passkey" in brief


async def test_a_huge_and_hostile_diff_is_shown_harmless_and_bounded(owner: Guest, tmp_path: Path) -> None:
    name = "x\u202egnp.py"
    bodies = [added(f"src/f{number}.py", ['"""' if number % 2 else "\x1b[31m<script>"] * 30) for number in range(2000)]
    big = added("big.js", ["a(" * 40] * 40_000)
    diff = added(name, ["print('\u202e')"]) + "".join(bodies) + big
    assert len(diff.encode()) < MAX_DIFF_BYTES
    at = await reviewed(owner, tmp_path, diff=diff, gate_results=[])
    page = (await owner.get(place(at))).text
    assert "2002 files" in words_of(page)
    assert "Page 1 of 11" in words_of(page)
    assert not any(character in page for character in "\u202e\x1b")
    assert "<script>" not in page.partition("<main")[2]
    assert len(page) < 3_000_000
    number = 2001
    part = await owner.part(f"{place(at)}/files/{number}?revision=1", "body")
    assert "further lines are not shown" in words_of(part.text)
    found = words_of((await owner.get(f"{place(at)}?q=f1999")).text)
    assert "src/f1999.py" in found
    text = await owner.get(f"{place(at)}/text?revision=1")
    assert text.text == diff
    assert text.headers["content-disposition"].startswith("attachment;")
    assert (await owner.get(f"{place(at)}/files/9999")).status_code == 404
    commented = await owner.post(f"{place(at)}/comments", {**FORM, "line": "1"})
    assert commented.status_code == 303

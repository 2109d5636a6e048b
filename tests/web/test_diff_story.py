"""Reviews in a real browser: a change is read, sent back with comments on its lines, approved and merged."""

from pathlib import Path

from playwright.sync_api import Page, expect

from tests.domains.tracker.desk import git
from tests.domains.tracker.prompting import told
from tests.domains.tracker.reviewing import Author
from tests.web.reviewing import opened_at
from tests.web.site import Viewer


def comment(page: Page, line: int, words: str) -> None:
    """Click on the number of a line after the change, and write there."""
    page.locator(f'td.n[data-side="new"]:text-is("{line}")').first.click()
    page.locator("tr.note textarea").fill(words)
    page.locator("tr.note").get_by_role("button", name="Comment").click()
    expect(page.locator(".line-note").filter(has_text=words)).to_be_visible()


def again(at: Author, viewer: Viewer) -> None:
    """The worker reads what is to be mended, mends it, and the next revision is open."""
    site = viewer.site
    site.wait(at.again())
    brief = site.wait(told(at.desk, at.actor, "work_on_phase"))
    assert "Ask for the passkey." in brief
    assert "`src/login.py`, line 3: `return True`" in brief
    assert "Say who is let in." in brief
    at.tree.commit("src/login.py", "def log_in(name: str) -> bool:\n    return name in PASSKEYS\n")
    site.wait(at.open())


def test_a_change_is_read_sent_back_with_two_comments_approved_and_merged(viewer: Viewer, tmp_path: Path) -> None:
    at = opened_at(viewer.site, tmp_path)
    page = viewer.open(f"/issues/{at.issue.identifier}?project=repo")
    page.get_by_role("button", name="Review the change").click()
    expect(page.get_by_role("heading", name="Revision 1")).to_be_visible()
    page.locator(".gates summary", has_text="Lint").click()
    expect(page.get_by_text("login.py is ugly")).to_be_visible()
    comment(page, 3, "Ask for the passkey.")
    comment(page, 2, "Say who is let in.")
    viewer.check()
    page.locator("summary", has_text="Reject").click()
    expect(page.get_by_text("Your 2 comments on lines go along")).to_be_visible()
    page.get_by_label("What is wrong").fill("Everybody is let in")
    page.get_by_role("button", name="Reject revision 1").click()
    expect(page.get_by_text("The next worker is told why.")).to_be_visible()
    again(at, viewer)
    # The page that shows the older revision hears of the new one.
    expect(page.get_by_text("Revision 2 has replaced this one")).to_be_visible()
    page.get_by_role("link", name="Read the newest").click()
    expect(page.get_by_text("name in PASSKEYS")).to_be_visible()
    page.locator("summary", has_text="Approve").click()
    page.get_by_role("button", name="Approve revision 2").click()
    page.get_by_role("button", name="Merge into main").click()
    page.get_by_role("button", name="Yes").click()
    expect(page.get_by_text("It is merged: nothing is left to decide.")).to_be_visible()
    viewer.check()
    assert at.status() == "done"
    assert "PASSKEYS" in git(at.repository, "show", "main:src/login.py")
    page = viewer.open(f"/issues/{at.issue.identifier}?project=repo")
    expect(page.get_by_text("Everybody is let in").first).to_be_visible()
    viewer.check()


def test_side_by_side_is_for_wide_screens_and_everything_works_by_keyboard(viewer: Viewer, tmp_path: Path) -> None:
    at = opened_at(viewer.site, tmp_path)
    page = viewer.open(f"/issues/{at.issue.identifier}/diff?project=repo&view=split")
    wide = page.viewport_size is not None and page.viewport_size["width"] > 800
    expect(page.locator(f"table.diff.{'split' if wide else 'unified'}")).to_be_visible()
    form = page.locator("[data-line-form]")
    form.locator("summary").focus()
    page.keyboard.press("Enter")
    page.keyboard.press("Tab")
    page.keyboard.type("1")
    page.keyboard.press("Tab")
    page.keyboard.press("Tab")
    page.keyboard.type("Which name?")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    expect(page.locator(".line-note")).to_contain_text("Which name?")
    page.get_by_role("button", name="Remove").click()
    page.get_by_role("button", name="Yes").click()
    expect(page.locator(".line-note")).to_have_count(0)
    viewer.check()

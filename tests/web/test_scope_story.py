"""A tool is taken from an agent in the browser, and a client that is connected loses it at once."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.server.processes import Client, environment
from tests.web.site import Site, Viewer

CHANGED = "notifications/tools/list_changed"
Connect = Callable[..., Client]


@pytest.fixture
def connect() -> Iterator[Connect]:
    """Starts `rookery stdio` in processes of their own, at the server of a site."""
    made: list[Client] = []

    def start(site: Site, *flags: str) -> Client:
        env = environment(site.home, None)
        made.append(Client(Path(site.home), env, *flags, number=len(made)))
        made[-1].initialize()
        return made[-1]

    yield start
    for client in made:
        client.close()


def tab_to(page: Page, selector: str, *, most: int = 60) -> None:
    """Press Tab until the element has the focus."""
    for _ in range(most):
        page.keyboard.press("Tab")
        if page.evaluate("(wanted) => document.activeElement?.matches(wanted)", selector):
            return
    raise AssertionError(f"the keyboard does not reach {selector}")


def save_by_keyboard(page: Page) -> None:
    """Find ping by typing, change its box, and save, without a mouse."""
    page.get_by_label("Find a tool").focus()
    page.keyboard.type("ping")
    expect(page.locator("[data-tool]:visible")).to_have_count(1)
    tab_to(page, 'input[name="tool"][value="ping"]')
    with page.expect_response(lambda answer: "part=preview" in answer.url):
        page.keyboard.press("Space")
    tab_to(page, "#save")
    page.keyboard.press("Enter")


def test_a_live_session_loses_the_tool_that_is_taken_away_and_gets_it_back(viewer: Viewer, connect: Connect) -> None:
    site = viewer.site
    site.call("create_agent", name="ada", permissions=["ping", "list_issues", "check_credits"])
    ada, other = connect(site, "--agent", "ada"), connect(site, "--agent", "default")
    assert {"ping", "list_issues"} <= ada.tool_names()
    had = other.tool_names()

    page = viewer.open("/agents/ada")
    preview, box = page.locator("#preview"), page.locator('input[name="tool"][value="ping"]')
    expect(preview).to_contain_text("3 tools")
    cost = preview.locator(".scope-total").inner_text()
    save_by_keyboard(page)
    saved = page.locator("#saved")
    expect(saved).to_contain_text("1 live session was told at once")
    expect(saved).to_contain_text("lost ping")
    expect(preview).to_contain_text("2 tools")
    assert preview.locator(".scope-total").inner_text() != cost
    ada.until(CHANGED)
    assert "ping" not in ada.tool_names()
    refused = ada.call("ping")["error"]
    assert refused["code"] == "PERMISSION_DENIED"
    expect(box).not_to_be_checked()
    viewer.check()

    save_by_keyboard(page)
    expect(saved).to_contain_text("got ping")
    ada.until(CHANGED)
    assert "ping" in ada.tool_names()
    assert "error" not in ada.call("ping")
    assert other.tool_names() == had
    assert not any(message.get("method") == CHANGED for message in other.seen)
    viewer.check()


def test_what_a_profile_loses_is_seen_before_it_is_saved_and_noticed_by_its_session(
    viewer: Viewer, connect: Connect
) -> None:
    site = viewer.site
    worker = connect(site, "--agent-type", "worker")
    assert "report_status" in worker.tool_names() or "list_issues" in worker.tool_names()
    taken = sorted(worker.tool_names())[0]
    page = viewer.open("/profiles/worker")
    page.locator(f'input[name="tool"][value="{taken}"]').click()
    preview = page.locator("#preview")
    expect(preview).to_contain_text("\N{MINUS SIGN}1")
    expect(preview).to_contain_text("1 live session notices it at once")
    page.get_by_role("button", name="Save").click()
    expect(page.locator("#saved")).to_contain_text(f"lost {taken}")
    worker.until(CHANGED)
    assert taken not in worker.tool_names()
    page.get_by_role("button", name="Take nothing away").click()
    expect(preview).to_contain_text("+1")
    page.get_by_role("button", name="Save").click()
    expect(page.locator("#saved")).to_contain_text(f"got {taken}")
    worker.until(CHANGED)
    assert taken in worker.tool_names()
    viewer.check()


def test_the_editor_finds_groups_and_explains_without_leaving_the_page(viewer: Viewer) -> None:
    page = viewer.open("/agents/default")
    page.get_by_role("button", name="By domain").click()
    expect(page.get_by_role("heading", name="Tracker", exact=True)).to_be_visible()
    tracker = page.locator("[data-scope-group]", has=page.get_by_role("heading", name="Tracker", exact=True))
    page.get_by_role("button", name="Tick all of tracker").click()
    expect(page.locator('input[name="list"][value="own"]')).to_be_checked()
    expect(page.locator("#preview")).to_contain_text("+")
    assert tracker.locator("input:not(:checked)").count() == 0
    page.get_by_role("button", name="By kind").click()
    expect(page.get_by_role("heading", name="Review", exact=True)).to_be_visible()
    expect(page.locator('input[name="tool"][value="create_issue"]')).to_be_checked()
    page.get_by_role("button", name="Default set").click()
    expect(page.locator("#preview")).to_contain_text("Nothing changes against now")
    expect(page.locator('input[name="list"][value="default"]')).to_be_checked()
    page.get_by_label("Find a tool").fill("no such tool")
    expect(page.get_by_text("No tool fits.")).to_be_visible()
    page.get_by_label("Find a tool").fill("grant_credits")
    page.get_by_role("link", name="Explain grant_credits").click()
    explain = page.locator("#explain")
    expect(explain.locator(".layers li")).to_have_count(17)
    expect(explain.locator(".layers li.first")).to_contain_text("grant_credits is not among the tools of this agent")
    expect(page.get_by_label("Find a tool")).to_have_value("grant_credits")
    viewer.check()

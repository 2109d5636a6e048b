"""Somebody draws a workflow, starts it and watches it, on a desktop and at the width of a phone."""

import re

from playwright.sync_api import Locator, Page, expect

from tests.web.site import Site, Viewer


def add(page: Page, kind: str, label: str, after: str) -> None:
    page.get_by_label("Kind", exact=True).select_option(kind)
    page.get_by_label("Label", exact=True).last.fill(label)
    page.get_by_label("After", exact=True).select_option(label=after)
    press(page, page.get_by_role("button", name="Add the node"))
    expect(page.locator("svg.workflow text.name", has_text=label)).to_be_visible()


def press(page: Page, button: Locator) -> None:
    """One step of drawing. Until its answer is there, the form takes nothing."""
    button.click()
    expect(page.locator("#editor:not([inert])")).to_be_visible()


def node(page: Page, name: str) -> str:
    return page.locator(f'svg.workflow a.node[aria-label^="{name},"]').get_attribute("class") or ""


def test_a_workflow_is_drawn_started_and_watched(viewer: Viewer, site: Site) -> None:
    page = viewer.open("/automation/workflows")
    page.get_by_role("button", name="Draw a workflow").click()
    page.get_by_label("Name", exact=True).fill("Ask the outside")
    add(page, "webhook_wait", "Wait for CI", "Start")
    add(page, "condition", "Was it green", "Wait for CI")
    expect(page.locator("#fault")).to_contain_text("can run")
    page.get_by_role("textbox", name="Condition").fill("green == true")
    press(page, page.get_by_role("button", name="Apply to Was it green"))
    add(page, "end", "Bad end", "Was it green")
    page.get_by_label("From", exact=True).select_option(label="Was it green")
    page.get_by_label("To", exact=True).select_option(label="Bad end")
    viewer.check()
    mark_edge(page)
    save_and_start(page)
    expect(page.locator("svg.workflow a.node.waiting")).to_have_count(1)
    assert "completed" in node(page, "Start")
    assert "pending" in node(page, "Bad end")
    viewer.check()
    deliver(page, site)
    expect(page.locator(".page-head .badge.completed")).to_be_visible()
    assert "completed" in node(page, "End")
    assert "skipped" in node(page, "Bad end")
    viewer.check()


def mark_edge(page: Page) -> None:
    """The edges out of a condition say when they are taken."""
    press(page, page.get_by_label("Remove the edge from Was it green to Bad end"))
    expect(page.locator("#fault")).to_contain_text("cannot be reached")
    page.get_by_label("From", exact=True).select_option(label="Was it green")
    page.get_by_label("To", exact=True).select_option(label="Bad end")
    page.get_by_label("If", exact=True).select_option("false")
    press(page, page.get_by_role("button", name="Connect", exact=True))
    press(page, page.get_by_label("Remove the edge from Was it green to End"))
    page.get_by_label("From", exact=True).select_option(label="Was it green")
    page.get_by_label("To", exact=True).select_option(label="End")
    page.get_by_label("If", exact=True).select_option("true")
    press(page, page.get_by_role("button", name="Connect", exact=True))
    expect(page.locator("svg.workflow .way-label")).to_have_text(["false", "true"])
    expect(page.locator("#fault")).to_contain_text("can run")


def save_and_start(page: Page) -> None:
    page.get_by_role("button", name="Save and activate").click()
    page.wait_for_url(re.compile(r"/automation/workflows/wfl-[^/]+$"))
    page.get_by_label("Input").fill('{"branch": "main"}')
    page.get_by_role("button", name="Start").click()
    page.wait_for_url(re.compile(r"/runs/wfr-"))


def deliver(page: Page, site: Site) -> None:
    """What a service outside does: the page says where to and with which secret."""
    details = page.locator("details[id='node-wait-for-ci']")
    path = (details.locator("p code").first.text_content() or "").removeprefix("POST ")
    secret = details.locator("pre code").first.text_content() or ""
    answer = page.context.request.post(
        f"{site.url}{path}", headers={"Authorization": f"Bearer {secret}"}, data={"green": True}
    )
    assert answer.ok, answer.text()


def test_a_workflow_is_drawn_by_keyboard_alone(viewer: Viewer) -> None:
    page = viewer.open("/automation/workflows/new")
    page.get_by_label("Label", exact=True).focus()
    page.keyboard.type("Pause a little")
    page.get_by_label("Kind", exact=True).focus()
    page.keyboard.type("delay")
    page.get_by_label("Label", exact=True).focus()
    page.keyboard.press("Enter")
    expect(page.locator("svg.workflow text.name", has_text="Pause a little")).to_be_visible()
    page.locator('svg.workflow a.node[aria-label^="Pause"]').focus()
    page.keyboard.press("Enter")
    expect(page.get_by_label("Wait, in milliseconds")).to_have_value("1000")
    expect(page.locator("#editor:not([inert])")).to_be_visible()
    page.get_by_label("Name", exact=True).focus()
    page.keyboard.type("By keys")
    page.keyboard.press("Enter")
    page.wait_for_url(re.compile(r"/automation/workflows/wfl-[^/]+$"))
    page.get_by_role("button", name="Smaller").focus()
    before = page.locator("svg.workflow").get_attribute("width")
    page.keyboard.press("Enter")
    assert page.locator("svg.workflow").get_attribute("width") != before
    viewer.check()

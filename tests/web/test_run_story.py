"""A person follows a run in a browser while it goes on."""

from collections.abc import Callable

import pytest
from playwright.sync_api import ViewportSize, expect

from tests.domains.runs.told import called, told
from tests.web.running import Runners, usual_events
from tests.web.site import Site, Viewer

SCRIPT = "!say I look at it first.\n!call ping {}\n!ask Which way? | left | right\n!say Then I go on.\n!spend 0.25"


def test_a_run_in_the_server_is_followed_from_its_start_to_its_end(
    make_site: Callable[..., Site],
    screen: ViewportSize,
    make_viewer: Callable[..., Viewer],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("ROOKERY_RUNTIME", "scripted")
    site = make_site(ROOKERY_RUNTIME="scripted")
    viewer = make_viewer(site, screen).sign_in()
    page = viewer.open("/runs")
    expect(page.get_by_text("No agent has run yet")).to_be_visible()

    site.call("start_session", message=SCRIPT)
    page.locator('main a[href^="/runs/run-"]').first.click()
    asked = page.locator("details.step.ask")
    expect(asked).to_contain_text("waits for a person")
    said = page.locator("details.step.text")
    expect(said).to_contain_text("I look at it first.")

    called = page.locator("details.step.tool")
    called.locator("summary").press("Enter")
    expect(called.locator(".detail")).to_contain_text("Result")
    (ask,) = site.call("list_asks")["asks"]
    site.call("answer_ask", ask_id=ask["id"], answer="left")

    expect(page.get_by_text("Then I go on.").first).to_be_visible()
    expect(page.locator(".page-head .badge")).to_have_text("succeeded")
    expect(asked).to_contain_text("answered after")
    expect(called.locator(".detail")).to_contain_text("Result")
    expect(page.locator(".figures")).to_contain_text("$0.25")
    viewer.check()


def test_a_run_is_stopped_on_its_page(
    make_site: Callable[..., Site], make_viewer: Callable[..., Viewer], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ROOKERY_RUNTIME", "scripted")
    site = make_site(ROOKERY_RUNTIME="scripted")
    viewer = make_viewer(site).sign_in()
    site.call("start_session", message="!say I take my time.\n!wait 900")
    page = viewer.open("/runs")
    page.locator('main a[href^="/runs/run-"]').first.click()
    expect(page.get_by_text("I take my time.").first).to_be_visible()
    page.get_by_role("button", name="Stop it").press("Enter")
    page.get_by_role("button", name="Yes").press("Enter")
    expect(page.get_by_role("alert").filter(has_text="It was stopped")).to_be_visible()
    expect(page.get_by_role("button", name="Stop it")).to_have_count(0)
    viewer.check()


def test_what_tools_say_is_seen_while_they_work(site: Site, viewer: Viewer) -> None:
    runners = Runners(site.fleet)
    start, given, result = called("c1", "Bash", 0, 90_000)
    run = runners.start(*usual_events()[:2], start, given)
    page = viewer.open("/runs")
    page.locator(f'main a[href^="/runs/{run}"]').first.click()
    lines = page.get_by_role("status", name="Tools at work")
    expect(lines).to_contain_text("Bash")
    for said in ("collecting tests", "120 of 300 tests"):
        runners.add(run, told("tool_status", 10, call_id="c1", tool="Bash", text=said))
        expect(lines).to_contain_text(said)
    viewer.check()
    runners.add(run, result)
    expect(lines).to_have_count(0)
    step = page.locator("details.step.tool summary")
    step.focus()
    page.keyboard.press("ArrowDown")
    expect(page.locator("details.step.text summary")).to_be_focused()
    runners.end(run, "failed", "it gave up")
    expect(page.get_by_role("alert").filter(has_text="it gave up")).to_be_visible()
    viewer.check()
